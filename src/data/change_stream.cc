// The records of the stream's place, and who waits for it to grow.
#include "src/data/change_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "src/metrics/log.h"
#include "storage/codec.h"

namespace ingot::data {

using storage::Lookup;
using storage::Space;
using storage::Status;

namespace {

constexpr size_t kIdBytes = 40;
constexpr size_t kFormerBytes = kIdBytes + 8;
constexpr size_t kOffsetBytes = 12;

const std::string& ids_key() {
  static const std::string key = storage::named_key("replication");
  return key;
}

const std::string& offset_key() {
  static const std::string key = storage::named_key("replication-offset");
  return key;
}

std::string encode_ids(const ChangeStream::Place& place) {
  std::string record = place.id;
  for (const auto& former : place.former) {
    record += former.id;
    storage::append_le64(&record, former.offset);
  }
  return record;
}

bool decode_ids(std::string_view record, ChangeStream::Place* place) {
  if (record.size() < kIdBytes || (record.size() - kIdBytes) % kFormerBytes != 0) return false;
  place->id = record.substr(0, kIdBytes);
  for (record.remove_prefix(kIdBytes); !record.empty(); record.remove_prefix(kFormerBytes)) {
    place->former.push_back({.id = std::string(record.substr(0, kIdBytes)),
                             .offset = storage::read_le64(record.substr(kIdBytes))});
  }
  return true;
}

std::string encode_offset(const ChangeStream::Place& place) {
  std::string record;
  storage::append_le64(&record, place.offset);
  storage::append_le32(&record, static_cast<uint32_t>(place.db));
  return record;
}

bool decode_offset(std::string_view record, ChangeStream::Place* place) {
  if (record.size() != kOffsetBytes) return false;
  place->offset = storage::read_le64(record);
  place->db = static_cast<int>(storage::read_le32(record.substr(8)));
  return true;
}

// Reads a record that may be absent.
Status read_record(storage::Engine& engine, const std::string& key,
                   const std::function<bool(std::string_view)>& decode) {
  std::string record;
  Status status;
  const Lookup found =
      engine.get(nullptr, Space::kSystem, key, storage::Tier::kDisk, &record, &status);
  if (found == Lookup::kError) return status;
  if (found == Lookup::kFound && !decode(record)) {
    return {Status::Code::kCorruption, "unreadable place of the stream of changes"};
  }
  return {};
}

}  // namespace

std::string ChangeStream::new_id() {
  std::random_device random;
  std::string id;
  while (id.size() < kIdBytes) id += fmt::format("{:08x}", random());
  return id;
}

std::unique_ptr<ChangeStream> ChangeStream::open(storage::Engine& engine, std::string directory,
                                                 uint64_t backlog_bytes, bool follows,
                                                 Status* error) {
  std::unique_ptr<ChangeStream> stream(new ChangeStream(engine));
  *error = stream->load();
  if (!error->ok()) return nullptr;
  std::vector<Backlog::Told> told{{.id = stream->place_.id, .end = stream->place_.offset}};
  for (const auto& former : stream->place_.former) {
    told.push_back({.id = former.id, .end = former.offset});
  }
  stream->backlog_ = std::make_unique<Backlog>(std::move(directory), told, backlog_bytes);
  stream->is_id_old_ = !follows;
  return stream;
}

Status ChangeStream::load() {
  Status status = read_record(engine_, ids_key(),
                              [&](std::string_view record) { return decode_ids(record, &place_); });
  if (!status.ok()) return status;
  on_ = !place_.id.empty();
  return read_record(engine_, offset_key(),
                     [&](std::string_view record) { return decode_offset(record, &place_); });
}

ChangeStream::Place ChangeStream::place() const {
  std::lock_guard lock(mutex_);
  return place_;
}

Status ChangeStream::turn_on() {
  if (on()) return is_id_old_ ? take_own_id() : Status();
  Place place{.id = new_id(), .offset = place_.offset};
  if (Status status = write_place(std::move(place)); !status.ok()) return status;
  is_id_old_ = false;
  backlog_->begin_anew(place_.offset);
  return {};
}

Status ChangeStream::turn_off() {
  if (!on()) return {};
  if (Status status = write_place({.offset = place_.offset}); !status.ok()) return status;
  backlog_->begin_anew(place_.offset);
  call_waiting(true);
  return {};
}

void ChangeStream::take_id(std::string id, Place* place) {
  if (!place->id.empty() && place->id != id) {
    place->former.insert(place->former.begin(), {.id = place->id, .offset = place->offset});
    place->former.resize(std::min(place->former.size(), kFormerMax));
  }
  place->id = std::move(id);
}

Status ChangeStream::lead() {
  is_id_old_ = true;
  return on() ? take_own_id() : Status();
}

// Those who follow may come from elsewhere, and know of no database that is selected.
Status ChangeStream::take_own_id() {
  Place place = place_;
  take_id(new_id(), &place);
  place.db = -1;
  Status status = write_place(std::move(place));
  if (status.ok()) is_id_old_ = false;
  return status;
}

Status ChangeStream::rename(std::string id) {
  Place place = place_;
  take_id(std::move(id), &place);
  Status status = write_place(std::move(place));
  if (status.ok()) is_id_old_ = false;
  return status;
}

// Nothing need be synced: should it be lost, so is all that was told under it.
Status ChangeStream::write_place(Place place) {
  auto batch = engine_.new_batch();
  if (place.id.empty()) {
    batch->remove(Space::kSystem, ids_key());
  } else {
    batch->put(Space::kSystem, ids_key(), encode_ids(place));
  }
  batch->put(Space::kSystem, offset_key(), encode_offset(place));
  Status status = engine_.write(*batch, storage::Durability::kBuffered);
  if (!status.ok()) return status;
  std::lock_guard lock(mutex_);
  place_ = std::move(place);
  on_ = !place_.id.empty();
  return {};
}

void ChangeStream::select_anew() {
  std::lock_guard lock(mutex_);
  place_.db = -1;
}

// The id under which it is told.
const std::string& ChangeStream::begin_telling(storage::Batch& batch) {
  if (!next_) {
    next_ = place_;
    if (is_id_old_) {
      take_id(new_id(), &*next_);
      batch.put(Space::kSystem, ids_key(), encode_ids(*next_));
    }
  }
  return next_->id;
}

void ChangeStream::append(std::string_view bytes, int db, storage::Batch& batch) {
  const std::string& id = begin_telling(batch);
  note_append(lost_backlog_ ? Status() : backlog_->append(bytes, id), bytes.size(), db, batch);
}

void ChangeStream::append(Backlog::Part& part, int db, storage::Batch& batch) {
  const std::string& id = begin_telling(batch);
  note_append(lost_backlog_ ? Status() : backlog_->append(part, id), part.bytes(), db, batch);
}

void ChangeStream::note_append(const Status& status, uint64_t bytes, int db,
                               storage::Batch& batch) {
  if (!status.ok()) {
    // Once, and not for each group while the disk is full.
    if (!std::exchange(backlog_fails_, true)) {
      metrics::log::warning("Replicas will need all of the data, for the backlog is lost: {}",
                            status.message());
    }
    lost_backlog_ = true;
  }
  next_->offset += bytes;
  next_->db = db;
  batch.put(Space::kSystem, offset_key(), encode_offset(*next_));
}

std::unique_ptr<Backlog::Part> ChangeStream::begin_part() {
  Status ignored;  // it is read from the engine, then
  return on() ? backlog_->begin_part(&ignored) : nullptr;
}

void ChangeStream::adopt(Place place, storage::Batch& batch) {
  next_ = std::move(place);
  lost_backlog_ = true;
  batch.put(Space::kSystem, ids_key(), encode_ids(*next_));
  batch.put(Space::kSystem, offset_key(), encode_offset(*next_));
}

void ChangeStream::committed() {
  if (!next_) return;
  const bool lost = std::exchange(lost_backlog_, false);
  if (lost) {
    backlog_->begin_anew(next_->offset);
  } else {
    backlog_->publish();
    backlog_fails_ = false;
  }
  {
    std::lock_guard lock(mutex_);
    place_ = std::move(*next_);
    is_id_old_ = false;
    on_ = !place_.id.empty();
  }
  next_.reset();
  call_waiting(lost);
}

void ChangeStream::undo() {
  if (!next_) return;
  next_.reset();
  lost_backlog_ = false;
  backlog_->cut();
}

void ChangeStream::when_beyond(uint64_t offset, Then then) {
  {
    std::lock_guard lock(mutex_);
    if (on() && place_.offset <= offset) {
      waiting_.push_back({.offset = offset, .then = std::move(then)});
      return;
    }
  }
  then();
}

void ChangeStream::call_waiting(bool all) {
  std::vector<Waiting> ready;
  {
    std::lock_guard lock(mutex_);
    const auto beyond = std::ranges::partition(waiting_, [this, all](const Waiting& waiting) {
      return on() && place_.offset <= waiting.offset && !all;
    });
    std::ranges::move(beyond, std::back_inserter(ready));
    waiting_.erase(beyond.begin(), beyond.end());
  }
  for (Waiting& waiting : ready) waiting.then();
}

std::unique_ptr<Backlog::Reader> ChangeStream::resume(std::string_view id, uint64_t offset) {
  std::lock_guard lock(mutex_);
  if (!on()) return nullptr;
  const bool is_same =
      id == place_.id || std::ranges::any_of(place_.former, [&](const Place::Former& former) {
        return id == former.id && offset <= former.offset;
      });
  if (!is_same) return nullptr;
  return backlog_->read_from(offset);
}

ChangeStream::BacklogFigures ChangeStream::backlog() const {
  const uint64_t begin = backlog_->begin();
  return {.begin = begin, .bytes = backlog_->end() - begin};
}

}  // namespace ingot::data
