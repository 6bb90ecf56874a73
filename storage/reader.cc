// Readers over an engine: one that may wait for the disk and one that may not.
#include "storage/reader.h"

#include <algorithm>
#include <cstring>

namespace ingot::storage {

namespace {

// A cursor for a reader that already failed: always at the end.
class EmptyCursor : public Cursor {
 public:
  bool valid() const override { return false; }
  void seek(std::string_view) override {}
  void seek_for_prev(std::string_view) override {}
  void next() override {}
  void prev() override {}
  std::string_view key() const override { return {}; }
  std::string_view value() const override { return {}; }
  Lookup outcome() const override { return Lookup::kFound; }
  Status status() const override { return {}; }
};

Status stopped_status() {
  return {Status::Code::kIo, "nobody waits for this any more"};
}

// Ends, with an error, once it is told to.
class StoppableCursor : public Cursor {
 public:
  StoppableCursor(std::unique_ptr<Cursor> cursor, const std::function<bool()>& stopped)
      : cursor_(std::move(cursor)), stopped_(stopped) {}

  bool valid() const override { return !ended_ && cursor_->valid(); }
  void seek(std::string_view key) override {
    cursor_->seek(key);
    look();
  }
  void seek_for_prev(std::string_view key) override {
    cursor_->seek_for_prev(key);
    look();
  }
  void next() override {
    cursor_->next();
    look();
  }
  void prev() override {
    cursor_->prev();
    look();
  }
  std::string_view key() const override { return cursor_->key(); }
  std::string_view value() const override { return cursor_->value(); }
  Lookup outcome() const override { return ended_ ? Lookup::kError : cursor_->outcome(); }
  Status status() const override { return ended_ ? stopped_status() : cursor_->status(); }

 private:
  static constexpr uint32_t kMovesBetweenLooks = 64;

  void look() {
    if (++moves_ % kMovesBetweenLooks == 0 && stopped_()) ended_ = true;
  }

