// Putting long strings together; see string_build.h.
#include "src/types/string_build.h"

#include <algorithm>
#include <array>

#include "src/exec/store.h"

namespace ingot::types {

using storage::kStringChunkBytes;
using storage::Space;
using storage::Status;

namespace {

std::optional<storage::Metadata::Collection> collection_of(const Record* record) {
  return record != nullptr ? record->collection() : std::nullopt;
}

std::string_view payload_of(const Record* record) {
  return record != nullptr ? record->payload() : std::string_view();
}

std::optional<ChunkReader> open_reader(const StringBuild::OpenCursor& open_cursor,
                                       std::optional<storage::CollectionId> id) {
  if (!id) return std::nullopt;
  return ChunkReader(open_cursor(storage::collection_begin(*id), storage::collection_end(*id)),
                     *id);
}

// The part of [begin, begin + to.size()) that lies in [from, until).
std::span<char> overlap(std::span<char> to, uint64_t begin, uint64_t from, uint64_t until) {
  const uint64_t first = std::max(begin, from);
  const uint64_t last = std::min(begin + to.size(), until);
  return first < last ? to.subspan(first - begin, last - first) : std::span<char>();
}

}  // namespace

StringBuild::StringBuild(exec::Services& services, const Record* base, const Splice& splice,
                         const OpenCursor& open_cursor)
    : string_(services),
      base_(collection_of(base)),
      base_payload_(payload_of(base)),
      offset_(splice.offset),
      length_(std::max(base != nullptr ? string_length(*base) : 0, splice.end())) {
  using Id = std::optional<storage::CollectionId>;
  auto base_reader = open_reader(open_cursor, base_ ? Id(base_->id) : Id());
  auto value_reader = open_reader(open_cursor, splice.value ? Id(splice.value->id()) : Id());
  build(splice, base_reader ? &*base_reader : nullptr, value_reader ? &*value_reader : nullptr);
  string_.flush();
}

void StringBuild::build(const Splice& splice, ChunkReader* base, ChunkReader* value) {
  std::array<char, kStringChunkBytes> buffer;
  const uint64_t base_length = base_ ? base_->count : base_payload_.size();
  auto read = [&](ChunkReader& reader, uint64_t offset, std::span<char> to) {
    const bool copied = reader.read(offset, to);
    if (!reader.status().ok()) string_.fail(reader.status());
    return copied;
  };
  for (uint64_t begin = 0; begin < length_; begin += kStringChunkBytes) {
    const std::span<char> chunk(buffer.data(),
                                std::min<uint64_t>(kStringChunkBytes, length_ - begin));
    std::fill(chunk.begin(), chunk.end(), '\0');
    bool is_hole = true;
    if (auto part = overlap(chunk, begin, 0, base_length); !part.empty()) {
      if (base != nullptr) {
        is_hole = !read(*base, begin, part);
      } else {
        base_payload_.copy(part.data(), part.size(), begin);
        is_hole = false;
      }
    }
    if (auto part = overlap(chunk, begin, splice.offset, splice.end()); !part.empty()) {
      read(*value, std::max(begin, splice.offset) - splice.offset, part);
      is_hole = false;
    }
    if (!is_hole) {
      string_.put_chunk(static_cast<uint32_t>(begin / kStringChunkBytes),
                        {chunk.data(), chunk.size()});
    }
    if (!string_.status().ok()) return;
  }
}

bool StringBuild::built_from(const Record* base, const Splice& splice) const {
  const auto now = collection_of(base);
  if (splice.offset != offset_ || now.has_value() != base_.has_value()) return false;
  if (now) return now->id == base_->id && now->revision == base_->revision;
  return payload_of(base) == base_payload_;
}

command::Prepare prepare_string(exec::Services& services, int db, std::string key, Splice splice) {
  return [&services, db, key = std::move(key), splice = std::move(splice)](
             KeyReader& keys, exec::Store& store,
             Status* error) -> std::shared_ptr<command::Prepared> {
    Record record;
    const bool found = keys.peek(db, key, &record) && is_string(record);
    // Not at the view: what changes after it makes built_from() false. And the chunks pass by the
    // cache, which they would only sweep.
    auto open_cursor = [&](std::string_view lower, std::string_view upper) {
      return store.engine().new_cursor(
          Space::kData,
          {.lower = std::string(lower), .upper = std::string(upper), .fill_cache = false});
    };
    if (keys.data().failed()) {
      *error = keys.data().error();
      return nullptr;
    }
    auto build =
        std::make_shared<StringBuild>(services, found ? &record : nullptr, splice, open_cursor);
    *error = build->status();
    return error->ok() ? build : nullptr;
  };
}

}  // namespace ingot::types
