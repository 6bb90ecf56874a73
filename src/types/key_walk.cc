// Walking keys and skipping what expired, and picking one at random, byte by byte of its name.
#include "src/types/key_walk.h"

namespace ingot::types {

using storage::Space;
using storage::Status;

namespace {

// Of so few keys with a common beginning one is picked by counting them.
constexpr uint64_t kCountedKeys = 32;
// How often a byte that begins no key is drawn again before its neighbours take its share.
constexpr int kDraws = 4;

std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

bool begins(const KeyWalk& walk, std::string_view prefix) {
  return walk.valid() && walk.key().starts_with(prefix);
}

// Goes to one of the keys with the prefix if they are few.
bool seek_one_of_few(KeyWalk& walk, std::string_view prefix, std::mt19937_64& random) {
  std::string chosen;
  uint64_t seen = 0;
  for (walk.seek(prefix); begins(walk, prefix); walk.next()) {
    if (++seen > kCountedKeys) return false;
    if (random() % seen == 0) chosen = walk.key();
  }
  if (seen != 0) walk.seek(chosen);
  return true;
}

int byte_at(std::string_view key, size_t index) {
  return index < key.size() ? static_cast<unsigned char>(key[index]) : -1;
}

// Goes to a key in one of the subtrees that hang at `prefix`, between the bytes `low` and `high`
// (both of which begin one; -1 is the key `prefix` itself).
void seek_child(KeyWalk& walk, const std::string& prefix, int low, int high,
                std::mt19937_64& random) {
  std::uniform_int_distribution<int> any(low, high);
  int drawn = low;
  for (int draw = 0; draw < kDraws; ++draw) {
    drawn = any(random);
    if (drawn < 0) return walk.seek(prefix);
    walk.seek(prefix + static_cast<char>(drawn));
    if (!walk.valid() || byte_at(walk.key(), prefix.size()) == drawn) return;
  }
  // Half of each gap for the neighbour above, where the walk is now, and half for that below.
  if (random() % 2 == 0) walk.seek_back(prefix + static_cast<char>(drawn));
}

}  // namespace

KeyWalk::KeyWalk(storage::Reader& data, storage::KeyspaceId keyspace, std::string_view prefix)
    : data_(data),
      keyspace_(keyspace),
      begin_(storage::meta_key(keyspace, prefix)),
      cursor_(data.cursor(Space::kMeta, begin_, end_of_prefix(begin_))) {}

void KeyWalk::seek_last_of(std::string_view prefix) {
  const std::string end = end_of_prefix(std::max(storage::meta_key(keyspace_, prefix), begin_));
  cursor_->seek_for_prev(end);
  if (cursor_->valid() && cursor_->key() == end) cursor_->prev();
}

void KeyWalk::seek(std::string_view key) {
  cursor_->seek(std::max(storage::meta_key(keyspace_, key), begin_));
}

void KeyWalk::seek_behind(std::string_view key) {
  std::string from = storage::meta_key(keyspace_, key);
  from.push_back('\0');
  cursor_->seek(std::max(from, begin_));
}

bool KeyWalk::read(storage::Metadata* metadata) const {
  if (storage::decode_metadata(cursor_->value(), metadata)) return true;
  data_.latch_error(Status(Status::Code::kCorruption, "unreadable metadata record"));
  return false;
}

uint64_t count_keys(storage::Reader& data, storage::KeyspaceId keyspace) {
  uint64_t keys = 0;
  const std::string begin = storage::meta_key(keyspace, {});
  const auto cursor = data.cursor(Space::kMeta, begin, storage::meta_key_end(keyspace));
  for (cursor->seek(begin); cursor->valid(); cursor->next()) ++keys;
  data.check(*cursor);
  return keys;
}

void seek_random(KeyWalk& walk, std::mt19937_64& random) {
  std::string prefix;
  walk.seek_last();
  if (!walk.valid()) return;
  std::string last(walk.key());
  while (!seek_one_of_few(walk, prefix, random)) {
    walk.seek(prefix);
    if (!walk.valid()) return;
    const std::string_view first = walk.key();
    const size_t same = static_cast<size_t>(
        std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first - first.begin());
    const int low = byte_at(first, same);
    prefix.assign(first.substr(0, same));
    seek_child(walk, prefix, low, byte_at(last, same), random);
    if (!walk.valid() || walk.key() == prefix) return;
    prefix.push_back(walk.key()[same]);
    walk.seek_last_of(prefix);
    if (!walk.valid()) return;
    last = walk.key();
  }
}

}  // namespace ingot::types
