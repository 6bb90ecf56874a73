// Values as Redis' DUMP and RESTORE carry them: RDB's form of one object (version 10, that of Redis
// 7.0), with the version and a checksum behind it.
//
//   u8 type | the object | u16le version | u64le CRC-64 of all before it
//
// In memory an object is a plain model, which knows nothing of how we keep it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/types/rdb/rdb_sum.h"
#include "src/types/stream_id.h"

namespace ingot::types::rdb {

inline constexpr uint16_t kVersion = 10;

enum class ObjectType : uint8_t {
  kString = 0,
  kList = 1,
  kSet = 2,
  kSortedSetText = 3,  // scores as text
  kHash = 4,
  kSortedSet = 5,
  kModuleEarly = 6,
  kModule = 7,
  kHashZipmap = 9,
  kListZiplist = 10,
  kSetIntset = 11,
  kSortedSetZiplist = 12,
  kHashZiplist = 13,
  kListQuicklist = 14,  // of ziplists
  kStream = 15,
  kHashListpack = 16,
  kSortedSetListpack = 17,
  kListQuicklist2 = 18,  // of listpacks
  kStream2 = 19,
  // What versions after ours write:
  kSetListpack = 20,
  kStream3 = 21,
  kHashTimesEarly = 22,  // of release candidates
  kHashListpackTimesEarly = 23,
  kHashTimes = 24,  // fields that expire
  kHashListpackTimes = 25,
};
inline constexpr ObjectType kLastType = ObjectType::kStream2;  // of our version

// How a node of a quicklist is packed.
enum : uint64_t { kPlainNode = 1, kPackedNode = 2 };

class Input;

using String = std::string;
using List = std::vector<std::string>;

// `compact`: Redis' packed form (intset, listpack). For encoding: write it so, in this order. Of
// what was decoded: it was written so.
struct Set {
  std::vector<std::string> members;
  bool compact = false;
  bool operator==(const Set&) const = default;
};
struct SortedSet {
  std::vector<std::pair<std::string, double>> members;  // by score and member
  bool compact = false;
  bool operator==(const SortedSet&) const = default;
};
struct Hash {
  std::vector<std::pair<std::string, std::string>> fields;
  bool compact = false;
  std::vector<int64_t> expire_ms = {};  // of each field, Unix, 0: never; empty: none expires
  bool operator==(const Hash&) const = default;
};

struct Stream {
  struct Entry {
    StreamId id;
    std::vector<std::pair<std::string, std::string>> fields;
    bool operator==(const Entry&) const = default;
  };
  struct Consumer {
    std::string name;
    int64_t seen_ms = 0;
    bool operator==(const Consumer&) const = default;
  };
  struct Pending {
    StreamId id;
    int64_t delivered_ms = 0;
    uint64_t deliveries = 0;
    size_t consumer = 0;  // index into the group's
    bool operator==(const Pending&) const = default;
  };
  struct Group {
    std::string name;
    StreamId last_id;
    int64_t entries_read = -1;        // -1: not known
    std::vector<Consumer> consumers;  // by name
    std::vector<Pending> pending;     // by ID
    bool operator==(const Group&) const = default;
  };
  std::vector<Entry> entries;  // by ID
  StreamId last_id;
  StreamId max_deleted_id;
  uint64_t entries_added = 0;
  std::vector<Group> groups;  // by name
  bool operator==(const Stream&) const = default;
};

using Object = std::variant<String, List, Set, SortedSet, Hash, Stream>;

// Settings of Redis that decide about the bytes.
struct EncodeOptions {
  bool compress = true;  // rdbcompression
  int list_max_listpack_size = -2;
  uint64_t stream_node_max_bytes = 4096;
  uint64_t stream_node_max_entries = 100;
};

// What DUMP answers. Elements of forms that are not packed have no order in Redis; ours is kept.
std::string encode_payload(const Object& object, const EncodeOptions& options = {});

inline constexpr size_t kFooterBytes = 10;
// Whether the last kFooterBytes of a payload are right. `before`: of all that stands before its
// checksum.
[[nodiscard]] bool footer_fits(std::string_view footer, const RunningSum& before);

// Where the bytes of a string that is not compressed begin; nothing when the payload, of which this
// is the beginning, is anything else.
std::optional<size_t> plain_string_begin(std::string_view payload_begin, uint64_t payload_bytes);

// The dump of a long string, not compressed, around bytes that pass by and are never held.
class LongStringDump {
 public:
  explicit LongStringDump(uint64_t bytes);

  const std::string& head() const { return head_; }
  // All the string's bytes, in their order.
  void pass(std::string_view piece) { sum_.pass(piece); }
  std::string footer();    // behind them; once
  uint64_t bytes() const;  // of the whole dump

 private:
  uint64_t string_bytes_;
  std::string head_;
  RunningSum sum_;
};

// Puts version and checksum behind a type and its object.
void seal_payload(std::string* body);
// Whether the version is one that we read and the checksum is right.
[[nodiscard]] bool payload_intact(std::string_view payload);
// The object of an intact payload; nothing when its bytes make no sense. An empty collection makes
// none either, nor does a stream (data/rdb_value.h). Nothing, and *too_large, when its compressed
// strings together have more than `unpacked_max` bytes.
std::optional<Object> decode_payload(std::string_view payload, uint64_t unpacked_max = UINT64_MAX,
                                     bool* too_large = nullptr);

// One object as it stands in a payload behind its type, or in an RDB file behind its key; the
// answer is that type.
ObjectType encode_object(const Object& object, const EncodeOptions& options, std::string* out);

// The same, read: in any form but those of modules, of streams, and of hashes of later versions
// that are not packed.
std::optional<Object> decode_object(ObjectType type, Input& in);

// The score that stands behind a member of a sorted set which is not packed. False: it is none, or
// `in` ends.
[[nodiscard]] bool read_score(ObjectType type, Input& in, double* score);

}  // namespace ingot::types::rdb
