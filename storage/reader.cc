// Readers over an engine: one that may wait for the disk and one that may not.
#include "storage/reader.h"

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

}  // namespace

bool EngineReader::get(Space space, std::string_view key, std::string* value) {
  if (stopped()) latch_error(stopped_status());
  if (failed()) return false;
  Status status;
  const Lookup found = engine_.get(snapshot_, space, key, tier_, value, &status);
  return settle(found, std::move(status));
}

std::unique_ptr<Cursor> EngineReader::cursor(Space space, std::string_view lower,
                                             std::string_view upper) {
  if (stopped()) latch_error(stopped_status());
  if (failed()) return std::make_unique<EmptyCursor>();
  walked_ = true;
  auto cursor = engine_.new_cursor(space, {.snapshot = snapshot_,
                                           .lower = std::string(lower),
                                           .upper = std::string(upper),
                                           .tier = tier_,
                                           .fill_cache = use_ == CacheUse::kFill});
  if (!stopped_) return cursor;
  return std::make_unique<StoppableCursor>(std::move(cursor), stopped_);
}

bool KeyProbe::look_up(Space space, std::string_view key, std::string* value) {
  Status status;
  RecordCache::Ticket ticket = 0;
  const HashedKey hashed(space, key);
  const bool cached = cache_ != nullptr && RecordCache::takes(space);
  if (cached && cache_->get(hashed, value, &ticket)) return true;
  const Lookup found = engine_.get(nullptr, space, key, Tier::kCacheOnly, value, &status);
  if (cached && found == Lookup::kFound) cache_->fill(hashed, *value, ticket);
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

std::unique_ptr<Cursor> KeyProbe::cursor(Space, std::string_view, std::string_view) {
  needs_snapshot_ = true;
  latch_miss();
  return std::make_unique<EmptyCursor>();
}

}  // namespace ingot::storage
