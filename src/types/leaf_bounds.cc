// Searching chunks by heads, dividing and forgetting them.
#include "src/types/leaf_bounds.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace ingot::types {

namespace {

constexpr size_t kHeadBytes = sizeof(uint64_t);

std::string_view tail_of(std::string_view bound) {
  return bound.substr(std::min(bound.size(), kHeadBytes));
}

}  // namespace

std::string_view LeafBounds::Chunk::tail(size_t index) const {
  const uint32_t begin = index == 0 ? 0 : entries[index - 1].tail_end;
  return std::string_view(tails).substr(begin, entries[index].tail_end - begin);
}

void LeafBounds::Chunk::insert(size_t index, const Head& head, std::string_view bound) {
  const std::string_view tail = tail_of(bound);
  const uint32_t begin = index == 0 ? 0 : entries[index - 1].tail_end;
  tails.insert(begin, tail);
  entries.insert(
      entries.begin() + static_cast<ptrdiff_t>(index),
      {.head = head, .tail_end = begin, .bytes = static_cast<uint32_t>(bound.size()), .joined = 0});
  for (; index < entries.size(); ++index) {
    entries[index].tail_end += static_cast<uint32_t>(tail.size());
  }
}

void LeafBounds::Chunk::erase(size_t index) {
  const auto bytes = static_cast<uint32_t>(tail(index).size());
  tails.erase(entries[index].tail_end - bytes, bytes);
  entries.erase(entries.begin() + static_cast<ptrdiff_t>(index));
  for (; index < entries.size(); ++index) entries[index].tail_end -= bytes;
}

LeafBounds::Head LeafBounds::head_of(storage::CollectionId id, std::string_view bound) {
  char bytes[kHeadBytes] = {};
  std::memcpy(bytes, bound.data(), std::min(bound.size(), kHeadBytes));
  return {.id = id, .bytes = storage::read_be64({bytes, kHeadBytes})};
}

bool LeafBounds::is_before(const Chunk& chunk, size_t index, const Head& head,
                           std::string_view bound) {
  const Entry& entry = chunk.entries[index];
  if (entry.head != head) return entry.head < head;
  const int order = chunk.tail(index).compare(tail_of(bound));
  return order != 0 ? order < 0 : entry.bytes < bound.size();
}

bool LeafBounds::is(const Chunk& chunk, size_t index, const Head& head, std::string_view bound) {
  const Entry& entry = chunk.entries[index];
  return entry.head == head && entry.bytes == bound.size() && chunk.tail(index) == tail_of(bound);
}

LeafBounds::Spot LeafBounds::find(const Head& head, std::string_view bound) const {
  auto chunk = static_cast<size_t>(std::ranges::lower_bound(lasts_, head) - lasts_.begin());
  while (chunk < chunks_.size() &&
         is_before(chunks_[chunk], chunks_[chunk].entries.size() - 1, head, bound)) {
    ++chunk;
  }
  if (chunk == chunks_.size()) {
    return chunk == 0 ? Spot{} : Spot{.chunk = chunk - 1, .index = chunks_.back().entries.size()};
  }
  const std::vector<Entry>& entries = chunks_[chunk].entries;
  auto index = static_cast<size_t>(std::ranges::lower_bound(entries, head, {}, &Entry::head) -
                                   entries.begin());
  while (is_before(chunks_[chunk], index, head, bound)) ++index;
  return {.chunk = chunk, .index = index};
}

std::optional<LeafBounds::Known> LeafBounds::at(storage::CollectionId id,
                                                std::string_view bound) const {
  const Spot spot = find(head_of(id, bound), bound);
  if (is_end(spot)) return std::nullopt;
  const Entry& entry = chunks_[spot.chunk].entries[spot.index];
  if (entry.head.id != id) return std::nullopt;
  Known found{.bound = {}, .joined = entry.joined != 0};
  found.bound.reserve(std::max<size_t>(entry.bytes, kHeadBytes));
  storage::append_be64(&found.bound, entry.head.bytes);
  found.bound.resize(std::min<size_t>(entry.bytes, kHeadBytes));
  found.bound.append(chunks_[spot.chunk].tail(spot.index));
  return found;
}

void LeafBounds::set_joined(storage::CollectionId id, std::string_view bound) {
  const Head head = head_of(id, bound);
  const Spot spot = find(head, bound);
  if (is_end(spot) || !is(chunks_[spot.chunk], spot.index, head, bound)) return;
  chunks_[spot.chunk].entries[spot.index].joined = 1;
}

// What stands there is not known to be joined any more.
void LeafBounds::part(const Spot& spot) {
  if (!is_end(spot)) {
    chunks_[spot.chunk].entries[spot.index].joined = 0;
  } else if (spot.chunk + 1 < chunks_.size()) {
    chunks_[spot.chunk + 1].entries.front().joined = 0;
  }
}

