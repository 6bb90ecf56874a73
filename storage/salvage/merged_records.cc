// A record in the scratch engine: u64le sequence | removed (1) | value.
#include "storage/salvage/merged_records.h"

#include <tuple>
#include <utility>

#include "storage/codec.h"

namespace ingot::storage {
namespace {

constexpr size_t kBatchBytes = 1 << 20;
constexpr size_t kPrefixBytes = 9;

}  // namespace

MergedRecords::MergedRecords(const std::string& path) {
  std::tie(engine_, status_) = open_engine("rocksdb", {.path = path});
  if (engine_) batch_ = engine_->new_batch();
}

void MergedRecords::add(Space space, std::string_view key, uint64_t sequence, bool removed,
                        std::string_view value) {
  if (!status_.ok()) return;
  // Of a table the versions of a key follow each other, the latest first.
  std::string here(1, static_cast<char>(space));
  here.append(key);
  if (here == last_key_ && sequence <= last_sequence_) return;
  last_key_ = std::move(here);
  last_sequence_ = sequence;

  const Lookup found = engine_->get(nullptr, space, key, Tier::kDisk, &held_, &status_);
  if (found == Lookup::kError) return;
  if (found == Lookup::kFound && read_le64(held_) >= sequence) return;
  std::string record;
  append_le64(&record, sequence);
  record.push_back(removed ? '\1' : '\0');
  record.append(value);
  batch_->put(space, key, record);
  if (batch_->bytes() < kBatchBytes) return;
  note(engine_->write(*batch_, Durability::kBuffered));
  batch_->clear();
}

void MergedRecords::settle() {
  if (!status_.ok()) return;
  note(engine_->write(*batch_, Durability::kBuffered));
  batch_->clear();
  last_key_.clear();
}

void MergedRecords::walk(Space space, const std::string& lower, const std::string& upper,
                         const Each& each) {
  if (!status_.ok()) return;
  const auto cursor =
      engine_->new_cursor(space, {.lower = lower, .upper = upper, .fill_cache = false});
  for (cursor->seek(lower); cursor->valid(); cursor->next()) {
    const std::string_view record = cursor->value();
    if (record[kPrefixBytes - 1] != 0) continue;
    if (!each(cursor->key(), read_le64(record), record.substr(kPrefixBytes))) return;
  }
  note(cursor->status());
}

std::string MergedRecords::first_key(Space space, const std::string& lower,
                                     const std::string& upper) {
  std::string first;
  walk(space, lower, upper, [&](std::string_view key, uint64_t, std::string_view) {
    first = key;
    return false;
  });
  return first;
}

}  // namespace ingot::storage
