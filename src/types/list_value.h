// What a list is on disk. A small one stands in its key's record: its elements packed (packed.h).
// One that would pass the limit becomes large for good: its elements stand in the data space in the
// order of their labels,
//
//   collection id (u64be) | label (u64be)  ->  flag byte (0) | element
//
// and Metadata::payload notes the ends: first label (u64le) | last label (u64le) | bits.
// A new list is dense: its labels lie kListStride apart, so that an index is arithmetic, and what
// one group of commands pushes, or a builder makes, shares records (list_node.h). An insertion
// or a removal in the middle makes it gapped: each element has a record, labels are any rising
// numbers, and a CountedOrder of them finds an index. Pushing and popping costs the same however
// long the list, and walks over nothing that was removed, because the ends are noted.
//
// One thread at a time. Failures latch in the storage::Reader.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/types/counted_order.h"
#include "src/types/keyspace.h"
#include "storage/codec.h"

namespace ingot::types {

enum class ListEnd : uint8_t { kLeft, kRight };
inline ListEnd opposite(ListEnd end) {
  return end == ListEnd::kLeft ? ListEnd::kRight : ListEnd::kLeft;
}

// The ends of a large list.
struct ListBounds {
  uint64_t first = 0;
  uint64_t last = 0;
  bool gapped = false;
  // Whether there may be nodes of that side; a gapped list has none.
  bool left_nodes = false;
  bool right_nodes = false;
  // The node that holds the element at that end may have others, which were popped, beyond it.
  bool popped_left = false;
  bool popped_right = false;

  bool has_nodes() const { return left_nodes || right_nodes; }
};

struct ListElements;

// The key of a record of a large list.
class ListKey {
 public:
  ListKey(storage::CollectionId id, uint64_t label);
  operator std::string_view() const { return {bytes_.data(), bytes_.size()}; }  // lives in this

 private:
  std::array<char, 16> bytes_;
};

class ListReader {
 public:
  // Requires a list or no record; both must outlive this.
  ListReader(storage::Reader& data, const Record& record);

  bool is_large() const { return record_.collection().has_value(); }
  uint64_t length() const { return length_; }
  // Requires index < length().
  bool get(uint64_t index, std::string* element);
  // Calls `each` with the elements from `index` on, until it returns false.
  using Each = std::function<bool(std::string_view element)>;
  void walk(uint64_t index, const Each& each);
  // From the last element to the first.
  void walk_back(const Each& each);
  // Of a large list: calls `each` with labels and elements, from the last one on when `back`, until
  // it returns false.
  using EachPlaced = std::function<bool(uint64_t label, std::string_view element)>;
  void walk_placed(bool back, const EachPlaced& each);
  const ListBounds& bounds() const { return bounds_; }  // of a large list
  // Of a large list: the records that hold the elements from one index to before another, among
  // which others may stand; theirs have the labels from `first` to `last`.
  struct Stretch {
    std::string lower, upper;  // keys
    uint64_t first, last;
  };
  Stretch stretch(uint64_t begin, uint64_t end);  // begin < end <= length()

 private:
  uint64_t label_at(uint64_t index);

  storage::Reader& data_;
  const Record& record_;
  ListBounds bounds_;
  uint64_t length_ = 0;
};

// Changes one list; finish() makes the changes its key's record.
class ListWriter {
 public:
  // `before` is what find() gave, or null: then the list begins empty. It and `key` must outlive
  // this.
  ListWriter(KeyWriter& keys, int db, std::string_view key, const Record* before,
             uint64_t inline_max_bytes);

  uint64_t length() const { return collection_ ? collection_->count : small_.size(); }
  // Elements may share records.
  bool has_nodes() const { return bounds_.has_nodes(); }
  void push(ListEnd end, std::string_view element);
  // Requires an element. Null: it is not wanted.
  void pop(ListEnd end, std::string* element);
  // Requires index < length().
  void set(uint64_t index, std::string_view element);
  // Beside the first element that equals `pivot`; false when there is none.
  bool insert(bool before, std::string_view pivot, std::string_view element);
  // Beside the element of a large list that has this label.
  void insert_at(bool before, uint64_t label, std::string_view element);
  // The elements of a large list that have these labels, which rise.
  void remove_at(const std::vector<uint64_t>& labels);
  // The first `count` of those that equal `element`, from the end when negative, all for 0. How
  // many went.
  uint64_t remove(int64_t count, std::string_view element);
  // Stores what has changed. False when nothing is left, and so no key.
  bool finish();

 private:
  using Placed = std::vector<std::pair<uint64_t, std::string>>;  // label, record

  storage::CollectionId id() const { return collection_->id; }
  CountedOrderWriter order();
  std::unique_ptr<storage::Cursor> cursor();
  void make_large();
  void make_gapped();
  void put(uint64_t label, std::string_view element);
  void push_large(ListEnd end, std::string_view element);
  void push_dense(ListEnd end, uint64_t label, std::string_view element);
  void put_apart(const ListElements& node);
  void forget_popped(ListEnd end);
  void set_large(uint64_t label, std::string_view element);
  void read_ahead(ListEnd end, uint64_t label);
  void take_out(uint64_t label);
  uint64_t label_at(uint64_t index);
  uint64_t room_between(uint64_t left, uint64_t right);
  void spread(uint64_t left);
  std::vector<uint64_t> matching(int64_t count, std::string_view element);
  bool& popped(ListEnd end) {
    return end == ListEnd::kLeft ? bounds_.popped_left : bounds_.popped_right;
  }

  KeyWriter& keys_;
  const int db_;
  const std::string_view key_;
  const Record* const before_;
  const uint64_t inline_max_bytes_;
  storage::Metadata after_;
  std::deque<std::string> small_;
  size_t small_bytes_ = 0;  // packed
  std::optional<storage::Metadata::Collection> collection_;
  ListBounds bounds_;
  bool changed_ = false;
};

}  // namespace ingot::types
