// Where commands run beside the writer, of whom nothing is kept but what the caller takes out: an
// overlay of its own, over a state that somebody keeps a view of.
//
// One thread.
#pragma once

#include <cstdint>
#include <utility>

#include "src/types/keyspace.h"
#include "storage/engine.h"
#include "storage/overlay.h"

namespace ingot::data {

class Sandbox {
 public:
  // Nothing is stored under this one.
  static constexpr storage::CollectionId kId = UINT64_MAX - 1;

  // `snapshot` null: the latest state. Both must outlive this. The collections that are made in it
  // have the id `id`, all the same one. `counts`: as for Overlay.
  Sandbox(storage::Engine& engine, const storage::Snapshot* snapshot, types::DatabaseMap databases,
          int64_t now_ms, storage::CollectionId id = kId, storage::OrderCounts* counts = nullptr)
      : overlay_(engine, snapshot, storage::Tier::kDisk, nullptr, counts),
        ids_(id),
        state_{.databases = std::move(databases), .keyspace_ids = &keyspace_ids_},
        keys_(overlay_, state_, ids_, effects_, now_ms, nullptr, /*collect_touched=*/false) {}

  types::KeyWriter& keys() { return keys_; }
  storage::Overlay& overlay() { return overlay_; }

  // As Overlay::take_elements().
  void take_elements(const storage::Overlay::EachChange& each) {
    overlay_.take_elements(each);
    state_.end_group();
  }

 private:
  class OneId : public types::FreshIds {
   public:
    explicit OneId(uint64_t id) : id_(id) {}
    uint64_t next(storage::Status* /*failure*/) override { return id_; }

   private:
    const uint64_t id_;
  };

  // Nothing is stored in this keyspace: what is flushed in a sandbox is empty then.
  static constexpr storage::KeyspaceId kEmptyKeyspace = storage::kMarkersBit - 2;

  storage::Overlay overlay_;
  OneId ids_;
  OneId keyspace_ids_{kEmptyKeyspace};
  types::KeyspaceState state_;
  types::Effects effects_;
  types::KeyWriter keys_;
};

}  // namespace ingot::data
