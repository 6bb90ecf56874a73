// Finding the keys that are not in memory, and loading them in the pool until the last has come.
#include "src/exec/prefetch.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "src/contract/table.h"
#include "src/contract/thresholds.h"
#include "src/data/reader_pool.h"
#include "src/data/store.h"
#include "storage/no_wait_reads.h"

namespace ingot::exec {

using storage::Lookup;
using storage::Space;
using storage::Tier;

namespace {

constexpr size_t kLookedAtMax = 4096;  // keys of a command: the others are read in their turn

struct Countdown {
  std::atomic<size_t> left;
  std::vector<std::string> keys;
  std::move_only_function<void()> then;
};

}  // namespace

bool may_leave_unread(const contract::CommandRow& row, contract::Args args) {
  const auto is_unread = [&](const contract::KeySpec& spec) {
    const bool varies = (spec.flags & contract::key::kVariableFlags) != 0;
    return ((varies ? row.key_flags(args) : spec.flags) & contract::key::kUnread) != 0;
  };
  return row.keys.size() != 0 && std::ranges::all_of(row.keys, is_unread);
}

void add_cold_keys(Services& services, const contract::CommandRow& row, contract::Args args,
                   storage::KeyspaceId keyspace, std::vector<std::string>* meta_keys) {
  const auto is_cold = [&](const std::string& meta_key) {
    std::string value;
    if (services.data.store.cache().peek({Space::kMeta, meta_key}, &value)) return false;
    return !services.data.store.can_probe() ||
           services.data.store.engine().get(nullptr, Space::kMeta, meta_key, Tier::kCacheOnly,
                                            &value, nullptr) == Lookup::kMiss;
  };
  // Of a key that could stay unread it may have been the marker that was missing.
  const bool with_markers = services.data.store.can_probe() && may_leave_unread(row, args);
  size_t looked_at = 0;
  for (const contract::KeyAt& key : contract::keys_of(row, args)) {
    if (meta_keys->size() >= kPrefetchKeysMax || looked_at++ == kLookedAtMax) return;
    std::string meta_key = storage::meta_key(keyspace, args[key.index]);
    if (!is_cold(meta_key)) continue;
    meta_keys->push_back(std::move(meta_key));
    if (!with_markers) continue;
    std::string marker_key = storage::marker_key(keyspace, args[key.index]);
    if (is_cold(marker_key)) meta_keys->push_back(std::move(marker_key));
  }
}

void prefetch(Services& services, std::vector<std::string> meta_keys,
              std::move_only_function<void()> then) {
  if (meta_keys.empty()) return then();
  auto shared = std::make_shared<Countdown>();
  shared->left = meta_keys.size();
  shared->keys = std::move(meta_keys);
  shared->then = std::move(then);
  std::vector<data::ReaderPool::Lookup> lookups;
  lookups.reserve(shared->keys.size());
  for (size_t i = 0; i < shared->keys.size(); ++i) {
    const auto read = [&services, shared, i, runs = 0u]() mutable {
      // An error shows again, and is answered, when the command itself reads.
      std::string value;
      const Tier tier = storage::NoWaitReads::current() == nullptr ? Tier::kDisk : Tier::kCacheOnly;
      const Lookup found = services.data.store.engine().get(nullptr, Space::kMeta, shared->keys[i],
                                                            tier, &value, nullptr);
      if (found == Lookup::kMiss && ++runs < contract::kLookupRuns) return false;
      if (shared->left.fetch_sub(1, std::memory_order_acq_rel) == 1) shared->then();
      return true;
    };
    lookups.push_back({.work = read, .reads = {}});
  }
  services.data.readers.look_up(std::move(lookups));
}

}  // namespace ingot::exec
