// Reading what was overwritten, some keys at a time, and walks that count a keyspace.
#include "src/exec/settling.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <utility>

#include "src/contract/thresholds.h"
#include "src/data/store.h"
#include "storage/no_wait_reads.h"
#include "storage/reader.h"

namespace ingot::exec {

using storage::KeyspaceId;
using storage::Lookup;
using storage::Space;
using storage::Tier;
using types::KeyWriter;

namespace {

// Reads are behind when more than this is open. A view from before an overwrite keeps the space of
// what was dropped since.
constexpr uint64_t kPendingMax = 64 << 10;
constexpr size_t kPendingBytesMax = 4 << 20;
constexpr uint64_t kPendingMs = 2'000;
// With `key-count estimate`: a disk that takes so long has better things to do, its merges.
constexpr uint64_t kPendingMsOfEstimate = 100;
// How long reads are measured before it is told from their rate that they will be behind, and when
// that begins anew.
constexpr uint64_t kMeasuredMinMs = 100;
constexpr uint64_t kMeasuredMaxMs = 1'000;
constexpr size_t kUnderWayOnRing = 32;  // others read as well
constexpr int64_t kRecountRestMinMs = 1'000;
constexpr int64_t kRecountRestMaxMs = 300'000;
constexpr std::chrono::milliseconds kWalkTurn{50};
constexpr size_t kWalkedBetweenLooks = 256;

uint64_t ms_since(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                   std::chrono::steady_clock::now() - start)
                                   .count());
}

std::set<KeyspaceId> keyspaces_of(const std::vector<types::Unread>& keys) {
  std::set<KeyspaceId> keyspaces;
  for (const types::Unread& key : keys) keyspaces.insert(key.keyspace);
  return keyspaces;
}

}  // namespace

Settling::Settling(Services& services, BatchRead batch_read, Counted counted)
    : services_(services),
      batch_read_(std::move(batch_read)),
      counted_(std::move(counted)),
      recount_rest_ms_(kRecountRestMinMs) {
  for (const auto& [keyspace, counts] : services.data.store.initial_state().counts) {
    if (!counts.settled) open_[keyspace].lost = true;
  }
  note_lost();
}

KeyWriter::Overwrites Settling::allowed() const {
  if (!services_.data.store.can_probe()) return KeyWriter::Overwrites::kRead;
  // What expires leaves entries in the expiry index that only settling removes.
  return any_lost_ ? KeyWriter::Overwrites::kReadIfExpiring : KeyWriter::Overwrites::kUnread;
}

bool Settling::is_counted(KeyspaceId keyspace) const {
  const auto found = open_.find(keyspace);
  return found == open_.end() || !found->second.lost || recounting_ == keyspace;
}

bool Settling::is_settled(KeyspaceId keyspace) const {
  return !open_.contains(keyspace);
}

bool Settling::wants(const std::vector<types::Unread>& keys) const {
  return std::ranges::any_of(keys, [&](const auto& key) { return is_counted(key.keyspace); });
}

bool Settling::keeps_up(const OverwrittenBatch& batch) const {
  std::lock_guard lock(mutex_);
  if (pending_ == 0) return true;  // one command may have very many
  const uint64_t pending = pending_ + batch.keys.size();
  if (pending > kPendingMax || bytes_ + batch.bytes > kPendingBytesMax) return false;
  const uint64_t measured_ms = ms_since(measured_since_);
  if (under_way_ == 0 || measured_ms < kMeasuredMinMs) return true;
  const bool exact = services_.data.config.settings()->key_count == settings::KeyCount::kExact;
  const uint64_t pending_ms = exact ? kPendingMs : kPendingMsOfEstimate;
  return pending * measured_ms <= pending_ms * (measured_reads_ + 1);
}

