// A Cursor of the in-memory engine.
#include "storage/memory/memory_cursor.h"

#include <algorithm>
#include <limits>

namespace ingot::storage {
namespace {

constexpr uint64_t kNewest = std::numeric_limits<uint64_t>::max();

}  // namespace

using View = std::pair<std::string_view, uint64_t>;

MemoryCursor::MemoryCursor(MemoryEngine* engine, Space space, const CursorOptions& options,
                           uint64_t sequence)
    : engine_(engine), space_(space), options_(options), sequence_(sequence) {}

MemoryCursor::~MemoryCursor() {
  engine_->unpin(sequence_);
}

void MemoryCursor::seek(std::string_view key) {
  std::shared_lock lock(engine_->mutex_);
  const std::string_view from = std::max(key, std::string_view(options_.lower));
  walk_up(engine_->versions(space_).lower_bound(View(from, kNewest)));
}

void MemoryCursor::seek_for_prev(std::string_view key) {
  std::shared_lock lock(engine_->mutex_);
  const auto& all = engine_->versions(space_);
  const bool beyond = !options_.upper.empty() && key >= options_.upper;
  // Behind the oldest version of `key`: no version has the number 0.
  walk_down(beyond ? all.lower_bound(View(options_.upper, kNewest))
                   : all.upper_bound(View(key, 0)));
}

void MemoryCursor::next() {
  std::shared_lock lock(engine_->mutex_);
  walk_up(engine_->versions(space_).upper_bound(View(key_, 0)));
}

void MemoryCursor::prev() {
  std::shared_lock lock(engine_->mutex_);
  walk_down(engine_->versions(space_).lower_bound(View(key_, kNewest)));
}

void MemoryCursor::walk_up(Position from) {
  valid_ = false;
  outcome_ = Lookup::kFound;
  const auto& all = engine_->versions(space_);
  while (from != all.end()) {
    const std::string& key = from->first.key;
    if (!options_.upper.empty() && key >= options_.upper) return;
    if (stop_at(key, engine_->find(space_, key, sequence_))) return;
    from = all.upper_bound(View(key, 0));
  }
}

void MemoryCursor::walk_down(Position from) {
  valid_ = false;
  outcome_ = Lookup::kFound;
  const auto& all = engine_->versions(space_);
  while (from != all.begin()) {
    const std::string& key = std::prev(from)->first.key;
    if (key < options_.lower) return;
    if (stop_at(key, engine_->find(space_, key, sequence_))) return;
    from = all.lower_bound(View(key, kNewest));
  }
}

// True when the walk ends here: on a record, or on one that is not in memory.
bool MemoryCursor::stop_at(std::string_view key, const std::string* value) {
  if (engine_->is_cold(space_, key, options_.tier)) {
    outcome_ = Lookup::kMiss;
    return true;
  }
  if (value == nullptr) return false;
  valid_ = true;
  key_.assign(key);
  value_.assign(*value);
  return true;
}

}  // namespace ingot::storage
