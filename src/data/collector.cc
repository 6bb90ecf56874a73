// The collector's thread: sweeping garbage records, waiting until they may go, and reclaiming.
#include "src/data/collector.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/metrics/log.h"

namespace ingot::data {

using storage::GarbageKind;
using storage::KeyRange;
using storage::Space;
using storage::Status;

namespace {

using Steady = std::chrono::steady_clock;

constexpr std::string_view kMarker{"\0", 1};
constexpr int64_t kGatherMs = 2'000;  // how long drops wait for others to share a compaction with
// After a round it rests four times as long as the engine had work with it, up to a limit.
constexpr int64_t kRestFactor = 4;
constexpr int64_t kRestMaxMs = 15'000;
constexpr int64_t kViewPollMs = 50;
constexpr int64_t kRetryMs = 5'000;  // after the engine failed
// Neighbours in the element spaces, reclaimed by one call: bounds its memory, and how long stop()
// waits.
constexpr size_t kPieceIds = 16 << 10;
constexpr size_t kWalkRecords = 16 << 10;  // records of a dead keyspace that one cursor visits
constexpr size_t kTombstonesMax = 100'000;

Status stopped() {
  return {Status::Code::kBusy, "stopping"};
}

int64_t ms_since(Steady::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - start).count();
}

}  // namespace

Collector::Collector(Store& store) : store_(store), engine_(store.engine()) {}

Collector::~Collector() {
  stop();
}

void Collector::start() {
  {
    std::lock_guard lock(mutex_);
    sweep_ = true;  // what an earlier run left over
  }
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "collector");
    run();
  });
}

void Collector::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Collector::stopping() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

bool Collector::pause(int64_t ms) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopping_; });
}

void Collector::dropped(std::span<const storage::CollectionId> collections,
                        std::span<const storage::KeyspaceId> keyspaces) {
  std::lock_guard lock(mutex_);
  if (sweep_) return;  // it will find them
  const size_t before = waiting_.size();
  if (keyspaces.empty() && before + collections.size() <= kRememberedMax) {
    waiting_.insert(waiting_.end(), collections.begin(), collections.end());
  } else {
    waiting_ = {};
    sweep_ = true;
  }
  if (before == 0 || sweep_ || waiting_.size() >= kRoundIds) wake_.notify_all();
}

storage::CollectionId Collector::reserve(Status* failure) {
  std::lock_guard lock(mutex_);
  const storage::CollectionId id = store_.ids().next(failure);
  if (id != 0) reserved_.insert(id);
  return id;
}

void Collector::release(storage::CollectionId id) {
  std::lock_guard lock(mutex_);
  reserved_.erase(id);
}

uint64_t Collector::pending() const {
  std::lock_guard lock(mutex_);
  return waiting_.size() + in_hand_.load(std::memory_order_relaxed);
}

// Waits for garbage, and a little for more of it; false when stopping.
bool Collector::gather(Collections* collections, bool* sweep) {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stopping_ || sweep_ || !waiting_.empty(); });
  wake_.wait_for(lock, std::chrono::milliseconds(kGatherMs),
                 [this] { return stopping_ || sweep_ || waiting_.size() >= kRoundIds; });
  *collections = std::exchange(waiting_, {});
  *sweep = std::exchange(sweep_, false);
  in_hand_ = collections->size();
  return !stopping_;
}

void Collector::run() {
  Collections collections;
  bool failing = false;
  for (bool swept = false; gather(&collections, &swept);) {
    worked_ms_ = 0;
    Status status = swept ? sweep() : settle();
    if (status.ok() && !swept) status = reclaim(std::move(collections));
    in_hand_ = 0;
    if (!status.ok()) {
      if (stopping()) return;
      if (!std::exchange(failing, true)) {
        metrics::log::warning("The space of what was dropped cannot be reclaimed now: {}",
                              status.message());
      }
      // Whatever was not finished still has its record.
      std::lock_guard lock(mutex_);
      waiting_ = {};
      sweep_ = true;
    } else {
      failing = false;
    }
    const int64_t rest_ms = std::min(kRestMaxMs, kRestFactor * worked_ms_);
    if (!pause(failing ? kRetryMs : rest_ms)) return;
  }
}

// Collects everything that has a garbage record now.
Status Collector::sweep() {
  Piece piece;
  // Keyspaces first: they turn into collections.
  do {
    Status status = read_piece(GarbageKind::kKeyspace, piece.next, &piece);
    if (status.ok() && !piece.ids.empty()) status = settle();
    for (size_t i = 0; i < piece.ids.size() && status.ok(); ++i) {
      status = bury(static_cast<storage::KeyspaceId>(piece.ids[i]));
    }
    if (!status.ok()) return status;
  } while (!piece.next.empty());
  do {
    Status status = read_piece(GarbageKind::kCollection, piece.next, &piece);
    if (status.ok() && !piece.ids.empty()) {
      in_hand_ = piece.ids.size();
      status = settle();
      if (status.ok()) status = reclaim(std::move(piece.ids));
    }
    if (!status.ok()) return status;
  } while (!piece.next.empty());
  return {};
}

