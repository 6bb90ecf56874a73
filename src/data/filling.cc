// Writing past the writer into keyspaces that no database maps to, and handing them over.
#include "src/data/filling.h"

#include <algorithm>

#include "src/data/collector.h"
#include "src/data/free_disk.h"
#include "src/data/store.h"
#include "src/settings/config.h"
#include "storage/check.h"
#include "storage/codec.h"

namespace ingot::data {

using storage::GarbageKind;
using storage::Space;
using storage::Status;

namespace {

// The writer's commit may have to wait for one batch.
constexpr size_t kFillingBatchBytes = 512 << 10;
constexpr std::string_view kGarbageMark{"\0", 1};
// Between two looks at the free space, which others fill as well.
constexpr size_t kLookEachBytes = 8 << 20;

}  // namespace

uint64_t Filling::Ids::next(Status* failure) {
  if (!filling_.value_open_) return filling_.services_.store.ids().next(failure);
  // One that is named later than its first bytes are written.
  INGOT_CHECK(filling_.open_id_ == 0);
  return filling_.open_id_ = filling_.services_.collector.reserve(failure);
}

Filling::Filling(Services& services, int databases)
    : services_(services),
      overlay_(services.store.engine(), nullptr, storage::Tier::kDisk),
      ids_(*this),
      batch_(services.store.engine().new_batch()),
      is_open_(static_cast<size_t>(databases)) {
  state_.databases.resize(static_cast<size_t>(databases));
  state_.next_due_ms = INT64_MAX;
  keys_ = std::make_unique<types::KeyWriter>(overlay_, state_, ids_, effects_,
                                             services.store.now_ms(), &services.store.access(),
                                             /*collect_touched=*/false);
}

Filling::~Filling() {
  for (const storage::CollectionId id : {open_id_, ended_id_}) {
    if (id == 0) continue;
    services_.collector.release(id);
    services_.collector.dropped({&id, 1}, {});
  }
  for (size_t db = 0; db < is_open_.size(); ++db) {
    if (!is_open_[db]) continue;
    const storage::KeyspaceId id = state_.databases[db];
    std::string value;
    const auto found = services_.store.engine().get(
        nullptr, Space::kGarbage, storage::garbage_key(GarbageKind::kKeyspace, id),
        storage::Tier::kDisk, &value, nullptr);
    services_.store.filling().end(id);
    if (found != storage::Lookup::kAbsent) services_.collector.dropped({}, {&id, 1});
  }
}

void Filling::open(int db) {
  const auto at = static_cast<size_t>(db);
  if (is_open_[at] || !status_.ok()) return;
  Status failure;
  const storage::KeyspaceId id = services_.store.filling().begin(&failure);
  if (id == 0) {
    status_ = failure;
    return;
  }
  state_.databases[at] = id;
  is_open_[at] = true;
  for (const storage::KeyspaceId garbage : {id, id | storage::kMarkersBit}) {
    overlay_.put(Space::kGarbage, storage::garbage_key(GarbageKind::kKeyspace, garbage),
                 kGarbageMark);
  }
}

void Filling::begin_value() {
  value_open_ = true;
}

void Filling::put(Space space, std::string_view element, std::string_view record) {
  if (!status_.ok()) return;
  if (open_id_ == 0 && ids_.next(&status_) == 0) return;
  batch_->put(space, storage::collection_begin(open_id_).append(element), record);
}

storage::Metadata Filling::record_of(const types::BuiltValue& value) const {
  storage::Metadata record = value.record();
  if (record.collection) record.collection->id = open_id_;
  return record;
}

void Filling::end_value() {
  value_open_ = false;
  if (open_id_ == 0) return;
  if (open_marked_) {
    overlay_.remove(Space::kGarbage, storage::garbage_key(GarbageKind::kCollection, open_id_));
    ended_id_ = open_id_;
  } else {
    services_.collector.release(open_id_);
  }
  open_id_ = 0;
  open_marked_ = false;
}

void Filling::write_if_much() {
  // The mark of a value that has ended must be gone before another one's is written.
  const bool much = overlay_.bytes() + batch_->bytes() >= kFillingBatchBytes || ended_id_ != 0;
  if (much) write();
}

void Filling::mark_open_collection() {
  if (open_id_ == 0 || open_marked_) return;
  batch_->put(Space::kGarbage, storage::garbage_key(GarbageKind::kCollection, open_id_),
              kGarbageMark);
  open_marked_ = true;
}

// What 'min-free-disk' leaves is for those who delete, and for the engine to go on; all of the data
// must not come past it.
void Filling::look_at_disk() {
  const auto settings = services_.config.settings();
  if (free_disk_bytes(settings->dir) < settings->min_free_disk) {
    status_ = {Status::Code::kNoSpace, "less than 'min-free-disk' is left on the disk"};
  } else if (settings->max_disk != 0 &&
             services_.store.engine().stats().disk_bytes > settings->max_disk) {
    status_ = {Status::Code::kNoSpace, "more than 'max-disk' is used"};
  }
}

void Filling::write() {
  if (status_.ok() && overlay_.failed()) status_ = overlay_.error();
  until_look_ -= std::min(until_look_, overlay_.bytes() + batch_->bytes());
  if (status_.ok() && until_look_ == 0) {
    look_at_disk();
    until_look_ = kLookEachBytes;
  }
  // What the engine needs beyond that the disk's guard knows, a moment later.
  if (status_.ok() && services_.collector.is_space_short(services_.config.settings()->dir)) {
    status_ = {Status::Code::kNoSpace, "the disk has no space for it"};
  }
  if (!status_.ok()) return;
  mark_open_collection();
  overlay_.write_to(batch_.get());
  services_.store.engine().give_way();
  status_ = services_.store.engine().write(*batch_, storage::Durability::kBuffered);
  batch_->clear();
  overlay_.clear();
  state_.end_group();
  effects_ = {};
  if (!status_.ok() || ended_id_ == 0) return;
  services_.collector.release(ended_id_);
  ended_id_ = 0;
}

void Filling::finish() {
  INGOT_CHECK(!value_open_);
  write();
  // Else the writer's commit would have to wait for all of it.
  if (status_.ok()) status_ = services_.store.engine().sync();
}

void Filling::replace(types::KeyWriter& keys) const {
  for (size_t db = 0; db < is_open_.size(); ++db) {
    const int number = static_cast<int>(db);
    if (!is_open_[db]) {
      keys.flush(number);
      continue;
    }
    const storage::KeyspaceId id = state_.databases[db];
    const auto counts = state_.counts.find(id);
    keys.replace(number,
                 {.id = id,
                  .counts = counts == state_.counts.end() ? storage::KeyCounts{} : counts->second,
                  .first_due_ms = state_.next_due_ms});
  }
}

}  // namespace ingot::data
