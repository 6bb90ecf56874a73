// The collector's thread: sweeping garbage records, waiting until what they name may go, telling
// the engine, and removing the records of what is gone.
#include "src/data/collector.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/metrics/log.h"

namespace ingot::data {

using storage::GarbageKind;
using storage::Space;
using storage::Status;

namespace {

using Steady = std::chrono::steady_clock;

constexpr std::string_view kMarker{"\0", 1};
constexpr int64_t kGatherMs = 2'000;  // how long drops wait for others to share a compaction with
// After a round it rests four times as long as the engine had work with it, up to a limit; less and
// less while one round follows on the other and more is left: what is dropped faster than a fifth
// of the time removes it would fill the disk.
constexpr int64_t kRestFactor = 4;
constexpr int64_t kRestMaxMs = 15'000;
constexpr int kHurryRounds = 3;    // behind so many in a row the rest is half as long,
constexpr int kHurryShiftMax = 3;  // down to an eighth
// The engine's own flushes and compactions take dead ids away: it is asked from time to time.
constexpr int64_t kLookMinMs = 250;
constexpr int64_t kLookMaxMs = 60'000;
constexpr int64_t kLookFactor = 20;  // and rests so many times as long as the look takes
constexpr int64_t kViewPollMs = 50;
constexpr int64_t kRetryMs = 5'000;  // after the engine failed
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

Collector::Collector(Store& store, size_t remembered_max)
    : store_(store), engine_(store.engine()), remembered_max_(remembered_max) {}

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
  if (keyspaces.empty() && before + collections.size() <= remembered_max_) {
    waiting_.insert(waiting_.end(), collections.begin(), collections.end());
  } else {
    waiting_ = {};
    sweep_ = true;
  }
  if (before == 0 || sweep_ || waiting_.size() >= kRoundIds) wake_.notify_all();
}

void Collector::make_room() {
  std::lock_guard lock(mutex_);
  make_room_ = true;
  wake_.notify_all();
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
  return waiting_.size() + in_hand_ + dead_;
}

// Waits for garbage, and a little for more of it; or until the engine is to be asked again.
bool Collector::gather(Round* round) {
  std::unique_lock lock(mutex_);
  const auto asked = [this] { return stopping_ || sweep_ || make_room_ || !waiting_.empty(); };
  if (dead_ == 0 && !again_) {
    wake_.wait(lock, asked);
  } else {
    wake_.wait_for(lock, std::chrono::milliseconds(look_ms_), asked);
  }
  if (!waiting_.empty()) {
    wake_.wait_for(lock, std::chrono::milliseconds(kGatherMs),
                   [this] { return stopping_ || sweep_ || waiting_.size() >= kRoundIds; });
  }
  round->collections = std::exchange(waiting_, {});
  round->sweep = std::exchange(sweep_, false);
  round->make_room = std::exchange(make_room_, false);
  in_hand_ = round->collections.size();
  return !stopping_;
}

void Collector::run() {
  Round round;
  bool failing = false;
  while (gather(&round)) {
    worked_ms_ = 0;
    const bool is_look = round.collections.empty() && !round.sweep;
    look_ms_ = is_look ? std::min(2 * look_ms_, kLookMaxMs) : kLookMinMs;
    Status status;
    if (round.sweep) {
      status = sweep();
    } else if (!round.collections.empty()) {
      status = settle();
      if (status.ok()) add_dead(std::move(round.collections));
    }
    if (status.ok()) status = reclaim();
    // After a failure whoever is short of room asks again. What a view still sees takes its space.
    if (status.ok() && round.make_room && settle().ok()) {
      const auto start = Steady::now();
      (void)engine_.make_room();
      worked_ms_ += ms_since(start);
    }
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
    behind_ = again_ ? behind_ + 1 : 0;
    const int hurry = std::min(behind_ / kHurryRounds, kHurryShiftMax);
    const int64_t rest_ms = std::min(kRestMaxMs, kRestFactor * worked_ms_) >> hurry;
    if (!pause(failing ? kRetryMs : rest_ms)) return;
  }
}

// Tells the engine of everything that has a garbage record now, as far as it has room.
Status Collector::sweep() {
  full_at_ = 0;
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
      if (status.ok()) add_dead(std::move(piece.ids));
    }
    if (!status.ok()) return status;
  } while (!piece.next.empty() && full_at_ == 0);
  return {};
}

