// Redis' packed sequences of strings and integers: the listpack, which it writes now, and the ones
// of earlier versions (ziplist, zipmap, intset), which it still reads. Pure; nothing is trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::types::rdb {

// listpack  u32le bytes in all | u16le entries (65535: count them) | entries | FF
// entry     what it is and its bytes | the length of that, to be read backwards
class ListpackWriter {
 public:
  ListpackWriter();

  void add(std::string_view text);  // stands as an integer when it is one
  void add(int64_t number);
  size_t bytes() const { return bytes_.size() + 1; }  // with the end
  size_t count() const { return count_; }
  // The finished listpack; the writer is empty then.
  std::string finish();

 private:
  void end_entry(size_t begin);

  std::string bytes_;
  size_t count_ = 0;
};

using Items = std::vector<std::string>;

// Each replaces *items; false when the bytes are not of that form through and through, or have more
// than `items_max`, and then *items has so many.
[[nodiscard]] bool read_listpack(std::string_view bytes, Items* items, size_t items_max = SIZE_MAX);
[[nodiscard]] bool read_ziplist(std::string_view bytes, Items* items, size_t items_max = SIZE_MAX);
// Field, value, field...
[[nodiscard]] bool read_zipmap(std::string_view bytes, Items* items, size_t items_max = SIZE_MAX);
[[nodiscard]] bool read_intset(std::string_view bytes, Items* items, size_t items_max = SIZE_MAX);
// Integers in ascending order.
std::string write_intset(const std::vector<int64_t>& numbers);

}  // namespace ingot::types::rdb