void Settling::add(std::shared_ptr<const data::View> view, std::vector<types::Unread> keys) {
  std::erase_if(keys, [&](const auto& key) { return !is_counted(key.keyspace); });
  if (keys.empty()) return;
  auto batch = std::make_shared<OverwrittenBatch>();
  batch->view = std::move(view);
  batch->keys = std::move(keys);
  batch->old.resize(batch->keys.size());
  batch->left = batch->keys.size();
  batch->generation = generation_;
  batch->begun_ms = services_.data.store.now_ms();
  for (const types::Unread& key : batch->keys) batch->bytes += sizeof(key) + key.key.size();
  for (const KeyspaceId keyspace : keyspaces_of(batch->keys)) ++open_[keyspace].pending;
  if (!keeps_up(*batch)) return lose_all();
  {
    std::lock_guard lock(mutex_);
    bytes_ += batch->bytes;
    pending_ += batch->keys.size();
    batches_.push_back(std::move(batch));
  }
  read_on();
}

bool Settling::take(const OverwrittenBatch& batch) {
  if (batch.generation != generation_) return false;
  if (batch.failed) {
    lose_all();
    return false;
  }
  for (const KeyspaceId keyspace : keyspaces_of(batch.keys)) {
    Open& open = open_[keyspace];
    if (--open.pending == 0 && !open.lost) open_.erase(keyspace);
  }
  return true;
}

void Settling::lose(const std::vector<KeyspaceId>& keyspaces) {
  for (const KeyspaceId keyspace : keyspaces) open_[keyspace].lost = true;
  lose_all();
}

// All that are open: what is being read of one is mixed with what is of others.
void Settling::lose_all() {
  if (!any_lost_) recount_ms_ = services_.data.store.now_ms() + recount_rest_ms_;
  ++generation_;
  recounting_.reset();
  for (auto& [keyspace, open] : open_) open = {.pending = 0, .lost = true};
  note_lost();
  std::lock_guard lock(mutex_);
  for (const auto& batch : std::exchange(batches_, {})) {
    bytes_ -= batch->bytes;
    pending_ -= batch->keys.size();
  }
}

void Settling::note_lost() {
  any_lost_ = std::ranges::any_of(open_, [](const auto& open) { return open.second.lost; });
}

void Settling::read_on() {
  const data::ReaderPool& readers = services_.data.readers;
  const size_t under_way_max = readers.has_ring()
                                   ? kUnderWayOnRing
                                   : static_cast<size_t>(std::max(1, readers.threads() / 2));
  std::vector<data::ReaderPool::Lookup> lookups;
  {
    std::lock_guard lock(mutex_);
    if (under_way_ == 0 || ms_since(measured_since_) > kMeasuredMaxMs) {
      measured_since_ = std::chrono::steady_clock::now();
      measured_reads_ = 0;
    }
    while (under_way_ < under_way_max && !batches_.empty() && !stopping_) {
      const auto& batch = batches_.front();
      lookups.push_back(lookup(batch, batch->next++));
      ++under_way_;
      if (batch->next == batch->keys.size()) batches_.pop_front();
    }
  }
  if (!lookups.empty()) services_.data.readers.look_up(std::move(lookups));
}

data::ReaderPool::Lookup Settling::lookup(std::shared_ptr<OverwrittenBatch> batch, size_t index) {
  auto work = [this, batch = std::move(batch), index, runs = 0U]() mutable {
    const bool waits = storage::NoWaitReads::current() == nullptr;
    if (read(*batch, index, waits ? Tier::kDisk : Tier::kCacheOnly) != Lookup::kMiss) {
      end_read(batch);
    } else if (++runs < contract::kLookupRuns) {
      return false;
    } else {
      services_.data.readers.submit([this, batch, index] {
        read(*batch, index, Tier::kDisk);
        end_read(batch);
      });
    }
    return true;
  };
  return {.work = std::move(work), .reads = {}};
}

Lookup Settling::read(OverwrittenBatch& batch, size_t index, Tier tier) {
  const types::Unread& key = batch.keys[index];
  std::string record;
  const Lookup found = services_.data.store.engine().get(batch.view->snapshot(), Space::kMeta,
                                                         storage::meta_key(key.keyspace, key.key),
                                                         tier, &record, nullptr);
  storage::Metadata old;
  if (found == Lookup::kFound && storage::decode_metadata(record, &old)) {
    batch.old[index] = {.expire_ms = old.expire_ms, .indexed_ms = old.indexed_ms};
  } else if (found != Lookup::kAbsent && found != Lookup::kMiss) {
    batch.failed = true;
  }
  return found;
}