// `from` empty: from the first of this kind.
Status Collector::read_piece(GarbageKind kind, std::string from, Piece* piece) {
  // An id that is reserved now, or given out from now on, may be linked while this goes on.
  std::set<storage::CollectionId> reserved;
  storage::CollectionId horizon;
  Status no_id;
  {
    std::lock_guard lock(mutex_);
    reserved = reserved_;
    horizon = store_.ids().next(&no_id);
  }
  if (!no_id.ok()) return no_id;
  if (from.empty()) from = storage::garbage_key(kind, 0);
  auto cursor = engine_.new_cursor(Space::kGarbage, {.fill_cache = false});
  *piece = {};
  for (cursor->seek(from); cursor->valid(); cursor->next()) {
    GarbageKind found;
    uint64_t id = 0;
    if (!storage::decode_garbage_key(cursor->key(), &found, &id)) continue;
    if (found != kind) break;
    if (piece->ids.size() == kPieceIds) {
      piece->next = cursor->key();
      break;
    }
    if (kind == GarbageKind::kCollection && (id >= horizon || reserved.contains(id))) continue;
    piece->ids.push_back(id);
  }
  return cursor->status();
}

// Waits until what has been dropped so far may be collected.
Status Collector::settle() {
  const uint64_t epoch = store_.advance_epoch();
  while (store_.oldest_epoch() <= epoch) {
    if (!pause(kViewPollMs)) return stopped();
  }
  return engine_.sync();
}

// Removes a dead keyspace; every collection that it owned becomes garbage of its own.
Status Collector::bury(storage::KeyspaceId keyspace) {
  if (Status status = note_collections(keyspace); !status.ok()) return status;
  // Once the records are gone, nothing else tells of the collections.
  if (Status status = engine_.sync(); !status.ok()) return status;
  KeyRange range{.begin = storage::meta_key(keyspace, {}), .end = storage::meta_key_end(keyspace)};
  if (Status status = reclaim_ranges(Space::kMeta, {&range, 1}); !status.ok()) return status;
  auto batch = engine_.new_batch();
  batch->remove(Space::kSystem, storage::counts_key(keyspace));
  batch->remove(Space::kGarbage, storage::garbage_key(GarbageKind::kKeyspace, keyspace));
  Status status = engine_.write(*batch, storage::Durability::kBuffered);
  if (status.ok()) reclaimed_.fetch_add(1, std::memory_order_relaxed);
  return status;
}

Status Collector::note_collections(storage::KeyspaceId keyspace) {
  auto batch = engine_.new_batch();
  std::string from = storage::meta_key(keyspace, {});
  while (!from.empty()) {
    if (stopping()) return stopped();
    // A new cursor for each piece: an old one would keep files and memtables alive.
    auto cursor = engine_.new_cursor(
        Space::kMeta,
        {.lower = from, .upper = storage::meta_key_end(keyspace), .fill_cache = false});
    size_t visited = 0;
    batch->clear();
    for (cursor->seek(from); cursor->valid() && visited < kWalkRecords; cursor->next()) {
      ++visited;
      storage::Metadata metadata;
      if (!storage::decode_metadata(cursor->value(), &metadata) || !metadata.collection) continue;
      batch->put(Space::kGarbage,
                 storage::garbage_key(GarbageKind::kCollection, metadata.collection->id), kMarker);
    }
    if (!cursor->status().ok()) return cursor->status();
    from = cursor->valid() ? std::string(cursor->key()) : std::string();
    Status status = engine_.write(*batch, storage::Durability::kBuffered);
    if (!status.ok()) return status;
  }
  return {};
}

Status Collector::reclaim_ranges(Space space, std::span<const KeyRange> ranges) {
  const auto start = Steady::now();
  Status status = engine_.reclaim(space, ranges);
  worked_ms_ += ms_since(start);
  return status;
}

Status Collector::reclaim(Collections ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  auto batch = engine_.new_batch();
  for (size_t done = 0; done < ids.size();) {
    if (stopping()) return stopped();
    const size_t end = std::min(done + kPieceIds, ids.size());
    std::vector<KeyRange> ranges;
    batch->clear();
    for (size_t i = done; i < end; ++i) {
      if (i > done && ids[i] == ids[i - 1] + 1) {
        ranges.back().end = storage::collection_end(ids[i]);
      } else {
        ranges.push_back(
            {.begin = storage::collection_begin(ids[i]), .end = storage::collection_end(ids[i])});
      }
      batch->remove(Space::kGarbage, storage::garbage_key(GarbageKind::kCollection, ids[i]));
    }
    for (Space space : {Space::kData, Space::kOrder}) {
      if (Status status = reclaim_ranges(space, ranges); !status.ok()) return status;
    }
    Status status = engine_.write(*batch, storage::Durability::kBuffered);
    if (!status.ok()) return status;
    reclaimed_.fetch_add(end - done, std::memory_order_relaxed);
    removed_records_ += end - done;
    done = end;
  }
  // So that a sweep does not have to pass over what is gone.
  if (removed_records_ < kTombstonesMax) return {};
  removed_records_ = 0;
  return engine_.compact(Space::kGarbage, {});
}

}  // namespace ingot::data
