// A map with a list of its keys, so that one can be drawn.
#include "src/exec/tracking_table.h"

#include <utility>

namespace ingot::exec {

namespace {

constexpr size_t kKeyBytes = 160;  // what a key takes beside its name
constexpr size_t kItemBytes = sizeof(uint64_t);

}  // namespace

void TrackingTable::count(int64_t keys, int64_t items, int64_t bytes) {
  items_ += static_cast<uint64_t>(items);
  bytes_ += static_cast<uint64_t>(bytes);
  tracking_.remembered.keys.fetch_add(static_cast<uint64_t>(keys), std::memory_order_relaxed);
  tracking_.remembered.items.fetch_add(static_cast<uint64_t>(items), std::memory_order_relaxed);
  tracking_.remembered.bytes.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
}

void TrackingTable::remember(std::string_view key, uint64_t client) {
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    found = entries_.emplace(std::string(key), Entry{.clients = {}, .place = keys_.size()}).first;
    keys_.push_back(&*found);
    count(1, 0, static_cast<int64_t>(key.size() + kKeyBytes));
  }
  if (found->second.clients.insert(client).second) count(0, 1, kItemBytes);
}

TrackingTable::Clients TrackingTable::take(std::string_view key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {};
  Clients clients = std::move(found->second.clients);
  const size_t place = found->second.place;
  keys_[place] = keys_.back();
  keys_[place]->second.place = place;
  keys_.pop_back();
  const auto items = static_cast<int64_t>(clients.size());
  count(-1, -items,
        -static_cast<int64_t>(found->first.size() + kKeyBytes) - items * int64_t{kItemBytes});
  entries_.erase(found);
  return clients;
}

const std::string& TrackingTable::any_key() {
  drawn_ = drawn_ * 6364136223846793005u + 1442695040888963407u;
  return keys_[(drawn_ >> 33) % keys_.size()]->first;
}

void TrackingTable::clear() {
  count(-static_cast<int64_t>(keys_.size()), -static_cast<int64_t>(items_),
        -static_cast<int64_t>(bytes_));
  entries_ = {};
  keys_ = {};
}

}  // namespace ingot::exec
