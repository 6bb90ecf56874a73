// Writing past the writer; see fresh_collection.h.
#include "src/types/fresh_collection.h"

#include "src/exec/collector.h"
#include "src/exec/reader_pool.h"
#include "src/exec/store.h"
#include "src/server/config.h"
#include "src/types/string_value.h"

namespace ingot::types {

using storage::Space;

namespace {

constexpr size_t kBatchBytes = 512 << 10;
constexpr std::string_view kMarker{"\0", 1};

// With appendfsync always the writer's commit would have to wait for all these bytes.
storage::Durability durability(const server::Settings& settings) {
  return settings.appendfsync == server::AppendFsync::kAlways ? storage::Durability::kSynced
                                                              : storage::Durability::kBuffered;
}

std::string garbage_key(storage::CollectionId id) {
  return storage::garbage_key(storage::GarbageKind::kCollection, id);
}

}  // namespace

FreshCollection::FreshCollection(exec::Services& services)
    : services_(services),
      id_(services.collector.stage()),
      durability_(durability(*services.config.settings())),
      batch_(services.store.engine().new_batch()) {}

FreshCollection::~FreshCollection() {
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

void FreshCollection::put_chunk(uint32_t number, std::string_view bytes) {
  std::string element;
  storage::append_be32(&element, number);
  encode_chunk(bytes, &record_);
  put(Space::kData, element, record_);
}

void FreshCollection::put(Space space, std::string_view element, std::string_view record) {
  if (!status_.ok()) return;
  if (!marked_) {
    batch_->put(Space::kGarbage, garbage_key(id_), kMarker);
    marked_ = true;
  }
  batch_->put(space, storage::collection_begin(id_).append(element), record);
  if (batch_->bytes() >= kBatchBytes) write_batch();
}

void FreshCollection::flush() {
  if (status_.ok() && batch_->bytes() > 0) write_batch();
  // The collection may stay for as long as a client reads what is in it.
  batch_ = services_.store.engine().new_batch();
}

void FreshCollection::write_batch() {
  status_ = services_.store.engine().write(*batch_, durability_);
  batch_->clear();
}

bool FreshCollection::link(KeyWriter& keys) {
  std::string value;
  const std::string key = garbage_key(id_);
  if (!keys.data().get(Space::kGarbage, key, &value)) return false;
  keys.overlay().remove(Space::kGarbage, key);
  linked_ = true;
  return true;
}

}  // namespace ingot::types
