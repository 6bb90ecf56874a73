// The in-memory engine: ordered maps with versions for snapshots, and the hooks of tests.
#include "storage/memory/memory_engine.h"

#include <limits>

#include "storage/memory/memory_cursor.h"

namespace ingot::storage {
namespace {

struct Change {
  Space space;
  std::string key;
  std::optional<std::string> value;  // none: removed
};

class MemoryBatch : public Batch {
 public:
  void put(Space space, std::string_view key, std::string_view value) override {
    changes_.emplace_back(space, std::string(key), std::string(value));
    bytes_ += key.size() + value.size();
  }
  void remove(Space space, std::string_view key) override {
    changes_.emplace_back(space, std::string(key), std::nullopt);
    bytes_ += key.size();
  }
  void clear() override {
    changes_.clear();
    bytes_ = 0;
  }
  size_t bytes() const override { return bytes_; }
  const std::vector<Change>& changes() const { return changes_; }

 private:
  std::vector<Change> changes_;
  size_t bytes_ = 0;
};

}  // namespace

class MemorySnapshot : public Snapshot {
 public:
  explicit MemorySnapshot(MemoryEngine* engine)
      : engine_(engine), sequence_(engine->pin_latest()) {}
  ~MemorySnapshot() override { engine_->unpin(sequence_); }
  uint64_t sequence() const { return sequence_; }

