// The counts of a large order (storage/order_counts.h) as whoever is changing it sees them: what is
// known of the committed ones, with the leaves that a group of commands has changed since.
//
// For one command, like the order it is asked for. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/codec.h"
#include "storage/order_counts.h"
#include "storage/reader.h"

namespace ingot::types {

class PendingCounts {
 public:
  using Counts = storage::OrderCounts;

  // Of the order as the reader finds it at this revision. The reader must outlive this.
  PendingCounts(storage::Reader& data, storage::CollectionId id, uint32_t revision);

  // As OrderCounts has them; nothing where too much has changed.
  Counts::Answer leaf_of(std::string_view bound);
  Counts::Answer leaf_at(uint64_t rank);
  // What leaf_of() or leaf_at() missed: of the committed order, as it is at that revision.
  void put(int level, std::vector<Counts::Node> nodes);
  void forget();

 private:
  // A leaf that has changed, in its place among those that are committed.
  struct Changed {
    std::string bound;
    std::optional<uint64_t> count;  // nothing: it has gone
    uint64_t before = 0;            // items in the committed leaves before it
    uint64_t count_before = 0;      // 0 of a new one
  };

  // False when the counts are of no use; then `answer` is what there is to say.
  bool load(Counts::Answer* answer);
  const Changed* changed(std::string_view bound) const;

  storage::Reader& data_;
  Counts* const counts_;
  const storage::CollectionId id_;
  uint32_t revision_;     // what is committed
  bool is_told_ = false;  // that it has changed since
  bool known_ = true;
  std::optional<std::vector<Changed>> changed_;  // by bound, once they are looked at
};

}  // namespace ingot::types
