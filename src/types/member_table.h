// The large form that hashes, sets and sorted sets share: members of a collection in the data
// space, each with a few bytes of its own. They stand in the order of a hash of the member, so that
// any window of hashes is a random sample and a cursor is a number:
//
//   collection id (u64be) | XXH32 of the member (u32be) | member  ->  flag byte | the type's bytes
//
// A value is passed here whole, with its flag byte. Failures latch in the reader. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "storage/codec.h"
#include "storage/overlay.h"
#include "storage/reader.h"

namespace ingot::types {

uint32_t member_hash(std::string_view member);
std::string member_key(storage::CollectionId id, std::string_view member);
std::string member_element(std::string_view member);  // the key behind the id
std::string_view member_of_element(std::string_view element);
std::string_view member_of(std::string_view member_key);  // requires a whole key
uint32_t hash_of(std::string_view member_key);

class MemberTable {
 public:
  MemberTable(storage::Reader& data, storage::CollectionId id) : data_(data), id_(id) {}

  bool get(std::string_view member, std::string* value) {
    return data_.get(storage::Space::kData, member_key(id_, member), value);
  }
  bool contains(std::string_view member) {
    std::string value;
    return get(member, &value);
  }

  // Calls `each` with every member and value, until it returns false.
  using Each = std::function<bool(std::string_view member, std::string_view value)>;
  void walk(const Each& each);

  // For HSCAN and its like: calls `each` with at least `count` members (if there are as many) from
  // the cursor on. Answers where to go on, 0 at the end; a cursor that we never gave is taken for
  // the nearest. Members with the same hash stay together, so a cursor needs to hold no more.
  using Visit = std::function<void(std::string_view member, std::string_view value)>;
  uint64_t scan(uint64_t cursor, uint64_t count, const Visit& visit);

  // A window of hashes, wherever it may begin, in which so many of `count` members are to be
  // expected: every member is in one as often as any other. [begin, end), as keys.
  struct Window {
    std::string begin, end;
  };
  Window window(std::mt19937_64& random, uint64_t expected, uint64_t count) const;

  // One of the members, each as likely as any other; `count` is how many there are. False only
  // after a failure; that there is none is one.
  bool random(std::mt19937_64& random, uint64_t count, std::string* member, std::string* value);

 private:
  std::unique_ptr<storage::Cursor> cursor() const;

  storage::Reader& data_;
  const storage::CollectionId id_;
  std::unique_ptr<storage::Cursor> sampling_;  // random() keeps it for its next call
};

inline void put_member(storage::Overlay& overlay, storage::CollectionId id, std::string_view member,
                       std::string_view value) {
  overlay.put(storage::Space::kData, member_key(id, member), value);
}
inline void remove_member(storage::Overlay& overlay, storage::CollectionId id,
                          std::string_view member) {
  overlay.remove(storage::Space::kData, member_key(id, member));
}

}  // namespace ingot::types
