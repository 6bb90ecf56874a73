// What a set is on disk. A small one stands in its key's record: its members packed (packed.h), in
// the order in which they were added, or in numeric order while it is an intset (Redis' intset,
// whose replies are in that order). One that would pass the limit becomes large for good: its
// members are those of a MemberTable with nothing but a flag byte each.
//
// One thread at a time. Failures latch in the storage::Reader.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "src/types/keyspace.h"
#include "src/types/member_table.h"
#include "storage/codec.h"

namespace ingot::types {

// The number that a member of an intset stands for.
std::optional<int64_t> intset_number(std::string_view member);

class SetReader {
 public:
  // Requires a set or no record; both must outlive this.
  SetReader(storage::Reader& data, const Record& record) : data_(data), record_(record) {}

  bool is_large() const { return record_.collection().has_value(); }
  uint64_t size() const;
  bool contains(std::string_view member);
  // Calls `each` with every member until it returns false; in numeric order when Redis would have
  // an intset.
  using Each = std::function<bool(std::string_view member)>;
  void walk(const Each& each);
  // One member, each as likely as any other. False only after a failure.
  bool random(std::mt19937_64& random, std::string* member);

 private:
  storage::Reader& data_;
  const Record& record_;
  std::optional<MemberTable> table_;  // random() keeps it for its next call
};

// When a set takes its other forms: in Ingot, and as OBJECT ENCODING tells.
struct SetLimits {
  uint64_t inline_max_bytes;
  uint64_t intset_entries_max;
};

// Changes one set; finish() makes the changes its key's record.
class SetWriter {
 public:
  // `before` is what find() gave, or null: then the set begins empty.
  SetWriter(KeyWriter& keys, int db, std::string_view key, const Record* before,
            const SetLimits& limits);

  uint64_t size() const { return count_; }
  bool add(std::string_view member);           // true when it was not there
  bool remove(std::string_view member);        // true when it was there
  void remove_drawn(std::string_view member);  // the same of one that is there: it is not looked up
  // Stores what has changed. False when no member is left, and so no key.
  bool finish();

 private:
  struct Place {  // in packed_
    size_t begin, end;
    bool found;
  };
  Place place_of(std::string_view member) const;
  void make_large();

  KeyWriter& keys_;
  const int db_;
  const std::string_view key_;
  const Record* const before_;
  const SetLimits limits_;
  storage::Metadata after_;
  std::string packed_;  // the small form
  uint64_t count_ = 0;
  bool changed_ = false;
};

}  // namespace ingot::types
