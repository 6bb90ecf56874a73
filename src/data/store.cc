// Opening the data, reserving ids in blocks, views and pins, and the map of databases.
#include "src/data/store.h"

#include <algorithm>
#include <limits>

#include "storage/codec.h"

namespace ingot::data {

using storage::Lookup;
using storage::Space;
using storage::Status;

namespace {

// Reserves ids in durable blocks: a crash loses the rest of a block, never repeats an id. The
// record names the first id that is not reserved.
class ReservedIds : public types::FreshIds {
 public:
  struct Kind {
    std::string record;
    uint64_t block;
    void (*append)(std::string* out, uint64_t first);
  };

  ReservedIds(storage::Engine& engine, Kind kind, uint64_t first)
      : engine_(engine), kind_(std::move(kind)), next_(first), reserved_(first) {}

  uint64_t next(Status* failure) override {
    std::lock_guard lock(mutex_);
    if (next_ == reserved_) {
      if (Status status = reserve(); !status.ok()) {
        *failure = std::move(status);
        return 0;
      }
    }
    return next_++;
  }

 private:
  // The WAL keeps order: whatever uses an id is written after its reservation.
  Status reserve() {
    std::string record;
    kind_.append(&record, reserved_ + kind_.block);
    auto batch = engine_.new_batch();
    batch->put(Space::kSystem, kind_.record, record);
    Status status = engine_.write(*batch, storage::Durability::kBuffered);
    if (status.ok()) reserved_ += kind_.block;
    return status;
  }

