// The data as the executors see it: the engine, the map from database numbers to keyspaces, views
// of all three at one state, collection ids, and who still looks at what.
//
// Threads: everything by any thread, except publish_databases(): the writer's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "src/data/view.h"
#include "src/types/access_clock.h"
#include "src/types/keyspace.h"
#include "storage/collection_cache.h"
#include "storage/engine.h"
#include "storage/record_cache.h"

namespace ingot::data {

using ClockMs = std::function<int64_t()>;  // Unix milliseconds

class Store {
 public:
  // Checks or writes the format version, loads the keyspace table. On failure `*error` says why.
  static std::unique_ptr<Store> open(std::unique_ptr<storage::Engine> engine, int databases,
                                     ClockMs clock, storage::Status* error);
  ~Store();

  storage::Engine& engine() { return *engine_; }
  // In front of the engine's metadata space, and of its elements; empty until they are given a
  // capacity.
  storage::RecordCache& cache() { return cache_; }
  storage::CollectionCache& images() { return images_; }
  storage::OrderCounts& order_counts() { return order_counts_; }
  void set_cache_capacity(uint64_t bytes);  // of all three
  // Where cache-only reads go: kDisk for an engine that has no probe.
  storage::Tier probe_tier() const { return probe_tier_; }
  bool can_probe() const { return probe_tier_ == storage::Tier::kCacheOnly; }
  int64_t now_ms() const { return clock_(); }
  // By the writer, before it removes what was due then; and when that was last. Who looks at the
  // latest state by an older clock may find some gone and others, of the same time, not due.
  void note_expiry(int64_t now_ms) { expired_until_ms_.store(now_ms, std::memory_order_release); }
  int64_t expired_until_ms() const { return expired_until_ms_.load(std::memory_order_acquire); }
  types::AccessClock& access() { return access_; }
  types::FreshIds& ids() { return *ids_; }  // of collections
  types::FillingKeyspaces& filling() { return *filling_; }
  const types::KeyspaceState& initial_state() const { return initial_state_; }

  std::shared_ptr<const View> view();
  std::shared_ptr<const Pin> pin();

  // For a probe without a view: the map now, and whether it was the map all along. While it is
  // being replaced nobody can tell without a view.
  struct Databases {
    std::shared_ptr<const types::DatabaseMap> map;
    uint64_t version;  // odd: it is being replaced

    bool settled() const { return version % 2 == 0; }
  };
  Databases databases() const;
  bool databases_still(uint64_t version) const {
    return version_.load(std::memory_order_acquire) == version;
  }

  // Commits a batch that changes the keyspace table: no view sees one without the other. Nobody
  // waits for that: a view that is taken meanwhile asks the table which map is its own.
  storage::Status publish_databases(types::DatabaseMap databases,
                                    const std::function<storage::Status()>& commit);

  // An epoch counts drops: what is dropped now may be reclaimed once oldest_epoch() is past it.
  uint64_t advance_epoch() { return epoch_.fetch_add(1, std::memory_order_acq_rel); }
  uint64_t oldest_epoch() const;  // of the views and pins alive; the current epoch when none is

 private:
  friend class View;
  friend class Pin;
  Store(std::unique_ptr<storage::Engine> engine, ClockMs clock);
  storage::Status check_version(bool* is_new);  // or of an earlier version
  storage::Status load(int databases);
  bool is_at(const storage::Snapshot& snapshot, const types::DatabaseMap& before,
             const types::DatabaseMap& after);
  uint64_t enter();
  void leave(uint64_t epoch);

  std::unique_ptr<storage::Engine> engine_;
  storage::RecordCache cache_{0};
  storage::CollectionCache images_{0};
  storage::OrderCounts order_counts_;
  const ClockMs clock_;
  storage::Tier probe_tier_;
  types::AccessClock access_;
  std::unique_ptr<types::FreshIds> ids_;
  std::unique_ptr<types::FreshIds> keyspace_ids_;
  std::unique_ptr<types::FillingKeyspaces> filling_;
  types::KeyspaceState initial_state_;

  std::atomic<int64_t> expired_until_ms_{0};
  std::atomic<uint64_t> epoch_{1};
  std::atomic<uint64_t> version_{0};
  mutable std::shared_mutex databases_mutex_;            // never held while the engine works
  std::shared_ptr<const types::DatabaseMap> databases_;  // by databases_mutex_
  std::shared_ptr<const types::DatabaseMap>
      next_databases_;  // by databases_mutex_: being committed

  mutable std::mutex epochs_mutex_;
  std::map<uint64_t, size_t> epochs_;  // alive -> how many; by epochs_mutex_
};

}  // namespace ingot::data
