// Writing past the writer, and what becomes of a collection that nobody linked.
#include "src/data/built_collection.h"

#include "src/data/collector.h"
#include "src/data/reader_pool.h"
#include "src/data/store.h"
#include "src/settings/config.h"
#include "storage/check.h"

namespace ingot::data {

using storage::Space;

namespace {

constexpr size_t kBatchBytes = 512 << 10;
// The writer's commit may have to wait for one batch, which takes its time for each record.
constexpr size_t kBatchRecords = 512;
// With appendfsync always it may have to wait for so many bytes to be synced.
constexpr size_t kUnsyncedBytes = 4 << 20;
constexpr std::string_view kMarker{"\0", 1};

std::string garbage_key(storage::CollectionId id) {
  return storage::garbage_key(storage::GarbageKind::kCollection, id);
}

}  // namespace

BuiltCollection::BuiltCollection(Services& services)
    : services_(services),
      id_(services.collector.reserve(&status_)),
      syncs_(services.config.settings()->appendfsync == settings::AppendFsync::kAlways),
      batch_(services.store.engine().new_batch()) {}

BuiltCollection::~BuiltCollection() {
  if (!marked_ || !linked_) {
    services_.collector.release(id_);
    if (marked_) services_.collector.dropped({&id_, 1}, {});
    return;
  }
  // The commit may have failed: then the garbage record is still there. (It is there as well when
  // the key is gone again; the collector does not mind to hear of an id twice.)
  services_.readers.submit(
      [&engine = services_.store.engine(), &collector = services_.collector, id = id_] {
        std::string value;
        const auto found = engine.get(nullptr, Space::kGarbage, garbage_key(id),
                                      storage::Tier::kDisk, &value, nullptr);
        collector.release(id);
        if (found == storage::Lookup::kFound) collector.dropped({&id, 1}, {});
      });
}

void BuiltCollection::put(Space space, std::string_view element, std::string_view record) {
  INGOT_CHECK(!record.empty());
  add_to_batch([&](storage::Batch& batch) {
    batch.put(space, storage::collection_begin(id_).append(element), record);
  });
}

void BuiltCollection::remove(Space space, std::string_view element) {
  add_to_batch([&](storage::Batch& batch) {
    batch.remove(space, storage::collection_begin(id_).append(element));
  });
}

void BuiltCollection::add_to_batch(const std::function<void(storage::Batch&)>& change) {
  if (!status_.ok()) return;
  if (!marked_) {
    batch_->put(Space::kGarbage, garbage_key(id_), kMarker);
    marked_ = true;
  }
  change(*batch_);
  if (++batch_records_ >= kBatchRecords || batch_->bytes() >= kBatchBytes) write_batch();
}

void BuiltCollection::flush() {
  if (status_.ok() && batch_->bytes() > 0) write_batch();
  // The collection may stay for as long as a client reads what is in it.
  batch_ = services_.store.engine().new_batch();
}

void BuiltCollection::write_batch() {
  if (leaves_room_ && services_.collector.is_space_short(services_.config.settings()->dir)) {
    status_ = {storage::Status::Code::kNoSpace, "the disk has no space for it"};
  } else {
    unsynced_bytes_ += batch_->bytes();
    const bool is_synced = syncs_ && unsynced_bytes_ >= kUnsyncedBytes;
    if (is_synced) unsynced_bytes_ = 0;
    services_.store.engine().give_way();
    status_ = services_.store.engine().write(
        *batch_, is_synced ? storage::Durability::kSynced : storage::Durability::kBuffered);
  }
  batch_->clear();
  batch_records_ = 0;
}

bool BuiltCollection::link(types::KeyWriter& keys) {
  if (!marked_) return true;  // there is nothing in it
  std::string value;
  const std::string key = garbage_key(id_);
  if (!keys.data().get(Space::kGarbage, key, &value)) {
    keys.data().latch_error({storage::Status::Code::kCorruption,
                             "a built collection is linked already, or lost its garbage record"});
    return false;
  }
  keys.overlay().remove(Space::kGarbage, key);
  linked_ = true;
  return true;
}

}  // namespace ingot::data