void LeafBounds::part(storage::CollectionId id, std::string_view bound) {
  const Head head = head_of(id, bound);
  const Spot spot = find(head, bound);
  if (is_end(spot) || !is(chunks_[spot.chunk], spot.index, head, bound)) part(spot);
}

void LeafBounds::add(storage::CollectionId id, std::string_view bound) {
  if (bound.size() > kBoundBytesMax) return part(id, bound);
  const Head head = head_of(id, bound);
  const Spot spot = find(head, bound);
  if (chunks_.empty()) {
    chunks_.emplace_back();
    lasts_.push_back(head);
  }
  Chunk& chunk = chunks_[spot.chunk];
  if (spot.index < chunk.entries.size() && is(chunk, spot.index, head, bound)) return;
  part(spot);
  bytes_ -= chunk.bytes();
  chunk.insert(spot.index, head, bound);
  bytes_ += chunk.bytes();
  ++size_;
  lasts_[spot.chunk] = chunk.entries.back().head;
  if (chunk.entries.size() > kChunkEntries) split(spot.chunk);
}

void LeafBounds::note(storage::CollectionId id, std::string_view bound) {
  add(id, bound);
  make_room();
}

bool LeafBounds::follows(const Spot& spot, const Head& head, std::string_view bound) const {
  if (spot.chunk == 0 && spot.index == 0) return false;
  const size_t chunk = spot.index == 0 ? spot.chunk - 1 : spot.chunk;
  const size_t index = (spot.index == 0 ? chunks_[chunk].entries.size() : spot.index) - 1;
  return chunks_[chunk].entries[index].head.id == head.id &&
         !is_before(chunks_[chunk], index, head, bound);
}

void LeafBounds::add_neighbours(storage::CollectionId id, std::string_view before,
                                std::string_view bound) {
  if (!before.empty()) add(id, before);
  add(id, bound);
  // Not where the one before is too long to be known.
  const Spot spot = find(head_of(id, bound), bound);
  if (before.empty() || follows(spot, head_of(id, before), before)) set_joined(id, bound);
}

void LeafBounds::note_neighbours(storage::CollectionId id, std::string_view before,
                                 std::string_view bound) {
  add_neighbours(id, before, bound);
  make_room();
}

// What lies before the new leaf was before whichever bound is known there until now. Nothing is
// forgotten until all is said.
void LeafBounds::note_split(storage::CollectionId id, std::string_view bound,
                            std::string_view behind) {
  const auto before = at(id, bound);
  add_neighbours(id, bound, behind);
  if (before && before->joined) set_joined(id, bound);
  make_room();
}

void LeafBounds::forget(storage::CollectionId id, std::string_view bound) {
  const Head head = head_of(id, bound);
  const Spot spot = find(head, bound);
  if (is_end(spot)) return;
  Chunk& chunk = chunks_[spot.chunk];
  if (!is(chunk, spot.index, head, bound)) return;
  if (chunk.entries.size() == 1) return drop_chunk(spot.chunk);
  bytes_ -= chunk.bytes();
  chunk.erase(spot.index);
  bytes_ += chunk.bytes();
  --size_;
  lasts_[spot.chunk] = chunk.entries.back().head;
  part(spot);
}

void LeafBounds::split(size_t at) {
  Chunk& left = chunks_[at];
  const size_t half = left.entries.size() / 2;
  const uint32_t tail = left.entries[half - 1].tail_end;
  Chunk right{.entries = {left.entries.begin() + static_cast<ptrdiff_t>(half), left.entries.end()},
              .tails = left.tails.substr(tail)};
  for (Entry& entry : right.entries) entry.tail_end -= tail;
  left.entries.resize(half);
  left.tails.resize(tail);
  const auto behind = static_cast<ptrdiff_t>(at) + 1;
  lasts_.insert(lasts_.begin() + behind - 1, left.entries.back().head);
  chunks_.insert(chunks_.begin() + behind, std::move(right));
}

void LeafBounds::drop_chunk(size_t at) {
  size_ -= chunks_[at].entries.size();
  bytes_ -= chunks_[at].bytes();
  if (at + 1 < chunks_.size()) chunks_[at + 1].entries.front().joined = 0;
  chunks_.erase(chunks_.begin() + static_cast<ptrdiff_t>(at));
  lasts_.erase(lasts_.begin() + static_cast<ptrdiff_t>(at));
}

void LeafBounds::follow_cache(uint64_t capacity_bytes) {
  bytes_max_ = std::max<uint64_t>(kBytesMin, capacity_bytes / 16);
  make_room();
}

void LeafBounds::make_room() {
  while (bytes_ > bytes_max_) {
    if (++turn_ >= chunks_.size()) turn_ = 0;
    drop_chunk(turn_);
  }
}

}  // namespace ingot::types
