// The records of all files together, the latest version of each: kept in an engine of its own, in a
// scratch directory, because they need not fit into memory. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "storage/engine.h"

namespace ingot::storage {

class MergedRecords {
 public:
  // `path` is made; whoever gave it removes it.
  explicit MergedRecords(const std::string& path);

  // Of everything so far: a full disk, for example. The first failure stays.
  const Status& status() const { return status_; }
  void note(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  // A later version of the key counts, whatever the order in which they come, but for those between
  // two calls of settle(): their versions rise, or the first of a key is the latest one.
  void add(Space space, std::string_view key, uint64_t sequence, bool removed,
           std::string_view value);
  void settle();

  // After settle(): calls `each` for the keys of [lower, upper) that were not removed, until it
  // returns false. An empty `upper`: to the end.
  using Each = std::function<bool(std::string_view key, uint64_t sequence, std::string_view value)>;
  void walk(Space space, const std::string& lower, const std::string& upper, const Each& each);
  // The first key of [lower, upper), empty when there is none.
  std::string first_key(Space space, const std::string& lower, const std::string& upper);

  // The same engine for whatever else has to be sorted or found again: spaces that add() was never
  // given.
  Engine& engine() { return *engine_; }

 private:
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Batch> batch_;
  std::string last_key_;  // since settle(); with its space before it
  uint64_t last_sequence_ = 0;
  std::string held_;
  Status status_;
};

}  // namespace ingot::storage
