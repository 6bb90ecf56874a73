// The table of cursors; see key_cursor.h.
#include "src/types/key_cursor.h"

#include <random>

#include "storage/codec.h"

namespace ingot::types {

namespace {

constexpr std::string_view kRecordName = "cursors";
constexpr size_t kEntryOverhead = 64;
constexpr uint64_t kCursorMax = (1ull << 53) - 1;

// A cursor of an earlier run that was not saved must not be taken for one of this run.
uint64_t random_start() {
  std::random_device random;
  uint64_t bits = (uint64_t{random()} << 32) | random();
  return bits % (kCursorMax / 2) + 1;
}

}  // namespace

uint64_t KeyCursors::add(std::string_view position) {
  std::lock_guard lock(mutex_);
  if (next_ == 0) next_ = random_start();
  uint64_t cursor = next_++;
  if (next_ > kCursorMax) next_ = 1;
  insert(cursor, position);
  return cursor;
}

void KeyCursors::insert(uint64_t cursor, std::string_view position) {
  positions_[cursor] = position;
  oldest_first_.push_back(cursor);
  bytes_ += position.size() + kEntryOverhead;
  while (bytes_ > bytes_max_ && oldest_first_.size() > 1) {
    auto oldest = positions_.find(oldest_first_.front());
    bytes_ -= oldest->second.size() + kEntryOverhead;
    positions_.erase(oldest);
    oldest_first_.pop_front();
  }
}

std::optional<std::string> KeyCursors::find(uint64_t cursor) const {
  std::lock_guard lock(mutex_);
  auto found = positions_.find(cursor);
  if (found == positions_.end()) return std::nullopt;
  return found->second;
}

// u64le next | for each, oldest first: u64le cursor | u32le length | position
void KeyCursors::save(storage::Engine& engine) const {
  std::lock_guard lock(mutex_);
  std::string record;
  storage::append_le64(&record, next_);
  for (uint64_t cursor : oldest_first_) {
    const std::string& position = positions_.find(cursor)->second;
    storage::append_le64(&record, cursor);
    storage::append_le32(&record, static_cast<uint32_t>(position.size()));
    record.append(position);
  }
  auto batch = engine.new_batch();
  batch->put(storage::Space::kSystem, storage::named_key(kRecordName), record);
  (void)engine.write(*batch, storage::Durability::kBuffered);
}

void KeyCursors::load(storage::Engine& engine) {
  std::string record;
  if (engine.get(nullptr, storage::Space::kSystem, storage::named_key(kRecordName),
                 storage::Tier::kDisk, &record, nullptr) != storage::Lookup::kFound ||
      record.size() < 8) {
    return;
  }
  std::lock_guard lock(mutex_);
  std::string_view rest = record;
  next_ = storage::read_le64(rest);
  rest.remove_prefix(8);
  while (rest.size() >= 12) {
    uint64_t cursor = storage::read_le64(rest);
    uint32_t length = storage::read_le32(rest.substr(8));
    rest.remove_prefix(12);
    if (length > rest.size()) return;
    insert(cursor, rest.substr(0, length));
    rest.remove_prefix(length);
  }
  // Once only: after a crash the numbers given out since are unknown, and must stay so.
  auto batch = engine.new_batch();
  batch->remove(storage::Space::kSystem, storage::named_key(kRecordName));
  (void)engine.write(*batch, storage::Durability::kBuffered);
}

}  // namespace ingot::types