  std::unique_ptr<Cursor> cursor_;
  const std::function<bool()> stopped_;
  uint32_t moves_ = 0;
  bool ended_ = false;
};

// What a record names, if an image of it may be had.
std::optional<Metadata::Collection> small_collection(std::string_view record) {
  Metadata metadata;
  if (!has_collection(record) || !decode_metadata(record, &metadata) ||
      metadata.type == ValueType::kString ||
      metadata.collection->count > CollectionImage::kElementsMax) {
    return std::nullopt;
  }
  return metadata.collection;
}

// Whether all between the bounds is the collection's.
bool holds(CollectionId id, Space space, std::string_view lower, std::string_view upper) {
  return (space == Space::kData || space == Space::kOrder) && lower >= collection_begin(id) &&
         !upper.empty() && upper <= collection_end(id);
}

// Null when it is too much, or not all of it can be read at this tier.
std::shared_ptr<const CollectionImage> read_image(Engine& engine, const Snapshot* snapshot,
                                                  Tier tier, Space space, CollectionId id) {
  // A queue may have left far more behind than it holds.
  constexpr uint64_t kSkippedMax = 256;
  const std::string begin = collection_begin(id);
  const auto at = engine.new_cursor(space, {.snapshot = snapshot,
                                            .lower = begin,
                                            .upper = collection_end(id),
                                            .tier = tier,
                                            .skipped_max = kSkippedMax});
  auto made = std::make_shared<CollectionImage>();
  for (at->seek(begin); at->valid(); at->next()) {
    if (!made->add(at->key(), at->value())) return nullptr;
  }
  if (at->outcome() != Lookup::kFound) return nullptr;
  made->shrink();
  return made;
}

}  // namespace

bool EngineReader::get(Space space, std::string_view key, std::string* value) {
  if (stopped()) latch_error(stopped_status());
  if (failed()) return false;
  const bool cached = hot_.cache != nullptr && RecordCache::takes(space);
  const HashedKey hashed(space, key);
  if (cached && hot_.cache->get_at(hot_.moment, hashed, value)) {
    if (space == Space::kMeta) note_collection(*value);
    return true;
  }
  Status status;
  const Lookup found = engine_.get(snapshot_, space, key, tier_, value, &status);
  if (found == Lookup::kFound && space == Space::kMeta) note_collection(*value);
  if (cached && found == Lookup::kFound) {
    hot_.from_disk ? hot_.cache->fill_from_disk(hot_.moment, hashed, *value)
                   : hot_.cache->fill(hot_.moment, hashed, *value);
  }
  return settle(found, std::move(status));
}

std::unique_ptr<Cursor> EngineReader::cursor(Space space, std::string_view lower,
                                             std::string_view upper) {
  if (stopped()) latch_error(stopped_status());
  if (failed()) return std::make_unique<EmptyCursor>();
  if (auto all = image(space, lower, upper)) return image_cursor(std::move(all), lower, upper);
  walked_ = true;
  auto cursor = engine_.new_cursor(space, {.snapshot = snapshot_,
                                           .lower = std::string(lower),
                                           .upper = std::string(upper),
                                           .tier = tier_,
                                           .fill_cache = use_ == CacheUse::kFill});
  if (!stopped_) return cursor;
  return std::make_unique<StoppableCursor>(std::move(cursor), stopped_);
}

void EngineReader::note_collection(std::string_view record) {
  if (hot_.images == nullptr || noted_.size() == kNotedMax) return;
  if (const auto collection = small_collection(record)) noted_.push_back(*collection);
}

// The record is as the snapshot has it, and so is what an image of its revision holds.
std::shared_ptr<const CollectionImage> EngineReader::image(Space space, std::string_view lower,
                                                           std::string_view upper) {
  const auto its = std::ranges::find_if(
      noted_, [&](const auto& each) { return holds(each.id, space, lower, upper); });
  if (its == noted_.end()) return nullptr;
  const CollectionCache::Name name{.id = its->id, .space = space};
  const bool can_make = tier_ == Tier::kDisk || engine_.capabilities().probe;
  bool make = false;
  auto found = hot_.images->get(name, its->revision, its->count, can_make ? &make : nullptr);
  if (make) {
    found = read_image(engine_, snapshot_, tier_, space, its->id);
    hot_.images->put(name, its->revision, found);
  }
  return found;
}

bool KeyProbe::look_up(Space space, std::string_view key, std::string* value) {
  Status status;
  const HashedKey hashed(space, key);
  const bool cached = cache_ != nullptr && RecordCache::takes(space);
  if (cached && cache_->get(hashed, value)) return true;
  const RecordCache::Moment moment = cached ? cache_->now() : 0;
  const Lookup found = engine_.get(nullptr, space, key, Tier::kCacheOnly, value, &status);
  if (cached && found == Lookup::kFound) cache_->fill(moment, hashed, *value);
  return settle(found, std::move(status));
}

bool KeyProbe::get(Space space, std::string_view key, std::string* value) {
  if (failed()) return false;
  const bool is_first = reads_ == 0;
  const bool is_record = space == Space::kMeta;
  if (is_record != is_first || (!is_first && record_bytes_ == 0)) {
    needs_snapshot_ = true;
    latch_miss();
    return false;
  }
  ++reads_;
  if (!look_up(space, key, value)) return false;
  if (is_first) keep(key, *value);
  return true;
}

void KeyProbe::keep(std::string_view key, std::string_view record) {
  if (!has_collection(record) || key.size() + record.size() > kept_.size()) return;
  key_bytes_ = key.size();
  record_bytes_ = record.size();
  std::memcpy(kept_.data(), key.data(), key.size());
  std::memcpy(kept_.data() + key.size(), record.data(), record.size());
}

bool KeyProbe::confirm() {
  if (reads_ < 2) return true;
  std::string now;
  if (look_up(Space::kMeta, kept_key(), &now) && now == kept_record()) return true;
  needs_snapshot_ = true;
  return false;
}

uint64_t KeyProbe::walk_max() const {
  return collection() ? CollectionImage::kElementsMax : 0;
}

// Of the kept record, if an image of it may be had.
std::optional<Metadata::Collection> KeyProbe::collection() const {
  return images_ == nullptr ? std::nullopt : small_collection(kept_record());
}

std::unique_ptr<Cursor> KeyProbe::cursor(Space space, std::string_view lower,
                                         std::string_view upper) {
  if (auto all = failed() ? nullptr : image(space, lower, upper)) {
    return image_cursor(std::move(all), lower, upper);
  }
  needs_snapshot_ = true;
  latch_miss();
  return std::make_unique<EmptyCursor>();
}

std::shared_ptr<const CollectionImage> KeyProbe::image(Space space, std::string_view lower,
                                                       std::string_view upper) {
  const auto its = collection();
  if (!its || !holds(its->id, space, lower, upper)) return nullptr;
  const CollectionCache::Name name{.id = its->id, .space = space};
  const bool can_make = engine_.capabilities().probe;
  bool make = false;
  auto found = images_->get(name, its->revision, its->count, can_make ? &make : nullptr);
  if (make) {
    found = make_image(space, its->id);
    images_->put(name, its->revision, found);
  }
  return found;
}

// Null when not all is in memory, it is too much, or the collection changes.
std::shared_ptr<const CollectionImage> KeyProbe::make_image(Space space, CollectionId id) {
  auto made = read_image(engine_, nullptr, Tier::kCacheOnly, space, id);
  // The record was of this revision before, and is now: so it was when the cursor was made.
  std::string now;
  if (!look_up(Space::kMeta, kept_key(), &now) || now != kept_record()) return nullptr;
  return made;
}

}  // namespace ingot::storage
