// Adding, finding and forgetting cursors, and their bytes for the next start.
#include "src/types/key_cursor.h"

#include <algorithm>
#include <random>

#include "storage/codec.h"

namespace ingot::types {

namespace {

constexpr std::string_view kRecordName = "cursors";
constexpr size_t kEntryOverhead = 96;
constexpr uint64_t kCursorMax = (1ull << 53) - 1;

// Every run begins elsewhere: a cursor of an earlier run that was not saved must not be taken for
// one of this run.
uint64_t random_start() {
  std::random_device random;
  uint64_t bits = (uint64_t{random()} << 32) | random();
  return bits % (kCursorMax / 2) + 1;
}

}  // namespace

KeyCursors::KeyCursors(size_t bytes_max) : bytes_max_(bytes_max), next_(random_start()) {}

uint64_t KeyCursors::add(std::string_view position) {
  std::lock_guard lock(mutex_);
  while (positions_.contains(next_)) take_next();
  const uint64_t cursor = take_next();
  insert(cursor, position);
  return cursor;
}

uint64_t KeyCursors::take_next() {
  const uint64_t taken = next_;
  next_ = taken == kCursorMax ? 1 : taken + 1;
  return taken;
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

// A zero byte, then for each, oldest first: u64le cursor | u32le length | position
void KeyCursors::save(storage::Engine& engine) const {
  std::lock_guard lock(mutex_);
  std::string record(1, '\0');
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
                 storage::Tier::kDisk, &record, nullptr) != storage::Lookup::kFound) {
    return;
  }
  std::lock_guard lock(mutex_);
  std::string_view rest = record;
  rest.remove_prefix(std::min<size_t>(rest.size(), 1));
  while (rest.size() >= 12) {
    uint64_t cursor = storage::read_le64(rest);
    uint32_t length = storage::read_le32(rest.substr(8));
    rest.remove_prefix(12);
    if (length > rest.size() || positions_.contains(cursor)) return;
    insert(cursor, rest.substr(0, length));
    rest.remove_prefix(length);
  }
}

}  // namespace ingot::types
