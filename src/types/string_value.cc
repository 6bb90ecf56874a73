// Reading and writing strings, inline and in chunks, and changing some chunks of one.
#include "src/types/string_value.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ingot::types {

using storage::kInlineStringMax;
using storage::Metadata;
using storage::Space;
using storage::Status;

namespace {

// A string that is changed in small parts, and how it is cut then.
constexpr size_t kSmallPartBytes = 1 << 10;
constexpr uint64_t kInlineChangedMax = 4 << 10;
constexpr uint64_t kSmallChunkBytes = 1 << 10;
constexpr std::string_view kSmallChunkNote = "\x0a";  // in its record: the binary logarithm
// One that came as a whole is cut so when it has been changed often enough to make up for that: the
// writer does it.
constexpr uint64_t kChangesOfAChunk = 8;
constexpr uint64_t kCutAnewBytesMax = 2 << 20;
constexpr size_t kEmbeddedBytesMax = 44;  // Redis: longer strings are "raw"
constexpr size_t kIntegerBytesMax = 20;

Status corrupt_chunk() {
  return {Status::Code::kCorruption, "unreadable string chunk"};
}

// The one spelling that printing the number gives.
bool is_canonical_integer(std::string_view text) {
  if (text.empty() || text.size() > kIntegerBytesMax) return false;
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  char digits[kIntegerBytesMax + 1];
  auto printed = std::to_chars(digits, std::end(digits), value);
  return text == std::string_view(digits, static_cast<size_t>(printed.ptr - digits));
}

bool is_due_to_be_cut_small(const Record& record) {
  const Metadata::Collection& string = *record.collection();
  return chunks_of(record).bytes != kSmallChunkBytes && string.count <= kCutAnewBytesMax &&
         string.revision >= kChangesOfAChunk * (1 + string.count / storage::kStringChunkBytes);
}

// Lays `bytes` over a chunked string that has `length` bytes so far.
void write_chunks(KeyWriter& keys, const StringChunks& chunks, uint64_t length, uint64_t offset,
                  std::string_view bytes) {
  std::string record;
  std::string chunk;
  while (!bytes.empty()) {
    const uint64_t begin = offset % chunks.bytes;
    const std::string_view piece = bytes.substr(0, chunks.bytes - begin);
    const std::string key = chunks.key_at(offset);
    const bool covers_old_bytes =
        begin == 0 && (piece.size() == chunks.bytes || offset + piece.size() >= length);
    chunk.clear();
    if (offset - begin < length && !covers_old_bytes &&
        keys.data().get(Space::kData, key, &record)) {
      std::string_view old;
      if (!chunks.decode(record, &old)) return keys.data().latch_error(corrupt_chunk());
      chunk.assign(old);
    }
    if (chunk.size() < begin + piece.size()) chunk.resize(begin + piece.size());
    std::memcpy(chunk.data() + begin, piece.data(), piece.size());
    encode_chunk(chunk, &record);
    keys.overlay().put(Space::kData, key, record);
    offset += piece.size();
    bytes.remove_prefix(piece.size());
  }
}

}  // namespace

uint64_t string_length(const Record& record) {
  return record.collection() ? record.collection()->count : record.payload().size();
}

std::string_view string_encoding(const Record& record) {
  if (record.collection() || record.limit_passed()) return "raw";
  if (!record.text() && is_canonical_integer(record.payload())) return "int";
  return record.payload().size() <= kEmbeddedBytesMax ? "embstr" : "raw";
}

void read_string(storage::Reader& data, const Record& record, uint64_t offset, uint64_t bytes,
                 std::string* out) {
  if (record.collection()) return read_string(data, chunks_of(record), offset, bytes, out);
  out->append(record.payload().substr(offset, bytes));
}

void read_string(storage::Reader& data, const StringChunks& chunks, uint64_t offset, uint64_t bytes,
                 std::string* out) {
  out->reserve(out->size() + bytes);
  std::string record;
  while (bytes > 0) {
    const uint64_t begin = offset % chunks.bytes;
    const uint64_t wanted = std::min(chunks.bytes - begin, bytes);
    const uint64_t filled = out->size() + wanted;
    if (data.get(Space::kData, chunks.key_at(offset), &record)) {
      std::string_view chunk;
      if (!chunks.decode(record, &chunk)) return data.latch_error(corrupt_chunk());
      if (chunk.size() > begin) out->append(chunk.substr(begin, wanted));
    }
    out->resize(filled);
    offset += wanted;
    bytes -= wanted;
  }
}

