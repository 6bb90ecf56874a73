// Adding, finding and forgetting cursors and walks, and their bytes for the next start.
#include "src/types/key_cursor.h"

#include <algorithm>
#include <random>

#include "storage/codec.h"

namespace ingot::types {

namespace {

constexpr std::string_view kRecordName = "cursors";
constexpr size_t kEntryOverhead = 96;
constexpr uint64_t kEarlierRun = 0;  // instead of a client
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

uint64_t KeyCursors::add(std::string_view position, uint64_t client, uint64_t continued) {
  std::lock_guard lock(mutex_);
  while (positions_.contains(next_)) take_next();
  const uint64_t cursor = take_next();
  const Number walk = next_walk_++;
  const auto before = positions_.find(continued);
  if (before == positions_.end()) {
    walks_[walk].client = client;
    clients_[client].walks.insert(walk);
  } else {
    move(before->second.walk, walk, client);
    // Whoever uses it again and again keeps it.
    auto& cursors = walks_[walk].cursors;
    std::erase(cursors, continued);
    cursors.push_back(continued);
  }
  insert(walk, cursor, position);
  make_room(client);
  return cursor;
}

uint64_t KeyCursors::take_next() {
  const uint64_t taken = next_;
  next_ = taken == kCursorMax ? 1 : taken + 1;
  return taken;
}

void KeyCursors::insert(Number walk, uint64_t cursor, std::string_view position) {
  const size_t bytes = position.size() + kEntryOverhead;
  positions_[cursor] = {.bytes = std::string(position), .walk = walk};
  Walk& of = walks_[walk];
  of.cursors.push_back(cursor);
  clients_[of.client].bytes += bytes;
  bytes_ += bytes;
  if (of.cursors.size() > kKeptOfWalk) forget_oldest(of);
}

void KeyCursors::forget_oldest(Walk& walk) {
  const auto found = positions_.find(walk.cursors.front());
  const size_t bytes = found->second.bytes.size() + kEntryOverhead;
  bytes_ -= bytes;
  clients_[walk.client].bytes -= bytes;
  positions_.erase(found);
  walk.cursors.pop_front();
}

void KeyCursors::forget(Number walk) {
  auto node = walks_.extract(walk);
  while (!node.mapped().cursors.empty()) forget_oldest(node.mapped());
  leave(node.mapped().client, walk);
}

void KeyCursors::leave(uint64_t client, Number walk) {
  const auto left = clients_.find(client);
  left->second.walks.erase(walk);
  if (left->second.walks.empty()) clients_.erase(left);
}

// Gives the walk another number, and to another client perhaps.
void KeyCursors::move(Number walk, Number to, uint64_t client) {
  auto node = walks_.extract(walk);
  node.key() = to;
  Walk& moved = node.mapped();
  size_t bytes = 0;
  for (const uint64_t cursor : moved.cursors) {
    Position& position = positions_.find(cursor)->second;
    position.walk = to;
    bytes += position.bytes.size() + kEntryOverhead;
  }
  clients_[moved.client].bytes -= bytes;
  leave(moved.client, walk);
  moved.client = client;
  clients_[client].bytes += bytes;
  clients_[client].walks.insert(to);
  walks_.insert(std::move(node));
}

// The newest cursor stays, however large its position is.
void KeyCursors::make_room(uint64_t client) {
  const Client& own = clients_[client];
  const size_t share = bytes_max_ / kShares;
  while (client != kEarlierRun && own.bytes > share && own.walks.size() > 1) {
    forget(*own.walks.begin());
  }
  Walk& newest = walks_[*own.walks.rbegin()];
  while (own.bytes > bytes_max_ && newest.cursors.size() > 1) forget_oldest(newest);
  while (bytes_ > bytes_max_ && walks_.size() > 1) forget(walks_.begin()->first);
}

void KeyCursors::end(uint64_t cursor) {
  std::lock_guard lock(mutex_);
  const auto found = positions_.find(cursor);
  if (found == positions_.end()) return;
  const Number walk = found->second.walk;
  move(walk, next_ended_++, walks_[walk].client);
}

std::optional<std::string> KeyCursors::find(uint64_t cursor) const {
  std::lock_guard lock(mutex_);
  auto found = positions_.find(cursor);
  if (found == positions_.end()) return std::nullopt;
  return found->second.bytes;
}

// A zero byte, then for each, those to be forgotten first: u64le cursor | u32le length | position
void KeyCursors::save(storage::Engine& engine) const {
  std::lock_guard lock(mutex_);
  std::string record(1, '\0');
  for (const auto& [number, walk] : walks_) {
    for (const uint64_t cursor : walk.cursors) {
      const std::string& position = positions_.find(cursor)->second.bytes;
      storage::append_le64(&record, cursor);
      storage::append_le32(&record, static_cast<uint32_t>(position.size()));
      record.append(position);
    }
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
    const Number walk = next_walk_++;
    walks_[walk].client = kEarlierRun;
    clients_[kEarlierRun].walks.insert(walk);
    insert(walk, cursor, rest.substr(0, length));
    make_room(kEarlierRun);
    rest.remove_prefix(length);
  }
}

}  // namespace ingot::types