// `from` empty: from the first of this kind.
Status Collector::read_piece(GarbageKind kind, std::string from, Piece* piece) {
  // An id that is reserved now, or given out from now on, may be linked while this goes on.
  const types::FillingKeyspaces::Snapshot filling = store_.filling().snapshot();
  if (!filling.failure.ok()) return filling.failure;
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
    if (kind == GarbageKind::kKeyspace && filling.covers(static_cast<storage::KeyspaceId>(id))) {
      continue;
    }
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

// A dead keyspace: every collection that it owned becomes garbage of its own first.
Status Collector::bury(storage::KeyspaceId keyspace) {
  if ((keyspace & storage::kMarkersBit) == 0) {
    if (Status status = note_collections(keyspace); !status.ok()) return status;
  }
  // Once the records are gone, nothing else tells of the collections.
  if (Status status = engine_.sync(); !status.ok()) return status;
  const uint64_t id = keyspace;
  add_dead(GarbageKind::kKeyspace, {&id, 1});
  return {};
}

// Writes down with each piece how far it has come, and goes on from there after a crash.
Status Collector::note_collections(storage::KeyspaceId keyspace) {
  const std::string record = storage::garbage_key(GarbageKind::kKeyspace, keyspace);
  const std::string end = storage::meta_key_end(keyspace);
  std::string from;
  Status status;
  if (engine_.get(nullptr, Space::kGarbage, record, storage::Tier::kDisk, &from, &status) ==
      storage::Lookup::kError) {
    return status;
  }
  from =
      from.size() > kMarker.size() ? from.substr(kMarker.size()) : storage::meta_key(keyspace, {});
  auto batch = engine_.new_batch();
  while (from < end) {
    const auto start = Steady::now();
    // A new cursor for each piece: an old one would keep files and memtables alive.
    auto cursor =
        engine_.new_cursor(Space::kMeta, {.lower = from, .upper = end, .fill_cache = false});
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
    from = cursor->valid() ? std::string(cursor->key()) : end;
    cursor.reset();
    batch->put(Space::kGarbage, record, std::string(kMarker).append(from));
    status = engine_.write(*batch, storage::Durability::kBuffered);
    if (!status.ok()) return status;
    // Half of the time is for others.
    if (!pause(ms_since(start))) return stopped();
  }
  return {};
}

// False when the engine has no room for all of them.
bool Collector::add_dead(GarbageKind kind, std::span<const uint64_t> ids) {
  const size_t taken = engine_.add_dead(kind, ids);
  dead_ += taken;
  return taken == ids.size();
}

void Collector::add_dead(Collections ids) {
  // What has no room keeps its record; a sweep will find it.
  if (full_at_ > 0) return;
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (!add_dead(GarbageKind::kCollection, ids)) full_at_ = std::max<uint64_t>(1, dead_);
}

Status Collector::reclaim() {
  uint64_t left = 0;
  again_ = false;
  for (GarbageKind kind : {GarbageKind::kKeyspace, GarbageKind::kCollection}) {
    const auto start = Steady::now();
    storage::Reclaimed done;
    Status status = engine_.reclaim(kind, &done);
    worked_ms_ += ms_since(start);
    if (status.ok()) status = remove_records(kind, done.gone);
    if (!status.ok()) return status;
    left += done.left;
    again_ = again_ || done.again;
    if (!done.gone.empty()) look_ms_ = kLookMinMs;
  }
  dead_ = left;
  look_ms_ = again_ ? kLookMinMs : std::max(look_ms_, kLookFactor * worked_ms_);
  if (full_at_ > 0 && left <= full_at_ / 2) {
    std::lock_guard lock(mutex_);
    sweep_ = true;
  }
  // So that a sweep does not have to pass over what is gone.
  if (removed_records_ < kTombstonesMax) return {};
  removed_records_ = 0;
  return engine_.compact(Space::kGarbage, {});
}

Status Collector::remove_records(GarbageKind kind, std::span<const uint64_t> ids) {
  auto batch = engine_.new_batch();
  while (!ids.empty()) {
    const auto piece = ids.first(std::min(kPieceIds, ids.size()));
    batch->clear();
    for (uint64_t id : piece) {
      batch->remove(Space::kGarbage, storage::garbage_key(kind, id));
      if (kind != GarbageKind::kKeyspace) continue;
      batch->remove(Space::kSystem, storage::counts_key(static_cast<storage::KeyspaceId>(id)));
    }
    Status status = engine_.write(*batch, storage::Durability::kBuffered);
    if (!status.ok()) return status;
    reclaimed_.fetch_add(piece.size(), std::memory_order_relaxed);
    removed_records_ += piece.size();
    ids = ids.subspan(piece.size());
  }
  return {};
}

}  // namespace ingot::data
