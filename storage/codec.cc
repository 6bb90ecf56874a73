// Encoding and decoding of keys and records, in the order of docs/format.md.
#include "storage/codec.h"

#include <array>
#include <bit>
#include <cstring>

#include "storage/check.h"

namespace ingot::storage {

static_assert(std::endian::native == std::endian::little, "little-endian machines only");

namespace {

// Metadata header byte: the type in the low four bits, these above.
constexpr uint8_t kHasExpiry = 0x10;
constexpr uint8_t kHasCollection = 0x20;
constexpr uint8_t kLimitPassed = 0x40;
constexpr uint8_t kText = 0x80;            // of a string
constexpr uint8_t kElementsExpire = 0x80;  // of a hash
constexpr uint8_t kTypeMask = 0x0f;

constexpr size_t kExpiryBytes = 16;
constexpr size_t kElementExpiryBytes = 8;
constexpr size_t kCollectionBytes = 20;

// Of a counts record.
constexpr size_t kCountsBytes = 25;
constexpr size_t kCountsBytesOfVersion1 = 16;
constexpr uint8_t kUnsettled = 0x01;
constexpr uint8_t kUnmarked = 0x02;

template <typename T>
void append_raw(std::string* out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

template <typename T>
T read_raw(std::string_view bytes) {
  INGOT_CHECK(bytes.size() >= sizeof(T));
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace

std::string version_error(uint32_t version) {
  if (version >= kOldestFormatVersion && version <= kFormatVersion) return {};
  return "the data has format version " + std::to_string(version) +
         ", this program reads version " + std::to_string(kFormatVersion);
}

void append_be32(std::string* out, uint32_t value) {
  append_raw(out, __builtin_bswap32(value));
}
void append_be64(std::string* out, uint64_t value) {
  append_raw(out, __builtin_bswap64(value));
}
void write_be64(uint64_t value, char* out) {
  value = __builtin_bswap64(value);
  std::memcpy(out, &value, sizeof(value));
}
void append_le32(std::string* out, uint32_t value) {
  append_raw(out, value);
}
void append_le64(std::string* out, uint64_t value) {
  append_raw(out, value);
}
uint32_t read_be32(std::string_view bytes) {
  return __builtin_bswap32(read_raw<uint32_t>(bytes));
}
uint64_t read_be64(std::string_view bytes) {
  return __builtin_bswap64(read_raw<uint64_t>(bytes));
}
uint32_t read_le32(std::string_view bytes) {
  return read_raw<uint32_t>(bytes);
}
uint64_t read_le64(std::string_view bytes) {
  return read_raw<uint64_t>(bytes);
}

std::string meta_key(KeyspaceId keyspace, std::string_view user_key) {
  std::string key;
  key.reserve(sizeof(keyspace) + user_key.size());
  append_be32(&key, keyspace);
  key.append(user_key);
  return key;
}

std::string meta_key_end(KeyspaceId keyspace) {
  return meta_key(keyspace + 1, {});
}

std::string_view user_key_of(std::string_view key) {
  return key.substr(sizeof(KeyspaceId));
}

std::string marker_key(KeyspaceId keyspace, std::string_view user_key) {
  return meta_key(keyspace | kMarkersBit, user_key);
}

std::string encode_marker(CollectionId id) {
  std::string value;
  append_le64(&value, id);
  return value;
}

void encode_metadata(const Metadata& metadata, std::string* out) {
  uint8_t header = static_cast<uint8_t>(metadata.type);
  bool has_expiry = metadata.expire_ms != 0 || metadata.indexed_ms != 0;
  if (has_expiry) header |= kHasExpiry;
  if (metadata.collection) header |= kHasCollection;
  if (metadata.limit_passed) header |= kLimitPassed;
  if (metadata.text && metadata.type != ValueType::kHash) header |= kText;
  const bool elements_expire = metadata.type == ValueType::kHash && metadata.element_expire_ms != 0;
  if (elements_expire) header |= kElementsExpire;
  out->clear();
  out->push_back(static_cast<char>(header));
  if (has_expiry) {
    append_le64(out, static_cast<uint64_t>(metadata.expire_ms));
    append_le64(out, static_cast<uint64_t>(metadata.indexed_ms));
  }
  if (elements_expire) append_le64(out, static_cast<uint64_t>(metadata.element_expire_ms));
  if (metadata.collection) {
    append_le64(out, metadata.collection->id);
    append_le64(out, metadata.collection->count);
    append_le32(out, metadata.collection->revision);
  }
  out->append(metadata.payload);
}

bool has_collection(std::string_view record) {
  return !record.empty() && (static_cast<uint8_t>(record[0]) & kHasCollection) != 0;
}

bool decode_metadata(std::string_view record, Metadata* out) {
  if (record.empty()) return false;
  auto header = static_cast<uint8_t>(record[0]);
  uint8_t type = header & kTypeMask;
  if (type < static_cast<uint8_t>(ValueType::kString) ||
      type > static_cast<uint8_t>(ValueType::kStream)) {
    return false;
  }
  record.remove_prefix(1);
  *out = Metadata{.type = static_cast<ValueType>(type),
                  .limit_passed = (header & kLimitPassed) != 0,
                  .text = (header & kText) != 0};
  const bool elements_expire = out->type == ValueType::kHash && (header & kElementsExpire) != 0;
  if (out->type == ValueType::kHash) out->text = false;
  if ((header & kHasExpiry) != 0) {
    if (record.size() < kExpiryBytes) return false;
    out->expire_ms = static_cast<int64_t>(read_le64(record));
    out->indexed_ms = static_cast<int64_t>(read_le64(record.substr(8)));
    record.remove_prefix(kExpiryBytes);
  }
  if (elements_expire) {
    if (record.size() < kElementExpiryBytes) return false;
    out->element_expire_ms = static_cast<int64_t>(read_le64(record));
    record.remove_prefix(kElementExpiryBytes);
  }
  if ((header & kHasCollection) != 0) {
    if (record.size() < kCollectionBytes) return false;
    out->collection = Metadata::Collection{.id = read_le64(record),
                                           .count = read_le64(record.substr(8)),
                                           .revision = read_le32(record.substr(16))};
    record.remove_prefix(kCollectionBytes);
  }
  out->payload = record;
  return true;
}

std::string chunk_key(CollectionId id, uint32_t chunk) {
  std::string key;
  append_be64(&key, id);
  append_be32(&key, chunk);
  return key;
}

std::string collection_begin(CollectionId id) {
  std::string key;
  append_be64(&key, id);
  return key;
}

std::string collection_end(CollectionId id) {
  return collection_begin(id + 1);
}

std::string expiry_key(int64_t expire_ms, KeyspaceId keyspace, std::string_view user_key) {
  std::string key;
  append_be64(&key, static_cast<uint64_t>(expire_ms));
  append_be32(&key, keyspace);
  key.append(user_key);
  return key;
}

bool decode_expiry_key(std::string_view key, ExpiryEntry* out) {
  if (key.size() < 12) return false;
  *out = {.expire_ms = static_cast<int64_t>(read_be64(key)),
          .keyspace = read_be32(key.substr(8)),
          .user_key = key.substr(12)};
  return true;
}

std::string garbage_key(GarbageKind kind, uint64_t id) {
  std::string key(1, static_cast<char>(kind));
  append_be64(&key, id);
  return key;
}

bool decode_garbage_key(std::string_view key, GarbageKind* kind, uint64_t* id) {
  if (key.size() != 9) return false;
  *kind = static_cast<GarbageKind>(key[0]);
  *id = read_be64(key.substr(1));
  return *kind == GarbageKind::kCollection || *kind == GarbageKind::kKeyspace;
}

std::span<const Space> owned_spaces(GarbageKind kind) {
  static constexpr std::array kOfCollection = {Space::kData, Space::kOrder};
  static constexpr std::array kOfKeyspace = {Space::kMeta};
  if (kind == GarbageKind::kCollection) return kOfCollection;
  return kOfKeyspace;
}

std::string owned_begin(GarbageKind kind, uint64_t id) {
  return kind == GarbageKind::kCollection ? collection_begin(id)
                                          : meta_key(static_cast<KeyspaceId>(id), {});
}

std::string owned_end(GarbageKind kind, uint64_t id) {
  return owned_begin(kind, id + 1);
}

uint64_t owner_of(GarbageKind kind, std::string_view key) {
  const size_t bytes = kind == GarbageKind::kCollection ? sizeof(CollectionId) : sizeof(KeyspaceId);
  if (key.size() < bytes) return 0;
  return kind == GarbageKind::kCollection ? read_be64(key) : read_be32(key);
}

std::string version_key() {
  return "v";
}

std::string database_key(uint32_t database) {
  std::string key = "d";
  append_be32(&key, database);
  return key;
}

std::string counts_key(KeyspaceId keyspace) {
  std::string key = "c";
  append_be32(&key, keyspace);
  return key;
}

std::string next_keyspace_key() {
  return "k";
}

std::string reserved_ids_key() {
  return "i";
}

std::string named_key(std::string_view name) {
  std::string key = "n";
  key.append(name);
  return key;
}

void encode_counts(const KeyCounts& counts, std::string* out) {
  out->clear();
  append_le64(out, counts.not_negative().keys);
  append_le64(out, counts.not_negative().expires);
  append_le64(out, counts.collections);
  out->push_back(
      static_cast<char>((counts.settled ? 0 : kUnsettled) | (counts.marked ? 0 : kUnmarked)));
}

bool decode_counts(std::string_view record, KeyCounts* out) {
  if (record.size() != kCountsBytes && record.size() != kCountsBytesOfVersion1) return false;
  *out = {.keys = read_le64(record), .expires = read_le64(record.substr(8))};
  if (record.size() == kCountsBytesOfVersion1) {
    out->marked = out->keys == 0;
    return true;
  }
  out->collections = read_le64(record.substr(16));
  const auto flags = static_cast<uint8_t>(record[24]);
  out->settled = (flags & kUnsettled) == 0;
  out->marked = (flags & kUnmarked) == 0;
  return (flags & ~(kUnsettled | kUnmarked)) == 0;
}

}  // namespace ingot::storage
