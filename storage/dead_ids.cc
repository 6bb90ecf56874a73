// Pages of dead ids: merging them in, taking them out, finding runs.
#include "storage/dead_ids.h"

#include <algorithm>
#include <mutex>

namespace ingot::storage {
namespace {

constexpr int kLowBits = 16;
constexpr size_t kIdBytes = sizeof(uint16_t) + sizeof(uint32_t);
constexpr size_t kPageBytes = 128;  // of an empty one, about

uint64_t page_of(uint64_t id) {
  return id >> kLowBits;
}
uint16_t low_of(uint64_t id) {
  return static_cast<uint16_t>(id);
}

// The ids at the front that stand in one page.
std::span<const uint64_t> of_one_page(std::span<const uint64_t> ids) {
  const auto end = std::ranges::partition_point(
      ids, [page = page_of(ids.front())](uint64_t id) { return page_of(id) == page; });
  return ids.first(static_cast<size_t>(end - ids.begin()));
}

}  // namespace

size_t DeadIds::add(std::span<const uint64_t> ids) {
  std::unique_lock lock(mutex_);
  ++newest_;
  size_t taken = 0;
  while (taken < ids.size()) {
    const auto part = of_one_page(ids.subspan(taken));
    const size_t bytes = (size_ + part.size()) * kIdBytes + (pages_.size() + 1) * kPageBytes;
    if (bytes > bytes_max_) break;
    Page& page = pages_[page_of(part.front())];
    Page merged;
    size_t old = 0;
    const auto keep_up_to = [&](uint32_t low) {
      for (; old < page.low.size() && page.low[old] <= low; ++old) {
        merged.low.push_back(page.low[old]);
        merged.epoch.push_back(page.epoch[old]);
      }
    };
    for (uint64_t id : part) {
      keep_up_to(low_of(id));
      if (!merged.low.empty() && merged.low.back() == low_of(id)) continue;
      merged.low.push_back(low_of(id));
      merged.epoch.push_back(newest_);
    }
    keep_up_to(UINT16_MAX);
    size_ += merged.low.size() - page.low.size();
    page = std::move(merged);
    taken += part.size();
  }
  return taken;
}

void DeadIds::remove(std::span<const uint64_t> ids) {
  std::unique_lock lock(mutex_);
  while (!ids.empty()) {
    const auto part = of_one_page(ids);
    ids = ids.subspan(part.size());
    const auto found = pages_.find(page_of(part.front()));
    if (found == pages_.end()) continue;
    const Page& page = found->second;
    Page left;
    auto leaving = part.begin();
    for (size_t i = 0; i < page.low.size(); ++i) {
      while (leaving != part.end() && low_of(*leaving) < page.low[i]) ++leaving;
      if (leaving != part.end() && low_of(*leaving) == page.low[i]) continue;
      left.low.push_back(page.low[i]);
      left.epoch.push_back(page.epoch[i]);
    }
    size_ -= page.low.size() - left.low.size();
    if (left.low.empty()) {
      pages_.erase(found);
    } else {
      found->second = std::move(left);
    }
  }
}

uint32_t DeadIds::newest() const {
  std::shared_lock lock(mutex_);
  return newest_;
}

size_t DeadIds::size() const {
  std::shared_lock lock(mutex_);
  return size_;
}

std::optional<DeadIds::Run> DeadIds::next(uint64_t id) const {
  std::shared_lock lock(mutex_);
  for (auto it = pages_.lower_bound(page_of(id)); it != pages_.end(); ++it) {
    const std::vector<uint16_t>& low = it->second.low;
    const uint16_t from = it->first == page_of(id) ? low_of(id) : 0;
    auto first = std::ranges::lower_bound(low, from);
    if (first == low.end()) continue;
    // They ascend: a run ends where one is farther from its first than its place is.
    const auto behind = std::partition_point(first, low.end(), [&first](const uint16_t& each) {
      return each - *first == &each - &*first;
    });
    const uint64_t base = it->first << kLowBits;
    return Run{.first = base | *first, .last = base | *std::prev(behind)};
  }
  return std::nullopt;
}

bool DeadIds::covers(uint64_t first, uint64_t last) const {
  for (uint64_t id = first;;) {
    const std::optional<Run> run = next(id);
    if (!run || run->first > id) return false;
    if (run->last >= last) return true;
    id = run->last + 1;
  }
}

void DeadIds::for_each(const std::function<void(uint64_t, uint32_t)>& visit) const {
  std::shared_lock lock(mutex_);
  for (const auto& [number, page] : pages_) {
    for (size_t i = 0; i < page.low.size(); ++i) {
      visit(number << kLowBits | page.low[i], page.epoch[i]);
    }
  }
}

}  // namespace ingot::storage
