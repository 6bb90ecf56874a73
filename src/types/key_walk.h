// Walking the keys of one keyspace in byte order, and picking one of them at random.
// One thread at a time; failures latch in the reader.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "src/types/keyspace.h"
#include "storage/codec.h"
#include "storage/reader.h"

namespace ingot::types {

// The keys that begin with `prefix`, expired ones included. Starts invalid: seek first.
class KeyWalk {
 public:
  KeyWalk(storage::Reader& data, storage::KeyspaceId keyspace, std::string_view prefix);
  ~KeyWalk() { data_.check(*cursor_); }
  KeyWalk(const KeyWalk&) = delete;
  KeyWalk& operator=(const KeyWalk&) = delete;

  // False at the end of the keys and after a failure.
  bool valid() const { return cursor_->valid() && !data_.failed(); }
  void seek_first() { cursor_->seek(begin_); }
  void seek_last() { seek_last_of({}); }
  // To the last key that begins with `prefix`, if there is any.
  void seek_last_of(std::string_view prefix);
  // To the first key that is not before `key`, and the last one that is not behind it; `key` may
  // lie outside of the prefix.
  void seek(std::string_view key);
  void seek_back(std::string_view key) {
    cursor_->seek_for_prev(storage::meta_key(keyspace_, key));
  }
  void seek_behind(std::string_view key);
  void next() { cursor_->next(); }

  // Require valid(); good until the next move.
  std::string_view key() const { return storage::user_key_of(cursor_->key()); }
  std::string_view record() const { return cursor_->value(); }  // as it is stored
  // The record, with a payload that is good until the next move. False when it is unreadable, which
  // latches.
  [[nodiscard]] bool read(storage::Metadata* metadata) const;

 private:
  storage::Reader& data_;
  const storage::KeyspaceId keyspace_;
  const std::string begin_;
  std::unique_ptr<storage::Cursor> cursor_;
};

// Those that have expired included, as DBSIZE counts.
uint64_t count_keys(storage::Reader& data, storage::KeyspaceId keyspace);

// Moves `walk`, which must be over the whole keyspace, to a key chosen at random without a walk of
// them all: it descends the tree of the keys' bytes, each time to a child as likely as the others.
// Uniform where subtrees are of like size. Not valid: there is no key.
void seek_random(KeyWalk& walk, std::mt19937_64& random);

}  // namespace ingot::types