 private:
  MemoryEngine* const engine_;
  const uint64_t sequence_;
};

namespace {

constexpr uint64_t kLatest = std::numeric_limits<uint64_t>::max();

uint64_t sequence_of(const Snapshot* snapshot) {
  return snapshot == nullptr ? kLatest : static_cast<const MemorySnapshot*>(snapshot)->sequence();
}

}  // namespace

OpenResult open_memory(const EngineOptions& options) {
  return {std::make_unique<MemoryEngine>(options), Status()};
}

MemoryEngine::MemoryEngine(const EngineOptions& options)
    : Engine(options.on_background_error), cache_capacity_(options.cache_bytes) {}

void MemoryEngine::set_cold(std::function<bool(Space, std::string_view)> cold) {
  std::lock_guard lock(hooks_mutex_);
  has_cold_ = static_cast<bool>(cold);
  cold_ = std::move(cold);
  warm_.clear();
}

void MemoryEngine::fail_next_write(Status status) {
  std::lock_guard lock(hooks_mutex_);
  next_failure_ = std::move(status);
}

// A disk-tier read warms the key.
bool MemoryEngine::is_cold(Space space, std::string_view key, Tier tier) {
  if (!has_cold_) return false;
  std::lock_guard lock(hooks_mutex_);
  if (!cold_ || !cold_(space, key)) return false;
  if (tier == Tier::kDisk) {
    warm_.emplace(space, std::string(key));
    return false;
  }
  return !warm_.contains(std::pair(space, std::string(key)));
}

const std::string* MemoryEngine::find(Space space, std::string_view key, uint64_t sequence) {
  const Versions& all = versions(space);
  const auto it = all.lower_bound(VersionOrder::View(key, sequence));
  if (it == all.end() || it->first.key != key || !it->second) return nullptr;
  return &*it->second;
}

Lookup MemoryEngine::get(const Snapshot* snapshot, Space space, std::string_view key, Tier tier,
                         std::string* value, Status* /*error*/) {
  if (is_cold(space, key, tier)) {
    ++misses_;
    return Lookup::kMiss;
  }
  ++hits_;
  std::shared_lock lock(mutex_);
  const std::string* found = find(space, key, sequence_of(snapshot));
  if (found == nullptr) return Lookup::kAbsent;
  // As the other engines, which cannot tell an empty value from one they did not look at.
  if (found->empty() && tier == Tier::kCacheOnly) return Lookup::kMiss;
  value->assign(*found);
  return Lookup::kFound;
}

std::unique_ptr<Cursor> MemoryEngine::new_cursor(Space space, const CursorOptions& options) {
  uint64_t sequence = 0;
  if (options.snapshot == nullptr) {
    sequence = pin_latest();
  } else {
    sequence = sequence_of(options.snapshot);
    std::lock_guard lock(pins_mutex_);
    pins_.insert(sequence);
  }
  return std::make_unique<MemoryCursor>(this, space, options, sequence);
}

std::unique_ptr<Snapshot> MemoryEngine::new_snapshot() {
  return std::make_unique<MemorySnapshot>(this);
}

uint64_t MemoryEngine::pin_latest() {
  std::shared_lock lock(mutex_);  // no write slips between reading the number and pinning it
  std::lock_guard pins_lock(pins_mutex_);
  pins_.insert(sequence_);
  return sequence_;
}

void MemoryEngine::unpin(uint64_t sequence) {
  std::lock_guard lock(pins_mutex_);
  pins_.erase(pins_.find(sequence));
  pins_released_ = true;
}

std::unique_ptr<Batch> MemoryEngine::new_batch() {
  return std::make_unique<MemoryBatch>();
}

Status MemoryEngine::do_write(const Batch& batch, Durability /*durability*/) {
  Status failure;
  {
    std::lock_guard lock(hooks_mutex_);
    if (next_failure_) {
      failure = *std::exchange(next_failure_, std::nullopt);
      const bool sticks =
          failure.code() == Status::Code::kNoSpace || failure.code() == Status::Code::kIo;
      if (sticks) refusal_ = failure;
    } else if (!refusal_.ok()) {
      return refusal_;
    }
  }
  if (!failure.ok()) return note(failure);
  std::unique_lock lock(mutex_);
  ++sequence_;
  for (const Change& change : static_cast<const MemoryBatch&>(batch).changes()) {
    apply(change.space, change.key, change.value);
  }
  sweep();
  bytes_written_ += batch.bytes();
  return {};
}

void MemoryEngine::apply(Space space, std::string_view key, std::optional<std::string> value) {
  bytes_ += key.size() + (value ? value->size() : 0);
  const auto [it, added] = versions(space).try_emplace(VersionKey(std::string(key), sequence_));
  if (!added) bytes_ -= key.size() + (it->second ? it->second->size() : 0);
  it->second = std::move(value);
  drop_unseen_versions(space, key);
}

// Keeps of each key the newest version and those that a live snapshot sees.
void MemoryEngine::drop_unseen_versions(Space space, std::string_view key) {
  std::lock_guard lock(pins_mutex_);
  Versions& all = versions(space);
  auto it = all.lower_bound(VersionOrder::View(key, kLatest));
  uint64_t newer = kLatest;  // sequence number of the version before this one
  size_t kept = 0;
  auto last_kept = all.end();
  while (it != all.end() && it->first.key == key) {
    const auto pin = pins_.lower_bound(it->first.sequence);
    const bool seen = newer == kLatest || (pin != pins_.end() && *pin < newer);
    newer = it->first.sequence;
    if (seen) {
      last_kept = it++;
      ++kept;
    } else {
      bytes_ -= key.size() + (it->second ? it->second->size() : 0);
      it = all.erase(it);
    }
  }
  // An absence with nothing older behind it says nothing.
  if (last_kept != all.end() && !last_kept->second) {
    bytes_ -= key.size();
    all.erase(last_kept);
    --kept;
  }
  if (kept > 1) {
    kept_for_snapshots_.emplace(space, std::string(key));
  }
}

void MemoryEngine::sweep() {
  {
    std::lock_guard lock(pins_mutex_);
    if (!std::exchange(pins_released_, false)) return;
  }
  for (const auto& [space, key] : std::exchange(kept_for_snapshots_, {})) {
    drop_unseen_versions(space, key);  // notes the key again if it must
  }
}

Status MemoryEngine::do_sync() {
  std::lock_guard lock(hooks_mutex_);
  return refusal_;
}

Status MemoryEngine::do_try_resume() {
  std::lock_guard lock(hooks_mutex_);
  if (refusal_.code() == Status::Code::kNoSpace) refusal_ = Status();
  return refusal_;
}

size_t MemoryEngine::add_dead(GarbageKind kind, std::span<const uint64_t> ids) {
  std::unique_lock lock(mutex_);
  dead_[kind].insert(ids.begin(), ids.end());
  return ids.size();
}

Status MemoryEngine::reclaim(GarbageKind kind, Reclaimed* out) {
  std::unique_lock lock(mutex_);
  *out = {};
  std::set<uint64_t>& dead = dead_[kind];
  for (uint64_t id : dead) {
    for (Space space : owned_spaces(kind)) {
      Versions& all = versions(space);
      const std::string begin_key = owned_begin(kind, id);
      const std::string end_key = owned_end(kind, id);
      const auto begin = all.lower_bound(VersionOrder::View(begin_key, kLatest));
      const auto end = all.lower_bound(VersionOrder::View(end_key, kLatest));
      for (auto it = begin; it != end; ++it) {
        bytes_ -= it->first.key.size() + (it->second ? it->second->size() : 0);
      }
      all.erase(begin, end);
    }
  }
  out->gone.assign(dead.begin(), dead.end());
  dead.clear();
  return {};
}

Status MemoryEngine::checkpoint(const std::string& /*path*/) {
  return {Status::Code::kUnsupported, "the memory engine has no files to make a checkpoint of"};
}

uint64_t MemoryEngine::memory_bytes() const {
  const std::shared_lock lock(mutex_);
  return bytes_;
}

EngineStats MemoryEngine::stats() const {
  EngineStats stats;
  std::shared_lock lock(mutex_);
  stats.memory_bytes = bytes_;
  stats.cache_bytes = bytes_;
  stats.memtable_bytes = bytes_;
  for (const Versions& all : spaces_) stats.estimated_keys += all.size();
  stats.cache_capacity = cache_capacity_;
  stats.cache_hits = hits_;
  stats.cache_misses = misses_;
  stats.bytes_written = bytes_written_;
  return stats;
}

void MemoryEngine::reset_stats() {
  hits_ = 0;
  misses_ = 0;
  bytes_written_ = 0;
}

}  // namespace ingot::storage
