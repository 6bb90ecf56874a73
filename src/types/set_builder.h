// Makes a set of its members, given one by one.
//
// One thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/types/built_value.h"
#include "src/types/set_value.h"

namespace ingot::types {

class SetBuilder {
 public:
  SetBuilder(const SetLimits& limits, PutElement put) : limits_(limits), put_(std::move(put)) {}

  void add(std::string_view member);  // each once
  BuiltValue finish();

 private:
  void put(std::string_view member);

  const SetLimits limits_;
  const PutElement put_;
  std::vector<std::string> small_;
  size_t small_bytes_ = 0;
  uint64_t size_ = 0;
  bool is_large_ = false;
  bool limit_passed_ = false;
};

// What is left of a set without the members that go, counted in `changes`.
using MemberGoes = std::function<bool(std::string_view member)>;
BuiltValue rest_of_set(storage::Reader& data, const Record& record, const SetLimits& limits,
                       const PutElement& put, const MemberGoes& goes);

}  // namespace ingot::types
