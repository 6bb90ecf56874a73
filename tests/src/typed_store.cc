// Opens, commits and compares; what each function promises stands in typed_store.h.
#include "tests/src/typed_store.h"

namespace ingot::types {

using storage::Space;
using storage::Status;

TypedStore::TypedStore(const std::string& engine)
    : name_(engine),
      told_(Catch::MessageBuilder("INFO", CATCH_INTERNAL_LINEINFO, Catch::ResultWas::Info)
            << "engine " << engine) {
  state_.databases = {0, 1};
  open();
}

void TypedStore::open() {
  keys_.reset();
  overlay_.reset();
  if (on_disk() || !engine_) {
    engine_.reset();  // it holds the directory's lock
    auto [engine, status] =
        storage::open_engine(name_, {.path = directory_.file("db"), .cache_bytes = 16 << 20});
    INFO(status.message());
    REQUIRE(status.ok());
    engine_ = std::make_unique<storage::FailingEngine>(std::move(engine));
  }
  cache_.set_capacity(0);  // which empties it
  cache_.set_capacity(1 << 20);
  overlay_ = std::make_unique<storage::Overlay>(*engine_, nullptr, storage::Tier::kDisk,
                                                caches_ ? &cache_ : nullptr, counts_);
  at(now_ms_);
}

void TypedStore::at(int64_t now_ms) {
  now_ms_ = now_ms;
  keys_ = std::make_unique<KeyWriter>(*overlay_, state_, ids_, effects_, now_ms, nullptr, false);
  keys_->want_events(notify::kAll);
}

void TypedStore::link(const BuiltValue& value, storage::CollectionId id) {
  Record before;
  const bool found = keys_->find(0, kKey, &before);
  storage::Metadata after = value.metadata;
  if (after.collection) after.collection->id = id;
  after.payload = value.payload;
  keys_->store(0, kKey, found ? &before : nullptr, after);
}

bool TypedStore::exists() {
  Record found;
  return keys_->peek(0, kKey, &found);
}

Record TypedStore::record() {
  Record found;
  REQUIRE(keys_->peek(0, kKey, &found));
  return found;
}

void TypedStore::replace_record(const storage::Metadata& metadata) {
  std::string record;
  storage::encode_metadata(metadata, &record);
  overlay_->put(Space::kMeta, storage::meta_key(0, kKey), record);
}

TypedStore::Records TypedStore::records_of(Space space) {
  Records records;
  const auto cursor = overlay_->cursor(space, {}, {});
  for (cursor->seek(""); cursor->valid(); cursor->next()) {
    records.emplace_back(cursor->key(), cursor->value());
  }
  CHECK(cursor->outcome() == storage::Lookup::kFound);
  return records;
}

std::vector<TypedStore::Records> TypedStore::contents() {
  std::vector<Records> all;
  for (const Space space : storage::kAllSpaces) all.push_back(records_of(space));
  return all;
}

Status TypedStore::try_commit() {
  const auto batch = engine_->new_batch();
  overlay_->write_to(batch.get());
  overlay_->begin_cache_changes();
  Status written = engine_->write(*batch, storage::Durability::kBuffered);
  overlay_->end_cache_changes(written.ok());
  if (!written.ok()) state_.rollback({.count_changes = 0, .databases_before = 0, .orders = 0});
  state_.end_group();
  overlay_->clear();
  return written;
}

void TypedStore::reopen() {
  commit();
  state_.orders = {};
  open();
}

Status TypedStore::take_error() {
  Status error = overlay_->error();
  overlay_->reset_outcome();
  return error;
}

}  // namespace ingot::types