  storage::Engine& engine_;
  const Kind kind_;
  std::mutex mutex_;
  uint64_t next_;      // by mutex_
  uint64_t reserved_;  // by mutex_
};

ReservedIds::Kind collection_ids() {
  return {.record = storage::reserved_ids_key(), .block = 1 << 16, .append = storage::append_le64};
}
ReservedIds::Kind keyspace_ids() {
  return {.record = storage::next_keyspace_key(),
          .block = 1 << 6,
          .append = [](std::string* out, uint64_t first) {
            storage::append_le32(out, static_cast<uint32_t>(first));
          }};
}

Status corrupt(const std::string& what) {
  return {Status::Code::kCorruption, "unreadable " + what + " in the system records"};
}

}  // namespace

View::~View() {
  snapshot_.reset();
  store_.leave(epoch_);
}

Pin::~Pin() {
  store_.leave(epoch_);
}

Store::Store(std::unique_ptr<storage::Engine> engine, ClockMs clock)
    : engine_(std::move(engine)),
      clock_(std::move(clock)),
      probe_tier_(engine_->capabilities().probe ? storage::Tier::kCacheOnly : storage::Tier::kDisk),
      access_(clock_()) {}

Store::~Store() = default;

std::unique_ptr<Store> Store::open(std::unique_ptr<storage::Engine> engine, int databases,
                                   ClockMs clock, Status* error) {
  std::unique_ptr<Store> store(new Store(std::move(engine), std::move(clock)));
  *error = store->load(databases);
  if (!error->ok()) return nullptr;
  return store;
}

// Before anything else is read: what a later version has written may be unreadable.
Status Store::check_version(bool* is_new) {
  std::string value;
  Status status;
  const Lookup found = engine_->get(nullptr, Space::kSystem, storage::version_key(),
                                    storage::Tier::kDisk, &value, &status);
  if (found == Lookup::kError) return status;
  *is_new = found == Lookup::kAbsent;
  if (*is_new) return {};
  if (value.size() != 4) return corrupt("version");
  const uint32_t version = storage::read_le32(value);
  if (std::string why = storage::version_error(version); !why.empty()) {
    return {Status::Code::kInvalid, std::move(why)};
  }
  *is_new = version != storage::kFormatVersion;
  return {};
}

Status Store::load(int databases) {
  bool is_new = false;
  if (Status status = check_version(&is_new); !status.ok()) return status;
  auto cursor = engine_->new_cursor(Space::kSystem, {});
  storage::CollectionId first_id = 1;
  storage::KeyspaceId first_keyspace = storage::kFirstFreeKeyspace;
  initial_state_.databases.resize(static_cast<size_t>(databases));
  for (size_t db = 0; db < initial_state_.databases.size(); ++db) {
    initial_state_.databases[db] = static_cast<storage::KeyspaceId>(db);
  }
  for (cursor->seek({}); cursor->valid(); cursor->next()) {
    std::string_view key = cursor->key();
    std::string_view value = cursor->value();
    if (key == storage::next_keyspace_key()) {
      if (value.size() != 4) return corrupt("next keyspace");
      first_keyspace = storage::read_le32(value);
    } else if (key == storage::reserved_ids_key()) {
      if (value.size() != 8) return corrupt("reserved ids");
      first_id = storage::read_le64(value);
    } else if (key.size() == 5 && key[0] == 'd') {
      if (value.size() != 4) return corrupt("database");
      uint32_t db = storage::read_be32(key.substr(1));
      if (db >= static_cast<uint32_t>(databases)) {
        return {Status::Code::kInvalid,
                "the data uses database " + std::to_string(db) + "; raise 'databases' to open it"};
      }
      initial_state_.databases[db] = storage::read_le32(value);
    } else if (key.size() == 5 && key[0] == 'c') {
      storage::KeyCounts counts;
      if (!storage::decode_counts(value, &counts)) return corrupt("key count");
      initial_state_.counts[storage::read_be32(key.substr(1))] = counts;
    }
  }
  if (!cursor->status().ok()) return cursor->status();
  if (is_new) {
    std::string version;
    storage::append_le32(&version, storage::kFormatVersion);
    auto batch = engine_->new_batch();
    batch->put(Space::kSystem, storage::version_key(), version);
    Status status = engine_->write(*batch, storage::Durability::kSynced);
    if (!status.ok()) return status;
  }
  ids_ = std::make_unique<ReservedIds>(*engine_, collection_ids(), first_id);
  keyspace_ids_ = std::make_unique<ReservedIds>(*engine_, keyspace_ids(), first_keyspace);
  filling_ = std::make_unique<types::FillingKeyspaces>(*keyspace_ids_);
  initial_state_.keyspace_ids = keyspace_ids_.get();
  initial_state_.filling = filling_.get();
  databases_ = std::make_shared<types::DatabaseMap>(initial_state_.databases);
  return {};
}

void Store::set_cache_capacity(uint64_t bytes) {
  constexpr uint64_t kImageShare = 8;
  constexpr uint64_t kCountsShare = 8;
  order_counts_.set_capacity(bytes / kCountsShare);
  bytes -= std::min(bytes, order_counts_.bytes());
  images_.set_capacity(bytes / kImageShare);
  cache_.set_capacity(bytes - bytes / kImageShare);
}

std::shared_ptr<const View> Store::view() {
  std::shared_ptr<View> view(new View(*this, enter()));
  uint64_t version = 0;
  do {
    std::shared_ptr<const types::DatabaseMap> next;
    {
      std::shared_lock lock(databases_mutex_);
      version = version_.load(std::memory_order_acquire);
      view->databases_ = databases_;
      next = next_databases_;
    }
    view->hot_records_ = {
        .cache = &cache_, .moment = cache_.now(), .images = &images_, .counts = &order_counts_};
    view->snapshot_ = engine_->new_snapshot();
    if (next && is_at(*view->snapshot_, *view->databases_, *next)) view->databases_ = next;
    // One that was being replaced may have been by now; another may not.
  } while (version_.load(std::memory_order_acquire) > version + version % 2);
  view->created_ms_ = now_ms();  // not before what the writer saw when it removed what is gone
  return view;
}

// Whether the snapshot is behind the commit that made the one map of the other.
bool Store::is_at(const storage::Snapshot& snapshot, const types::DatabaseMap& before,
                  const types::DatabaseMap& after) {
  const auto changed = std::ranges::mismatch(before, after);
  if (changed.in1 == before.end()) return true;
  const auto db = static_cast<uint32_t>(changed.in1 - before.begin());
  const std::string key = storage::database_key(db);
  std::string value;
  // Where the commit is visible the record stands in a memtable: this waits for no disk, unless
  // memory cannot tell.
  Lookup found = engine_->get(&snapshot, Space::kSystem, key, probe_tier_, &value, nullptr);
  if (found == Lookup::kMiss) {
    found = engine_->get(&snapshot, Space::kSystem, key, storage::Tier::kDisk, &value, nullptr);
  }
  return found == Lookup::kFound && value.size() == 4 && storage::read_le32(value) == *changed.in2;
}

std::shared_ptr<const Pin> Store::pin() {
  return std::shared_ptr<Pin>(new Pin(*this, enter()));
}

Store::Databases Store::databases() const {
  std::shared_lock lock(databases_mutex_);
  return {.map = databases_, .version = version_.load(std::memory_order_acquire)};
}

Status Store::publish_databases(types::DatabaseMap databases,
                                const std::function<Status()>& commit) {
  const auto next = std::make_shared<const types::DatabaseMap>(std::move(databases));
  {
    std::unique_lock lock(databases_mutex_);
    version_.fetch_add(1, std::memory_order_acq_rel);
    next_databases_ = next;
  }
  Status status = commit();
  std::unique_lock lock(databases_mutex_);
  version_.fetch_add(1, std::memory_order_acq_rel);
  next_databases_ = nullptr;
  if (status.ok()) databases_ = next;
  return status;
}

uint64_t Store::enter() {
  std::lock_guard lock(epochs_mutex_);
  uint64_t epoch = epoch_.load(std::memory_order_acquire);
  ++epochs_[epoch];
  return epoch;
}

void Store::leave(uint64_t epoch) {
  std::lock_guard lock(epochs_mutex_);
  auto found = epochs_.find(epoch);
  if (--found->second == 0) epochs_.erase(found);
}

uint64_t Store::oldest_epoch() const {
  std::lock_guard lock(epochs_mutex_);
  return epochs_.empty() ? epoch_.load(std::memory_order_acquire) : epochs_.begin()->first;
}

}  // namespace ingot::data
