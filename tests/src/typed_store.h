// One database on an engine under test and the writer above it, without a server around them: the
// ground that the tests of the types stand on. Most of them care for a single key, kKey.
//
// One thread.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/types/built_value.h"
#include "src/types/keyspace.h"
#include "storage/codec.h"
#include "storage/engine.h"
#include "storage/overlay.h"
#include "storage/record_cache.h"
#include "tests/src/failing_engine.h"
#include "tests/storage/temporary_directory.h"
#include "tests/storage/test_engine.h"

namespace ingot::types {

// One engine after the other: the test that asks runs anew for each.
inline std::string each_engine() {
  return GENERATE(from_range(storage::engines_under_test()));
}

// Limits of the small form.
inline constexpr uint64_t kAlwaysLarge = 0;
inline constexpr uint64_t kAlwaysSmall = 1 << 20;

// Both forms, one after the other.
inline uint64_t each_form() {
  return GENERATE(kAlwaysLarge, kAlwaysSmall);
}

class TypedStore {
 public:
  static constexpr std::string_view kKey = "key";
  static constexpr storage::CollectionId kFirstCollection = 7;
  using Records = std::vector<std::pair<std::string, std::string>>;

  explicit TypedStore(const std::string& engine = "memory");

  // From now on with a cache of hot records, as in the server. Without one all reads are the
  // engine's.
  void use_cache() {
    caches_ = true;
    open();
  }

  // From now on with known counts of orders, which whoever commits takes along.
  void use_counts(storage::OrderCounts* counts) {
    counts_ = counts;
    open();
  }

  // The engines with a disk below are some ten times slower, as is a build with sanitizers: there a
  // random test takes fewer steps.
  bool on_disk() const { return name_ != "memory"; }
#ifdef __SANITIZE_ADDRESS__
  static constexpr size_t kSanitizedShare = 4;
#else
  static constexpr size_t kSanitizedShare = 1;
#endif
  size_t steps(size_t in_memory) const {
    return in_memory / (on_disk() ? 8 : 1) / kSanitizedShare;
  }

  // From now on it is this time.
  void at(int64_t now_ms);

  // Changes the value of kKey, or begins it, by a writer of its type; `limits` as the writer's.
  template <typename Writer, typename Limits, typename Change>
  void change(const Limits& limits, const Change& change) {
    Record before;
    const bool found = keys_->find(0, kKey, &before);
    Writer writer(*keys_, 0, kKey, found ? &before : nullptr, limits);
    change(writer);
    writer.finish();
  }
  // Gives kKey the value that a builder makes of what `fill` adds to it.
  template <typename Builder, typename Limits, typename Fill>
  void build(const Limits& limits, const Fill& fill) {
    const storage::CollectionId id = keys_->new_collection();
    Builder builder(limits,
                    [&](storage::Space space, std::string_view element, std::string_view record) {
                      overlay_->put(space, storage::collection_begin(id).append(element), record);
                    });
    fill(builder);
    link(builder.finish(), id);
  }
  // Changes that are taken back, as those of a command that fails in the middle of its group.
  template <typename Changes>
  void undone(const Changes& changes) {
    const auto overlay = overlay_->savepoint();
    const auto state = state_.savepoint();
    const auto effects = effects_.savepoint();
    changes();
    overlay_->rollback(overlay);
    state_.rollback(state);
    effects_.rollback(effects);
  }

  bool exists();
  Record record();  // requires that the key exists
  bool is_large() {
    return record().collection().has_value();
  }
  void remove_key() {
    keys_->remove(0, kKey, record());
  }
  // Another record of kKey, be it one that no writer makes.
  void replace_record(const storage::Metadata& metadata);
  // What the spaces hold, the group included.
  Records records_of(storage::Space space);
  size_t records_in(storage::Space space) {
    return records_of(space).size();
  }
  // All that a reader could tell of: equal before and after what must not have changed anything.
  std::vector<Records> contents();

  // Ends the group.
  void commit() {
    REQUIRE(try_commit().ok());
  }
  // The same; a group that the engine does not take is forgotten.
  storage::Status try_commit();
  // As a new process finds what was there; the memory engine, which would forget it, stays open.
  void reopen();

  // What the reader latched, which it forgets: the next read may succeed.
  storage::Status take_error();

  storage::FailingEngine& engine() {
    return *engine_;
  }
  storage::Overlay& overlay() {
    return *overlay_;
  }
  KeyWriter& keys() {
    return *keys_;
  }
  KeyspaceState& state() {
    return state_;
  }
  Effects& effects() {
    return effects_;
  }
  int64_t now_ms() const {
    return now_ms_;
  }

 private:
  class Ids : public FreshIds {
   public:
    storage::CollectionId next(storage::Status* /*failure*/) override { return next_++; }

   private:
    storage::CollectionId next_ = kFirstCollection;
  };

  void open();
  void link(const BuiltValue& value, storage::CollectionId id);

  const std::string name_;
  const Catch::ScopedMessage told_;  // the engine, when a test fails
  storage::TemporaryDirectory directory_;
  std::unique_ptr<storage::FailingEngine> engine_;
  bool caches_ = false;
  storage::OrderCounts* counts_ = nullptr;
  storage::RecordCache cache_{1 << 20};
  std::unique_ptr<storage::Overlay> overlay_;
  KeyspaceState state_;
  Ids ids_;
  Effects effects_;
  int64_t now_ms_ = 1000;
  std::unique_ptr<KeyWriter> keys_;
};

}  // namespace ingot::types
