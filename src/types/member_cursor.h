// The members of a set or a sorted set in the order of a member table, whichever form they have:
// those of several keys come in the same order and can be merged.
//
// One thread at a time. Failures latch in the storage::Reader.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/types/keyspace.h"

namespace ingot::types {

class MemberCursor {
 public:
  // Requires a set or a sorted set; both must outlive this. Starts invalid: seek first.
  MemberCursor(storage::Reader& data, const Record& record);

  void seek(std::string_view element);  // to the first that is not before it
  bool valid() const { return is_large() ? at_->valid() : next_ < small_.size(); }
  void next();  // requires valid()

  // Require valid(); good until the next move.
  std::string_view element() const;  // member_element() of the member
  double score() const;              // 1 in a set

 private:
  bool is_large() const { return at_ != nullptr; }

  storage::Reader& data_;
  const Record& record_;
  std::unique_ptr<storage::Cursor> at_;
  std::vector<std::pair<std::string, double>> small_;
  size_t next_ = 0;
};

}  // namespace ingot::types