void Settling::end_read(const std::shared_ptr<OverwrittenBatch>& batch) {
  const bool is_whole = batch->left.fetch_sub(1) == 1;
  {
    std::lock_guard lock(mutex_);
    --under_way_;
    ++measured_reads_;
    if (is_whole) {
      bytes_ -= batch->bytes;
      pending_ -= batch->keys.size();
    }
  }
  if (is_whole) {
    batch->view.reset();
    batch_read_(batch);
  }
  read_on();
}

int64_t Settling::next_recount_ms() const {
  return any_lost_ && !walking_ ? recount_ms_ : std::numeric_limits<int64_t>::max();
}

void Settling::recount(const types::KeyspaceState& state) {
  if (next_recount_ms() > services_.data.store.now_ms()) return;
  std::erase_if(open_, [&](const auto& open) {  // of databases that were flushed
    return open.second.lost &&
           std::ranges::find(state.databases, open.first) == state.databases.end();
  });
  note_lost();
  const auto lost = std::ranges::find_if(open_, [](const auto& open) { return open.second.lost; });
  if (lost == open_.end()) return;
  const KeyspaceId keyspace = lost->first;
  const auto noted = state.counts.find(keyspace);
  if (noted == state.counts.end()) return;
  recounting_ = keyspace;
  walking_ = true;
  auto recount = std::make_shared<Recount>();
  recount->view = services_.data.store.view();
  recount->keyspace = keyspace;
  recount->noted = noted->second;
  recount->generation = generation_;
  recount->next = storage::meta_key(keyspace, {});
  walk_on(std::move(recount));
}

bool Settling::take(const Recount& recount) {
  walking_ = false;
  const int64_t now_ms = services_.data.store.now_ms();
  if (recount.failed || recount.generation != generation_) {
    // What was overwritten since it began has been counted for it.
    if (recount.generation == generation_) lose_all();
    recount_ms_ = now_ms + recount_rest_ms_;
    recount_rest_ms_ = std::min(2 * recount_rest_ms_, kRecountRestMaxMs);
    return false;
  }
  recounting_.reset();
  recount_ms_ = now_ms;
  recount_rest_ms_ = kRecountRestMinMs;
  const auto open = open_.find(recount.keyspace);
  open->second.lost = false;
  if (open->second.pending == 0) open_.erase(open);
  note_lost();
  return true;
}

// In turns: a walk over a large keyspace would keep others' long work waiting.
void Settling::walk_on(std::shared_ptr<Recount> recount) {
  services_.data.readers.submit(
      [this, recount = std::move(recount)]() mutable {
        if (!walk(*recount)) return walk_on(std::move(recount));
        recount->view.reset();
        counted_(std::move(recount));
      },
      data::Work::kLong);
}

bool Settling::walk(Recount& recount) {
  const auto ends = std::chrono::steady_clock::now() + kWalkTurn;
  storage::EngineReader data(services_.data.store.engine(), recount.view->snapshot(), Tier::kDisk,
                             storage::CacheUse::kPassBy);
  const auto cursor =
      data.cursor(Space::kMeta, recount.next, storage::meta_key_end(recount.keyspace));
  size_t walked = 0;
  for (cursor->seek(recount.next); cursor->valid(); cursor->next()) {
    if (++walked % kWalkedBetweenLooks == 0) {
      if (stopping_ || recount.generation != generation_) break;
      if (std::chrono::steady_clock::now() >= ends) {
        recount.next = cursor->key();
        return false;
      }
    }
    storage::Metadata record;
    recount.failed = recount.failed || !storage::decode_metadata(cursor->value(), &record);
    ++recount.found.keys;
    recount.found.expires += record.expire_ms != 0;
  }
  data.check(*cursor);
  recount.failed = recount.failed || data.failed() || cursor->valid();
  return true;
}

}  // namespace ingot::exec
