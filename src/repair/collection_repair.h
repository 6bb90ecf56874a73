// A large value made anew of those of its elements that were salvaged: counts, ends and orders are
// those of what is left. Everything but the elements themselves is derived again.
//
// One thread. Memory: the groups and consumers of one stream, else an element.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/types/built_value.h"
#include "src/types/keyspace.h"
#include "storage/salvage/salvage.h"

namespace ingot::repair {

struct RepairedValue {
  types::BuiltValue value;  // size 0: nothing is left. Its collection's id is the caller's to fill
  std::vector<std::string> lost;  // what of it was, each a piece of a sentence; empty: nothing
};

class CollectionRepair {
 public:
  // Of the losses those count that touch the collection. All must outlive this, the record as well,
  // which has a collection.
  CollectionRepair(storage::Salvage& salvage, const types::Record& record,
                   const types::PutElement& put);

  RepairedValue make();

 private:
  // The later one of two records has the higher sequence.
  using Each =
      std::function<void(std::string_view element, std::string_view value, uint64_t sequence)>;

  void walk(const Each& each);
  void make_string();
  void make_list();
  void make_members();  // a set or a hash
  void make_sorted_set();
  void lose(std::string text) { made_.lost.push_back(std::move(text)); }
  void lose_difference(uint64_t found, const std::string& where = {});
  void finish(uint64_t size);

  storage::MergedRecords& records_;
  const types::Record& record_;
  const types::PutElement& put_;
  const uint64_t expected_;                   // elements, as the key's record counts them
  std::vector<const storage::Loss*> losses_;  // that touch it
  uint64_t older_ = 0;       // elements in whose place a younger one may have stood
  uint64_t unreadable_ = 0;  // that are none of such a value
  RepairedValue made_;
};

}  // namespace ingot::repair
