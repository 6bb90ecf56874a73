// A set of its own on one of the engines, for the tests of sets.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/types/collection.h"
#include "src/types/set_value.h"
#include "tests/src/typed_store.h"

namespace ingot::types {

using Members = std::vector<std::string>;
using SetModel = std::set<std::string>;

class OneSet : public TypedStore {
 public:
  OneSet(const std::string& engine, const SetLimits& limits)
      : TypedStore(engine), limits_(limits) {}

  template <typename Change>
  void change(const Change& change) {
    TypedStore::change<SetWriter>(limits_, change);
  }
  bool add(std::string_view member) {
    bool added = false;
    change([&](SetWriter& set) { added = set.add(member); });
    return added;
  }
  bool remove(std::string_view member) {
    bool removed = false;
    change([&](SetWriter& set) { removed = set.remove(member); });
    return removed;
  }
  void add_all(const Members& members) {
    for (const std::string& member : members) REQUIRE(add(member));
  }
  // In the order of a walk; what else the reader tells has to fit.
  Members all() {
    if (!exists()) return {};
    const Record found = record();
    SetReader reader(overlay(), found);
    Members members;
    reader.walk([&](std::string_view member) {
      members.emplace_back(member);
      return true;
    });
    CHECK(reader.size() == members.size());
    REQUIRE_FALSE(overlay().failed());
    return members;
  }
  SetModel sorted() {
    const Members members = all();
    SetModel model(members.begin(), members.end());
    CHECK(model.size() == members.size());
    return model;
  }
  bool contains(std::string_view member) {
    if (!exists()) return false;
    const Record found = record();
    return SetReader(overlay(), found).contains(member);
  }
  std::string_view encoding() { return encoding_name(record()); }
  const SetLimits& limits() const { return limits_; }

 private:
  const SetLimits limits_;
};

inline Members numbered_members(int count) {
  Members members;
  for (int i = 0; i < count; ++i) members.push_back("m" + std::to_string(i));
  return members;
}

inline SetModel model_of(const Members& members) {
  return {members.begin(), members.end()};
}

}  // namespace ingot::types
