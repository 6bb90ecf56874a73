// The in-memory engine: for quick tests, the thread sanitizer and fault injection. Nothing
// survives its destructor. See storage/engine.h for the contract.
//
// Every space is an ordered map from (key, descending sequence number) to a value or its absence;
// a reader at a snapshot takes the newest version that is not younger. Versions that no snapshot
// can see are dropped by later writes.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>

#include "storage/engine.h"

namespace ingot::storage {

class MemoryEngine : public Engine {
 public:
  explicit MemoryEngine(const EngineOptions& options);

  // Hooks for tests; any thread.

  // From now on a key for which `cold` answers true is a kMiss for cache-only reads until a
  // disk-tier read touched it, present or absent. Empty: everything is in memory again.
  void set_cold(std::function<bool(Space, std::string_view)> cold);

  // The next write() fails with `status` and changes nothing. kNoSpace also refuses every write
  // until try_resume(), kIo every write there will be, as after a failed sync.
  void fail_next_write(Status status);

  std::string_view name() const override { return "memory"; }
  std::string version() const override { return "1"; }
  Capabilities capabilities() const override { return {.probe = true}; }

  Lookup get(const Snapshot* snapshot, Space space, std::string_view key, Tier tier,
             std::string* value, Status* error) override;
  std::unique_ptr<Cursor> new_cursor(Space space, const CursorOptions& options) override;
  std::unique_ptr<Snapshot> new_snapshot() override;
  std::unique_ptr<Batch> new_batch() override;
  Status flush() override { return {}; }
  size_t add_dead(GarbageKind kind, std::span<const uint64_t> ids) override;
  Status reclaim(GarbageKind kind, Reclaimed* out) override;
  Status make_room() override { return {}; }
  Status compact(Space /*space*/, const KeyRange& /*range*/) override { return {}; }
  Status checkpoint(const std::string& path) override;
  EngineStats stats() const override;
  uint64_t memory_bytes() const override;
  void reset_stats() override;
  void set_cache_bytes(uint64_t bytes) override { cache_capacity_ = bytes; }
  void set_compaction_rate(uint64_t /*bytes_per_second*/) override {}

 protected:
  Status do_write(const Batch& batch, Durability durability) override;
  Status do_sync() override;
  Status do_try_resume() override;

 private:
  friend class MemoryCursor;
  friend class MemorySnapshot;

  struct VersionKey {
    std::string key;
    uint64_t sequence;
  };
  // Newest version of a key first. Transparent: a lookup copies no key.
  struct VersionOrder {
    using is_transparent = void;
    using View = std::pair<std::string_view, uint64_t>;
    static View view(const VersionKey& k) { return {k.key, k.sequence}; }
    static View view(const View& v) { return v; }
    bool operator()(const auto& a, const auto& b) const {
      const View x = view(a);
      const View y = view(b);
      return x.first != y.first ? x.first < y.first : x.second > y.second;
    }
  };
  using Versions = std::map<VersionKey, std::optional<std::string>, VersionOrder>;

  Versions& versions(Space space) { return spaces_[static_cast<size_t>(space)]; }
  uint64_t pin_latest();  // registers a snapshot and answers its sequence number
  void unpin(uint64_t sequence);

  // All under mutex_, shared or exclusive as they change anything.
  const std::string* find(Space space, std::string_view key, uint64_t sequence);
  void apply(Space space, std::string_view key, std::optional<std::string> value);
  void drop_unseen_versions(Space space, std::string_view key);
  void sweep();

  bool is_cold(Space space, std::string_view key, Tier tier);

  mutable std::shared_mutex mutex_;
  std::array<Versions, kSpaceCount> spaces_;        // guarded by mutex_
  uint64_t sequence_ = 0;                           // guarded by mutex_: of the newest write
  uint64_t bytes_ = 0;                              // guarded by mutex_: of all keys and values
  std::map<GarbageKind, std::set<uint64_t>> dead_;  // guarded by mutex_
  // Guarded by mutex_: keys with versions that only a snapshot keeps.
  std::set<std::pair<Space, std::string>, std::less<>> kept_for_snapshots_;

  mutable std::mutex pins_mutex_;  // taken after mutex_ where both are
  std::multiset<uint64_t> pins_;   // guarded by pins_mutex_: sequence numbers of live snapshots
  bool pins_released_ = false;     // guarded by pins_mutex_: since the last sweep

  std::mutex hooks_mutex_;                                     // taken last
  std::function<bool(Space, std::string_view)> cold_;          // guarded by hooks_mutex_
  std::set<std::pair<Space, std::string>, std::less<>> warm_;  // guarded by hooks_mutex_
  std::optional<Status> next_failure_;                         // guarded by hooks_mutex_
  Status refusal_;                                             // guarded by hooks_mutex_

  // Atomic because they are counted outside of any lock.
  std::atomic<bool> has_cold_ = false;  // cold_ is set: lets ordinary reads pass hooks_mutex_ by
  std::atomic<uint64_t> cache_capacity_;
  std::atomic<uint64_t> hits_ = 0;
  std::atomic<uint64_t> misses_ = 0;
  std::atomic<uint64_t> bytes_written_ = 0;
};

}  // namespace ingot::storage
