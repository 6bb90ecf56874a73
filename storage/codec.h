// Keys and records of format version 3, byte for byte as docs/format.md draws them. Pure functions
// and values; no thread rule. Numbers inside keys are big-endian so that keys keep their order;
// numbers inside values are little-endian.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "storage/spaces.h"

namespace ingot::storage {

inline constexpr uint32_t kFormatVersion = 4;
inline constexpr uint32_t kOldestFormatVersion = 1;  // that is read
// Why data of that version is not read; empty when it is.
std::string version_error(uint32_t version);

// Numbers the keyspace that a database maps to at the moment; FLUSHDB gives it a new one.
using KeyspaceId = uint32_t;
// Numbers a collection (a large value); never used again.
using CollectionId = uint64_t;

// The first keyspace id that FLUSHDB hands out; below it, database n starts as keyspace n.
inline constexpr KeyspaceId kFirstFreeKeyspace = 1u << 16;
// The markers of a keyspace's collections stand under the keyspace id with this bit.
inline constexpr KeyspaceId kMarkersBit = 1u << 31;
inline constexpr uint32_t kStringChunkBytes = 16 << 10;  // a string's chunk, at most
inline constexpr uint32_t kInlineStringMax = 16 << 10;   // longer strings are chunked

// --- fixed-width numbers

void append_be32(std::string* out, uint32_t value);
void append_be64(std::string* out, uint64_t value);
void write_be64(uint64_t value, char* out);
void append_le32(std::string* out, uint32_t value);
void append_le64(std::string* out, uint64_t value);
// Requires enough bytes.
uint32_t read_be32(std::string_view bytes);
uint64_t read_be64(std::string_view bytes);
uint32_t read_le32(std::string_view bytes);
uint64_t read_le64(std::string_view bytes);

// --- kMeta

enum class ValueType : uint8_t {
  kString = 1,
  kList = 2,
  kSet = 3,
  kSortedSet = 4,
  kHash = 5,
  kStream = 6,
};

std::string meta_key(KeyspaceId keyspace, std::string_view user_key);
// The first key after every key of the keyspace, for bounds.
std::string meta_key_end(KeyspaceId keyspace);
std::string_view user_key_of(std::string_view meta_key);  // requires a whole meta key

// A key whose value is a collection has a marker besides its record, so that who overwrites the key
// without a look at the record knows that there is no collection to drop -> le64 collection id
std::string marker_key(KeyspaceId keyspace, std::string_view user_key);
std::string encode_marker(CollectionId id);

// The record of one user key. A small value stands inline after the header; a large one stands
// under a collection id of its own.
struct Metadata {
  ValueType type = ValueType::kString;
  // OBJECT ENCODING left the compact form once and stays (Redis: a string that was APPENDed to).
  bool limit_passed = false;
  // A string that is text although it reads like an integer (Redis: a result of INCRBYFLOAT).
  bool text = false;
  // Unix milliseconds; 0: never expires.
  int64_t expire_ms = 0;
  // When the first element of it expires, or earlier; 0: none does. Only of a hash.
  int64_t element_expire_ms = 0;
  // The time under which the expiry index holds this key; 0: not in the index. Never after the two
  // times above, where they are set, unless they have passed.
  int64_t indexed_ms = 0;

  // Set when the value is stored under a collection id.
  struct Collection {
    CollectionId id = 0;
    uint64_t count = 0;     // elements; for a string its length in bytes
    uint32_t revision = 0;  // changes with every change of the elements
  };
  std::optional<Collection> collection;

  // The inline value; of a collection what its type notes about it (where a list begins and ends,
  // a stream's last ID). Points into the decoded record.
  std::string_view payload;
};

void encode_metadata(const Metadata& metadata, std::string* out);  // replaces *out
// False when the bytes are not a record of this version.
[[nodiscard]] bool decode_metadata(std::string_view record, Metadata* out);
bool has_collection(std::string_view record);  // as decoding would tell

// --- kData: elements and string chunks; each value begins with a flag byte (0: no field expiry)

inline constexpr char kPlainElement = 0;

std::string chunk_key(CollectionId id, uint32_t chunk);
// Every key of a collection, in kData and kOrder, lies in [begin, end).
std::string collection_begin(CollectionId id);
std::string collection_end(CollectionId id);

// --- kExpiry: value is one zero byte

std::string expiry_key(int64_t expire_ms, KeyspaceId keyspace, std::string_view user_key);
struct ExpiryEntry {
  int64_t expire_ms;
  KeyspaceId keyspace;
  std::string_view user_key;
};
[[nodiscard]] bool decode_expiry_key(std::string_view key, ExpiryEntry* out);

// --- kGarbage: value is a zero byte; of a keyspace how far it has been walked may follow

enum class GarbageKind : char {
  kCollection = 'c',  // id: CollectionId
  kKeyspace = 'k',    // id: KeyspaceId
};
std::string garbage_key(GarbageKind kind, uint64_t id);
[[nodiscard]] bool decode_garbage_key(std::string_view key, GarbageKind* kind, uint64_t* id);

// Everything that a collection or a keyspace owns lies in these spaces, in
// [owned_begin, owned_end); owner_of() of such a key is its id.
std::span<const Space> owned_spaces(GarbageKind kind);
std::string owned_begin(GarbageKind kind, uint64_t id);
std::string owned_end(GarbageKind kind, uint64_t id);
uint64_t owner_of(GarbageKind kind, std::string_view key);  // a key that is too short: 0

// --- kSystem

std::string version_key();                     // -> le32 format version
std::string database_key(uint32_t database);   // -> le32 keyspace id, absent: as at creation
std::string counts_key(KeyspaceId keyspace);   // -> KeyCounts, absent: zero
std::string next_keyspace_key();               // -> le32 next free keyspace id
std::string reserved_ids_key();                // -> le64 first collection id not reserved
std::string named_key(std::string_view name);  // other saved state (cursors, ...)

struct KeyCounts {
  uint64_t keys = 0;
  uint64_t expires = 0;
  uint64_t collections = 0;  // keys with a marker
  // False while keys were overwritten of which nobody knows whether they were there: the first two
  // are not exact.
  bool settled = true;
  // False in data of version 1: collections of that time have no marker, and are not counted.
  bool marked = true;

  bool surely_empty() const { return keys == 0 && settled; }
  // What is not settled may come to less than nothing.
  KeyCounts not_negative() const {
    KeyCounts shown = *this;
    if (!settled && keys > INT64_MAX) shown.keys = 0;
    if (!settled && expires > INT64_MAX) shown.expires = 0;
    return shown;
  }
};
void encode_counts(const KeyCounts& counts, std::string* out);  // replaces *out
[[nodiscard]] bool decode_counts(std::string_view record, KeyCounts* out);

}  // namespace ingot::storage
