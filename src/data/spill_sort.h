// Sorts items by their bytes, however many there are: in memory up to a limit, beyond it in the
// engine, under a collection id that is garbage from the start (built_collection.h).
//
// One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/data/built_collection.h"

namespace ingot::data {

class SpillSort {
 public:
  explicit SpillSort(Services& services) : services_(services) {}
  ~SpillSort();
  SpillSort(const SpillSort&) = delete;
  SpillSort& operator=(const SpillSort&) = delete;

  // Before the first add(): only the first `count` in order are wanted. walk() may show more.
  void keep_first(uint64_t count) { wanted_ = std::max<uint64_t>(count, 1); }
  // Keys differ from each other; `value` may be empty.
  void add(std::string_view key, std::string_view value);
  uint64_t size() const { return size_; }  // how many were added, wanted or not

  bool is_spilled() const { return spilled_ != nullptr; }  // they are more than memory may hold

  // After the last add(). What does not fit is in the engine now, or the status says why not.
  [[nodiscard]] storage::Status finish();
  // After finish(), for a reply that a client may take minutes to read: the items leave the memory
  // unless they, and those of all such replies together, are few.
  [[nodiscard]] storage::Status keep_for_reply();
  // Calls `each` for the items in order, from the first whose key is not before `from` on, until it
  // returns false. Any thread, one at a time.
  using Each = std::function<bool(std::string_view key, std::string_view value)>;
  [[nodiscard]] storage::Status walk(std::string_view from, const Each& each) const;

 private:
  using Item = std::pair<std::string, std::string>;

  void drop_unwanted();
  void spill();

  Services& services_;
  std::vector<Item> held_;
  size_t held_bytes_ = 0;
  uint64_t size_ = 0;
  uint64_t wanted_ = UINT64_MAX;
  std::optional<std::string> last_wanted_;  // as many as are wanted have keys up to this one
  size_t kept_bytes_ = 0;                   // of held_bytes_, counted in Stats
  std::unique_ptr<BuiltCollection> spilled_;
};

}  // namespace ingot::data
