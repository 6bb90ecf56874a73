// The checksum of Redis' dumps: a CRC-64 (polynomial ad93d23594c935a9, reflected) of bytes that
// pass by, eight at a time. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace ingot::types::rdb {

class RunningSum {
 public:
  void pass(std::string_view piece);
  uint64_t value() const { return sum_; }

 private:
  uint64_t sum_ = 0;
};

}  // namespace ingot::types::rdb
