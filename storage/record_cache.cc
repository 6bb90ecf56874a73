// Second-chance eviction in shards, and the keys that a running commit keeps out.
#include "storage/record_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

namespace ingot::storage {
namespace {

// What an entry costs besides its bytes: its place in the table, the allocator's rounding.
constexpr uint64_t kEntryOverhead = 40;
// Entries that are considered for eviction at a time: more than a long record needs the room of.
constexpr size_t kConsideredMax = 64;
// Of capacity, for each mark of what came from the disk: about one mark for each entry.
constexpr uint64_t kBytesOfMark = 128;

void fetch_lines(const void* entry) {
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < 3 * kLine; at += kLine) {
    __builtin_prefetch(static_cast<const char*>(entry) + at);
  }
}

}  // namespace

RecordCache::Shard& RecordCache::shard_of(const HashedKey& key) {
  // Bits by which the entries of a shard are not placed.
  return shards_[(key.hash >> 8) % kShards];
}

RecordCache::Entry* RecordCache::find(Shard& shard, const HashedKey& key) {
  return shard.entries.find(key.hash, [&key](Entry& entry) { return entry.is(key); });
}

bool RecordCache::get(const HashedKey& key, std::string* value) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  return take(shard, key, value);
}

bool RecordCache::get_at(Moment moment, const HashedKey& key, std::string* value) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  return unchanged_since(shard, moment) && new_since_.load(std::memory_order_relaxed) < moment &&
         take(shard, key, value);
}

bool RecordCache::take(Shard& shard, const HashedKey& key, std::string* value) {
  Entry* const entry = find(shard, key);
  if (entry == nullptr || entry->changing) return false;
  entry->used = true;
  value->assign(entry->value(), entry->value_bytes);
  ++shard.hits;
  return true;
}

bool RecordCache::peek(const HashedKey& key, std::string* value) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  Entry* const entry = find(shard, key);
  if (entry == nullptr || entry->changing) return false;
  value->assign(entry->value(), entry->value_bytes);
  return true;
}

void RecordCache::prefetch(std::span<const HashedKey> keys, std::vector<HashedKey>* missing) {
  for (const HashedKey& key : keys) {
    const Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    shard.entries.prefetch(key.hash);
  }
  for (const HashedKey& key : keys) {
    const Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    const Entry* const entry = shard.entries.find(key.hash, [](const Entry&) { return true; });
    if (entry != nullptr) {
      fetch_lines(entry);
    } else if (missing != nullptr) {
      missing->push_back(key);
    }
  }
}

void RecordCache::prefetch(Changing changing) {
  if (changing != nullptr) fetch_lines(changing);
}

void RecordCache::fill(Moment moment, const HashedKey& key, std::string_view value) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  if (unchanged_since(shard, moment)) set(shard, find(shard, key), key, value);
}

void RecordCache::fill_from_disk(Moment moment, const HashedKey& key, std::string_view value) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  if (note_seen(shard, key.hash) && unchanged_since(shard, moment)) {
    set(shard, find(shard, key), key, value);
  }
}

bool RecordCache::note_seen(Shard& shard, uint64_t hash) {
  if (shard.seen.empty()) return false;
  uint16_t& mark = shard.seen[(hash >> 16) % shard.seen.size()];
  return std::exchange(mark, static_cast<uint16_t>(hash >> 48)) ==
         static_cast<uint16_t>(hash >> 48);
}

void RecordCache::add(const HashedKey& key, std::string_view value) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  set(shard, find(shard, key), key, value);
}

// Whoever sees this one has what was committed before it.
void RecordCache::begin_changes() {
  moment_.store(moment_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void RecordCache::begin_new() {
  new_since_.store(moment_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

// Whoever sees this moment takes a snapshot that has the changes.
void RecordCache::end_changes() {
  moment_.store(moment_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

RecordCache::Changing RecordCache::begin_change(const HashedKey& key) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  shard.changed = moment_.load(std::memory_order_relaxed);
  ++shard.changing;
  Entry* entry = find(shard, key);
  if (entry != nullptr) entry->changing = true;
  return entry;
}

// Nobody has filled in meanwhile what was not there.
void RecordCache::end_change(const HashedKey& key, Changing changing, std::string_view value) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  --shard.changing;
  set(shard, changing, key, value);
  make_room(shard);
}

// `old`: the record's entry; null: it has none.
void RecordCache::set(Shard& shard, Entry* old, const HashedKey& key, std::string_view value) {
  if (old != nullptr) {
    if (value.size() == old->value_bytes) {
      std::memcpy(old->value(), value.data(), value.size());
      old->changing = false;
      return;
    }
    drop(shard, old);
  }
  if (value.empty() || key.key.size() + value.size() > kRecordBytesMax) return;
  if (shard_bytes_max_.load(std::memory_order_relaxed) == 0) return;
  void* memory = ::operator new(sizeof(Entry) + key.key.size() + value.size());
  auto* entry = new (memory) Entry{.hash = key.hash,
                                   .key_bytes = static_cast<uint16_t>(key.key.size()),
                                   .value_bytes = static_cast<uint16_t>(value.size()),
                                   .space = key.space,
                                   .used = false,
                                   .changing = false};
  std::memcpy(entry->data(), key.key.data(), key.key.size());
  std::memcpy(entry->value(), value.data(), value.size());
  shard.entries.insert(key.hash, entry);
  shard.queue.push_back(*entry);
  shard.bytes += kEntryOverhead + entry->bytes();
  make_room(shard);
}

// Those that are changing stay. What is beyond the capacity for want of turns goes with what is
// added next.
void RecordCache::make_room(Shard& shard) {
  for (size_t turns = std::min(kConsideredMax, 2 * shard.queue.size()); turns > 0 && is_over(shard);
       --turns) {
    Entry& oldest = shard.queue.front();
    if (oldest.used || oldest.changing) {
      oldest.used = false;
      shard.queue.splice(shard.queue.end(), shard.queue, shard.queue.begin());
    } else {
      drop(shard, &oldest);
    }
  }
}

void RecordCache::drop(Shard& shard, Entry* entry) {
  shard.bytes -= kEntryOverhead + entry->bytes();
  shard.entries.erase(entry->hash, entry);
  shard.queue.erase(shard.queue.iterator_to(*entry));
  entry->~Entry();
  ::operator delete(entry);
}

void RecordCache::set_capacity(uint64_t bytes) {
  shard_bytes_max_.store(bytes / kShards, std::memory_order_relaxed);
  const size_t marks = std::bit_floor(bytes / kShards / kBytesOfMark);
  for (Shard& shard : shards_) {
    std::unique_lock lock(shard.mutex);
    // The capacity may go up and down a little all the time.
    if (marks > shard.seen.size() || marks < shard.seen.size() / 2) shard.seen.assign(marks, 0);
    // Once round makes all unused.
    for (size_t turns = 2 * shard.queue.size() / kConsideredMax + 1; turns > 0 && is_over(shard);
         --turns) {
      make_room(shard);
      lock.unlock();
      lock.lock();
    }
  }
}

RecordCache::~RecordCache() {
  for (Shard& shard : shards_) {
    while (!shard.queue.empty()) drop(shard, &shard.queue.front());
  }
}

uint64_t RecordCache::sum(uint64_t Shard::*figure) const {
  uint64_t sum = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    sum += shard.*figure;
  }
  return sum;
}

}  // namespace ingot::storage
