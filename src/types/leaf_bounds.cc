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
  entries.insert(entries.begin() + static_cast<ptrdiff_t>(index),
                 {.head = head, .tail_end = begin, .bytes = static_cast<uint32_t>(bound.size())});
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

std::optional<std::string> LeafBounds::at(storage::CollectionId id, std::string_view bound) const {
  const Spot spot = find(head_of(id, bound), bound);
  if (chunks_.empty() || spot.index == chunks_[spot.chunk].entries.size()) return std::nullopt;
  const Entry& entry = chunks_[spot.chunk].entries[spot.index];
  if (entry.head.id != id) return std::nullopt;
  std::string found;
  storage::append_be64(&found, entry.head.bytes);
  found.resize(std::min<size_t>(entry.bytes, kHeadBytes));
  return found.append(chunks_[spot.chunk].tail(spot.index));
}

void LeafBounds::note(storage::CollectionId id, std::string_view bound) {
  if (bound.size() > kBoundBytesMax) return;
  const Head head = head_of(id, bound);
  const Spot spot = find(head, bound);
  if (chunks_.empty()) {
    chunks_.emplace_back();
    lasts_.push_back(head);
  }
  Chunk& chunk = chunks_[spot.chunk];
  if (spot.index < chunk.entries.size() && is(chunk, spot.index, head, bound)) return;
  bytes_ -= chunk.bytes();
  chunk.insert(spot.index, head, bound);
  bytes_ += chunk.bytes();
  ++size_;
  lasts_[spot.chunk] = chunk.entries.back().head;
  if (chunk.entries.size() > kChunkEntries) split(spot.chunk);
  make_room();
}

void LeafBounds::forget(storage::CollectionId id, std::string_view bound) {
  const Head head = head_of(id, bound);
  const Spot spot = find(head, bound);
  if (chunks_.empty() || spot.index == chunks_[spot.chunk].entries.size()) return;
  Chunk& chunk = chunks_[spot.chunk];
  if (!is(chunk, spot.index, head, bound)) return;
  if (chunk.entries.size() == 1) return drop_chunk(spot.chunk);
  bytes_ -= chunk.bytes();
  chunk.erase(spot.index);
  bytes_ += chunk.bytes();
  --size_;
  lasts_[spot.chunk] = chunk.entries.back().head;
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
  chunks_.erase(chunks_.begin() + static_cast<ptrdiff_t>(at));
  lasts_.erase(lasts_.begin() + static_cast<ptrdiff_t>(at));
}

void LeafBounds::make_room() {
  while (bytes_ > kBytesMax) {
    if (++turn_ >= chunks_.size()) turn_ = 0;
    drop_chunk(turn_);
  }
}

}  // namespace ingot::types
