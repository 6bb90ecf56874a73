// Second-chance eviction in shards, and the keys that a running commit keeps out.
#include "storage/record_cache.h"

#include <cstring>
#include <new>

namespace ingot::storage {
namespace {

// What an entry costs besides its bytes: its place in the map, the allocator's rounding.
constexpr uint64_t kEntryOverhead = 48;

}  // namespace

RecordCache::Shard& RecordCache::shard_of(std::string_view key) {
  // Bits that the map does not use: it places by the highest and compares the lowest.
  return shards_[(Hash{}(key) >> 8) % kShards];
}

bool RecordCache::get(std::string_view key, std::string* value, Ticket* ticket) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  if (found == shard.entries.end()) {
    *ticket = shard.changes;
    return false;
  }
  Entry& entry = *found->second;
  entry.used = true;
  value->assign(entry.value());
  hits_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void RecordCache::fill(std::string_view key, std::string_view value, Ticket ticket) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  if (shard.changing == 0 && shard.changes == ticket) insert(shard, key, value);
}

void RecordCache::begin_change(std::string_view key) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  ++shard.changes;
  ++shard.changing;
  erase(shard, key);
}

void RecordCache::end_change(std::string_view key, std::string_view value) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  --shard.changing;
  ++shard.changes;  // what was read in between may be the old record
  if (!value.empty()) insert(shard, key, value);
}

void RecordCache::insert(Shard& shard, std::string_view key, std::string_view value) {
  if (key.size() + value.size() > kRecordBytesMax) return;
  if (shard_bytes_max_.load(std::memory_order_relaxed) == 0) return;
  erase(shard, key);
  void* memory = ::operator new(sizeof(Entry) + key.size() + value.size());
  auto* entry = new (memory) Entry;
  entry->key_bytes = static_cast<uint32_t>(key.size());
  entry->value_bytes = static_cast<uint32_t>(value.size());
  entry->used = false;
  std::memcpy(entry->data(), key.data(), key.size());
  std::memcpy(entry->data() + key.size(), value.data(), value.size());
  shard.entries.emplace(entry->key(), entry);
  shard.queue.push_back(*entry);
  shard.bytes += kEntryOverhead + sizeof(Entry) + key.size() + value.size();
  make_room(shard);
}

void RecordCache::make_room(Shard& shard) {
  while (shard.bytes > shard_bytes_max_.load(std::memory_order_relaxed) && !shard.queue.empty()) {
    Entry& oldest = shard.queue.front();
    if (oldest.used) {
      oldest.used = false;
      shard.queue.splice(shard.queue.end(), shard.queue, shard.queue.begin());
    } else {
      drop(shard, &oldest);
    }
  }
}

void RecordCache::erase(Shard& shard, std::string_view key) {
  const auto found = shard.entries.find(key);
  if (found != shard.entries.end()) drop(shard, found->second);
}

void RecordCache::drop(Shard& shard, Entry* entry) {
  shard.bytes -= kEntryOverhead + sizeof(Entry) + entry->key_bytes + entry->value_bytes;
  shard.entries.erase(entry->key());
  shard.queue.erase(shard.queue.iterator_to(*entry));
  entry->~Entry();
  ::operator delete(entry);
}

void RecordCache::set_capacity(uint64_t bytes) {
  shard_bytes_max_.store(bytes / kShards, std::memory_order_relaxed);
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    make_room(shard);
  }
}

void RecordCache::clear() {
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    while (!shard.queue.empty()) drop(shard, &shard.queue.front());
  }
}

uint64_t RecordCache::bytes() const {
  uint64_t sum = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    sum += shard.bytes;
  }
  return sum;
}

}  // namespace ingot::storage