void store_string(KeyWriter& keys, int db, std::string_view key, const Record* before,
                  std::string_view value, int64_t expire_ms, bool text) {
  Metadata after{.type = storage::ValueType::kString, .text = text, .expire_ms = expire_ms};
  if (value.size() <= kInlineStringMax) {
    after.payload = value;
  } else {
    after.collection = add_chunked_string(keys, value);
  }
  keys.store(db, key, before, after);
}

void write_string(KeyWriter& keys, int db, std::string_view key, const Record* before,
                  uint64_t offset, std::string_view bytes) {
  Metadata after = before != nullptr ? before->metadata() : Metadata{};
  // Redis keeps a string that was changed in place as "raw" whatever it is.
  after.limit_passed = true;
  const uint64_t length = before != nullptr ? string_length(*before) : 0;
  const uint64_t new_length = std::max(length, offset + bytes.size());
  std::string value;
  const bool in_small_parts = bytes.size() <= kSmallPartBytes;
  if (!after.collection && new_length <= (in_small_parts ? kInlineChangedMax : kInlineStringMax)) {
    value.reserve(new_length);
    value.append(after.payload);
    value.resize(new_length);
    if (!bytes.empty()) std::memcpy(value.data() + offset, bytes.data(), bytes.size());
    after.payload = value;
    return keys.store(db, key, before, after);
  }
  StringChunks chunks;
  if (after.collection && !(in_small_parts && is_due_to_be_cut_small(*before))) {
    chunks = chunks_of(*before);
  } else {
    chunks.id = keys.new_collection();
    if (in_small_parts) chunks.bytes = kSmallChunkBytes;
    if (before != nullptr) read_string(keys.data(), *before, 0, length, &value);
    write_chunks(keys, chunks, 0, 0, value);
    after.collection = Metadata::Collection{.id = chunks.id};
    after.payload = in_small_parts ? kSmallChunkNote : std::string_view();
  }
  write_chunks(keys, chunks, length, offset, bytes);
  after.collection->count = new_length;
  ++after.collection->revision;
  keys.store(db, key, before, after);
}

void make_raw(KeyWriter& keys, int db, std::string_view key, const Record& record) {
  if (string_encoding(record) == "raw") return;
  Metadata after = record.metadata();
  after.limit_passed = true;
  const Effects::Savepoint before = keys.effects().savepoint();
  keys.store(db, key, &record, after);
  keys.effects().rollback(before);
}

Metadata::Collection add_chunked_string(KeyWriter& keys, std::string_view value) {
  const Metadata::Collection collection{.id = keys.new_collection(), .count = value.size()};
  write_chunks(keys, {.id = collection.id}, 0, 0, value);
  return collection;
}

void put_chunk(const PutElement& put, uint32_t number, std::string_view bytes) {
  std::string element;
  storage::append_be32(&element, number);
  std::string record;
  encode_chunk(bytes, &record);
  put(Space::kData, element, record);
}

void encode_chunk(std::string_view bytes, std::string* out) {
  out->assign(1, storage::kPlainElement);
  out->append(bytes);
}

StringChunks chunks_of(const Record& record) {
  StringChunks chunks{.id = record.collection()->id};
  if (record.payload() == kSmallChunkNote) chunks.bytes = kSmallChunkBytes;
  return chunks;
}

bool StringChunks::decode(std::string_view record, std::string_view* chunk) const {
  if (record.empty() || record[0] != storage::kPlainElement || record.size() > bytes + 1) {
    return false;
  }
  *chunk = record.substr(1);
  return true;
}

bool ChunkReader::read(uint64_t offset, std::span<char> to) {
  const uint64_t end = offset + to.size();
  bool copied = false;
  const std::string first = chunks_.key_at(offset);
  for (cursor_->seek(first); cursor_->valid(); cursor_->next()) {
    std::string_view key = cursor_->key();
    std::string_view chunk;
    if (key.size() != first.size() || !chunks_.decode(cursor_->value(), &chunk)) {
      status_ = corrupt_chunk();
      break;
    }
    const uint64_t chunk_begin =
        uint64_t{storage::read_be32(key.substr(sizeof(storage::CollectionId)))} * chunks_.bytes;
    if (chunk_begin >= end) return copied;
    const uint64_t from = std::max(chunk_begin, offset);
    const uint64_t until = std::min(chunk_begin + chunk.size(), end);
    if (from >= until) continue;
    std::memcpy(to.data() + (from - offset), chunk.data() + (from - chunk_begin), until - from);
    copied = true;
    if (until == end) return copied;
  }
  if (cursor_->outcome() == storage::Lookup::kError) status_ = cursor_->status();
  if (cursor_->outcome() == storage::Lookup::kMiss) {
    status_ = {Status::Code::kIo, "string chunks are not in memory"};
  }
  return copied;
}

}  // namespace ingot::types
