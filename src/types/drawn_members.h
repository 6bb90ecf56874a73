// Members of large sets that were drawn ahead, for SPOP: a draw by itself costs some four seeks, a
// window of neighbours little more. Members stand in the order of their hashes, so neighbours have
// nothing in common, and each window is taken whole: in the long run all members come as often. A
// small set that is being emptied is taken whole: each draw would walk over all that has gone.
//
// A hint of what there was, not changed by anybody else: next() looks whether a member is still
// there. The writer's thread.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "storage/codec.h"
#include "storage/overlay.h"

namespace ingot::types {

class DrawnMembers {
 public:
  // One of the `count` members of a set in the large form. Nothing when reading failed or the
  // windows that were tried have none: then it has to be drawn by itself. So does the first of a
  // set that `is_small`, and the next when anything else has changed its count meanwhile: each of
  // its members has the same chance.
  std::optional<std::string> next(storage::Overlay& overlay, storage::CollectionId id,
                                  uint64_t count, bool is_small, std::mt19937_64& random);

 private:
  struct Drawn {
    storage::CollectionId id;
    std::vector<std::string> members;
    uint64_t left = 0;  // members of the set, once the one that was asked for last has gone
  };
  static constexpr size_t kSetsMax = 16;

  Drawn& of(storage::CollectionId id);

  std::list<Drawn> sets_;  // the one that was asked for last in front
};

}  // namespace ingot::types
