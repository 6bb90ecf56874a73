// Readers over an engine: one that may wait for the disk and one that may not.
#include "storage/reader.h"

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

}  // namespace

bool EngineReader::get(Space space, std::string_view key, std::string* value) {
  if (failed()) return false;
  Status status;
  const Lookup found = engine_.get(snapshot_, space, key, tier_, value, &status);
  return settle(found, std::move(status));
}

std::unique_ptr<Cursor> EngineReader::cursor(Space space, std::string_view lower,
                                             std::string_view upper) {
  if (failed()) return std::make_unique<EmptyCursor>();
  return engine_.new_cursor(space, {.snapshot = snapshot_,
                                    .lower = std::string(lower),
                                    .upper = std::string(upper),
                                    .tier = tier_,
                                    .fill_cache = use_ == CacheUse::kFill});
}

bool SingleProbe::get(Space space, std::string_view key, std::string* value) {
  if (failed()) return false;
  if (used_) {
    needs_snapshot_ = true;
    latch_miss();
    return false;
  }
  used_ = true;
  Status status;
  RecordCache::Ticket ticket = 0;
  const bool cached = cache_ != nullptr && space == Space::kMeta;
  if (cached && cache_->get(key, value, &ticket)) return true;
  const Lookup found = engine_.get(nullptr, space, key, Tier::kCacheOnly, value, &status);
  if (cached && found == Lookup::kFound) cache_->fill(key, *value, ticket);
  return settle(found, std::move(status));
}

std::unique_ptr<Cursor> SingleProbe::cursor(Space, std::string_view, std::string_view) {
  needs_snapshot_ = true;
  latch_miss();
  return std::make_unique<EmptyCursor>();
}

}  // namespace ingot::storage
