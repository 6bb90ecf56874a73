// Encoding every type as Redis 7.0 does, and decoding every form that it accepts, checks included.
#include "src/types/rdb/rdb_object.h"

#include <fmt/printf.h>

#include <algorithm>
#include <bit>
#include <boost/crc.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <charconv>
#include <cmath>

#include "src/types/rdb/rdb_bytes.h"
#include "src/types/rdb/rdb_listpack.h"
#include "src/types/rdb/rdb_stream.h"

namespace ingot::types::rdb {

namespace {

enum class Type : uint8_t {
  kString = 0,
  kList = 1,
  kSet = 2,
  kSortedSetText = 3,  // scores as text
  kHash = 4,
  kSortedSet = 5,
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
};

// How a node of a quicklist is packed.
enum : uint64_t { kPlainNode = 1, kPackedNode = 2 };

using Crc = boost::crc_optimal<64, 0xad93d23594c935a9, 0, 0, true, true>;

uint64_t checksum(std::string_view bytes) {
  Crc crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

// --- encoding

void append_type(std::string* out, Type type) {
  out->push_back(static_cast<char>(type));
}

// Whether Redis' RPUSH puts one more element into a node of a list (quicklist.c).
class NodeLimit {
 public:
  explicit NodeLimit(int list_max_listpack_size)
      : count_(list_max_listpack_size >= 0 ? std::max(list_max_listpack_size, 1) : 0),
        bytes_(
            list_max_listpack_size >= 0
                ? kSafeBytes
                : kBytes[std::min<size_t>(static_cast<size_t>(-list_max_listpack_size), 5) - 1]) {}

  bool allows(const ListpackWriter& node, size_t element_bytes) const {
    if (node.bytes() + element_bytes + kOverheadBytes > bytes_) return false;
    return count_ == 0 || node.count() + 1 <= static_cast<size_t>(count_);
  }

 private:
  static constexpr size_t kSafeBytes = 8192;
  static constexpr size_t kOverheadBytes = 8;
  static constexpr size_t kBytes[] = {4096, 8192, 16384, 32768, 65536};
  const int count_;  // 0: not limited
  const size_t bytes_;
};

void encode(const String& string, const EncodeOptions& options, std::string* out) {
  append_type(out, Type::kString);
  append_string(out, string, options.compress);
}

void encode(const List& list, const EncodeOptions& options, std::string* out) {
  const NodeLimit limit(options.list_max_listpack_size);
  std::vector<std::string> nodes;
  ListpackWriter node;
  for (const std::string& element : list) {
    if (node.count() > 0 && !limit.allows(node, element.size())) nodes.push_back(node.finish());
    node.add(element);
  }
  if (node.count() > 0) nodes.push_back(node.finish());
  append_type(out, Type::kListQuicklist2);
  append_length(out, nodes.size());
  for (const std::string& packed : nodes) {
    append_length(out, kPackedNode);
    append_string(out, packed, options.compress);
  }
}

// The members as numbers in order, when all of them are.
std::optional<std::vector<int64_t>> numbers_of(const Set& set) {
  std::vector<int64_t> numbers;
  for (const std::string& member : set.members) {
    const std::optional<int64_t> number = as_integer(member);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

void encode(const Set& set, const EncodeOptions& options, std::string* out) {
  const auto numbers = set.compact ? numbers_of(set) : std::nullopt;
  if (numbers) {
    append_type(out, Type::kSetIntset);
    append_string(out, write_intset(*numbers), options.compress);
    return;
  }
  append_type(out, Type::kSet);
  append_length(out, set.members.size());
  for (const std::string& member : set.members) append_string(out, member, options.compress);
}

void encode(const SortedSet& set, const EncodeOptions& options, std::string* out) {
  if (set.compact) {
    ListpackWriter items;
    for (const auto& [member, score] : set.members) {
      items.add(member);
      // As Redis: whole numbers up to half of what 64 bits hold are integers.
      if (std::abs(score) <= 0x1p62 && score == std::trunc(score)) {
        items.add(static_cast<int64_t>(score));
      } else {
        items.add(std::isinf(score) ? (score > 0 ? "inf" : "-inf") : fmt::sprintf("%.17g", score));
      }
    }
    append_type(out, Type::kSortedSetListpack);
    append_string(out, items.finish(), options.compress);
    return;
  }
  append_type(out, Type::kSortedSet);
  append_length(out, set.members.size());
  // Redis writes the last member first: reading them, each then goes to the front.
  for (auto at = set.members.rbegin(); at != set.members.rend(); ++at) {
    append_string(out, at->first, options.compress);
    append_le(out, std::bit_cast<uint64_t>(at->second), 8);
  }
}

void encode(const Hash& hash, const EncodeOptions& options, std::string* out) {
  if (hash.compact) {
    ListpackWriter items;
    for (const auto& [field, value] : hash.fields) {
      items.add(field);
      items.add(value);
    }
    append_type(out, Type::kHashListpack);
    append_string(out, items.finish(), options.compress);
    return;
  }
  append_type(out, Type::kHash);
  append_length(out, hash.fields.size());
  for (const auto& [field, value] : hash.fields) {
    append_string(out, field, options.compress);
    append_string(out, value, options.compress);
  }
}

void encode(const Stream& stream, const EncodeOptions& options, std::string* out) {
  append_type(out, Type::kStream2);
  encode_stream(stream, options, out);
}

// --- decoding: each adds to an empty value

using Unpack = bool (*)(std::string_view, Items*);

bool decode_packed(Input& in, Unpack unpack, Items* items) {
  std::string packed;
  return in.string(&packed) && unpack(packed, items);
}

bool decode_strings(Input& in, std::vector<std::string>* out) {
  uint64_t count;
  if (!in.count(&count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    if (!in.string(&out->emplace_back())) return false;
  }
  return true;
}

bool decode_quicklist(Input& in, bool of_listpacks, List* list) {
  uint64_t nodes;
  if (!in.count(&nodes)) return false;
  for (uint64_t i = 0; i < nodes; ++i) {
    uint64_t container = kPackedNode;
    if (of_listpacks && !in.length(&container)) return false;
    if (container == kPlainNode) {
      if (!in.string(&list->emplace_back())) return false;
      continue;
    }
    Items items;
    if (container != kPackedNode ||
        !decode_packed(in, of_listpacks ? read_listpack : read_ziplist, &items)) {
      return false;
    }
    list->insert(list->end(), std::make_move_iterator(items.begin()),
                 std::make_move_iterator(items.end()));
  }
  return true;
}

bool parse_score(std::string_view text, double* score) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *score);
  return error == std::errc() && stop == end && !std::isnan(*score);
}

bool decode_score_text(Input& in, double* score) {
  enum : uint8_t { kNan = 253, kInfinity = 254, kMinusInfinity = 255 };
  uint8_t length;
  std::string_view text;
  if (!in.byte(&length) || length == kNan) return false;
  if (length >= kInfinity) {
    *score = length == kInfinity ? HUGE_VAL : -HUGE_VAL;
    return true;
  }
  return in.take(length, &text) && parse_score(text, score);
}

bool decode_score(Input& in, double* score) {
  uint64_t bits;
  if (!in.le64(&bits)) return false;
  *score = std::bit_cast<double>(bits);
  return !std::isnan(*score);
}

bool decode_sorted_set(Input& in, bool scores_are_text, SortedSet* set) {
  uint64_t count;
  if (!in.count(&count, 2)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    auto& [member, score] = set->members.emplace_back();
    if (!in.string(&member)) return false;
    if (!(scores_are_text ? decode_score_text : decode_score)(in, &score)) return false;
  }
  return true;
}

bool decode_packed_sorted_set(Input& in, Unpack unpack, SortedSet* set) {
  Items items;
  if (!decode_packed(in, unpack, &items) || items.size() % 2 != 0) return false;
  set->compact = true;
  for (size_t i = 0; i < items.size(); i += 2) {
    double score;
    if (!parse_score(items[i + 1], &score)) return false;
    set->members.emplace_back(std::move(items[i]), score);
  }
  return true;
}

bool add_fields(Items items, Hash* hash) {
  if (items.size() % 2 != 0) return false;
  for (size_t i = 0; i < items.size(); i += 2) {
    hash->fields.emplace_back(std::move(items[i]), std::move(items[i + 1]));
  }
  return true;
}

bool decode_packed_hash(Input& in, Unpack unpack, Hash* hash) {
  Items items;
  hash->compact = unpack != read_zipmap;
  return decode_packed(in, unpack, &items) && add_fields(std::move(items), hash);
}

bool decode_hash(Input& in, Hash* hash) {
  uint64_t count;
  if (!in.count(&count, 2)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    auto& [field, value] = hash->fields.emplace_back();
    if (!in.string(&field) || !in.string(&value)) return false;
  }
  return true;
}

bool decode_list(Input& in, Type type, List* list) {
  if (type == Type::kList) return decode_strings(in, list);
  if (type == Type::kListZiplist) return decode_packed(in, read_ziplist, list);
  return decode_quicklist(in, type == Type::kListQuicklist2, list);
}

bool decode_set(Input& in, Type type, Set* set) {
  set->compact = type == Type::kSetIntset;
  return set->compact ? decode_packed(in, read_intset, &set->members)
                      : decode_strings(in, &set->members);
}

bool decode_any_sorted_set(Input& in, Type type, SortedSet* set) {
  const bool read =
      type == Type::kSortedSetListpack  ? decode_packed_sorted_set(in, read_listpack, set)
      : type == Type::kSortedSetZiplist ? decode_packed_sorted_set(in, read_ziplist, set)
                                        : decode_sorted_set(in, type == Type::kSortedSetText, set);
  if (!read) return false;
  std::ranges::sort(set->members, {}, [](const auto& member) {
    return std::pair(member.second, std::string_view(member.first));
  });
  return true;
}

bool decode_any_hash(Input& in, Type type, Hash* hash) {
  if (type == Type::kHash) return decode_hash(in, hash);
  return decode_packed_hash(in,
                            type == Type::kHashListpack  ? read_listpack
                            : type == Type::kHashZiplist ? read_ziplist
                                                         : read_zipmap,
                            hash);
}

// Runs `decode` over a fresh value; nothing when it fails.
template <typename Value, typename Decode>
std::optional<Object> decoded(Decode decode) {
  Value value;
  if (!decode(&value)) return std::nullopt;
  return Object(std::in_place_type<Value>, std::move(value));
}

std::optional<Object> decode_as(Type type, Input& in) {
  switch (type) {
    case Type::kString:
      return decoded<String>([&](String* string) { return in.string(string); });
    case Type::kList:
    case Type::kListZiplist:
    case Type::kListQuicklist:
    case Type::kListQuicklist2:
      return decoded<List>([&](List* list) { return decode_list(in, type, list); });
    case Type::kSet:
    case Type::kSetIntset:
      return decoded<Set>([&](Set* set) { return decode_set(in, type, set); });
    case Type::kSortedSetText:
    case Type::kSortedSet:
    case Type::kSortedSetZiplist:
    case Type::kSortedSetListpack:
      return decoded<SortedSet>(
          [&](SortedSet* set) { return decode_any_sorted_set(in, type, set); });
    case Type::kHash:
    case Type::kHashZipmap:
    case Type::kHashZiplist:
    case Type::kHashListpack:
      return decoded<Hash>([&](Hash* hash) { return decode_any_hash(in, type, hash); });
    case Type::kStream:
    case Type::kStream2:
      return decoded<Stream>(
          [&](Stream* stream) { return decode_stream(in, type == Type::kStream2, stream); });
  }
  return std::nullopt;
}

// --- what every decoded value must keep to

template <typename Range, typename Name>
bool distinct_and_not_empty(const Range& elements, Name name) {
  boost::unordered_flat_set<std::string_view> seen;
  seen.reserve(elements.size());
  for (const auto& element : elements) {
    if (!seen.insert(name(element)).second) return false;
  }
  return !elements.empty();
}

struct Sound {
  bool operator()(const String&) const { return true; }
  bool operator()(const List& list) const { return !list.empty(); }
  bool operator()(const Set& set) const {
    return distinct_and_not_empty(set.members,
                                  [](const auto& member) { return std::string_view(member); });
  }
  bool operator()(const SortedSet& set) const {
    return distinct_and_not_empty(
        set.members, [](const auto& member) { return std::string_view(member.first); });
  }
  bool operator()(const Hash& hash) const {
    return distinct_and_not_empty(hash.fields,
                                  [](const auto& field) { return std::string_view(field.first); });
  }
  bool operator()(const Stream&) const { return true; }
};

}  // namespace

std::string encode_payload(const Object& object, const EncodeOptions& options) {
  std::string out;
  std::visit([&](const auto& value) { encode(value, options, &out); }, object);
  seal_payload(&out);
  return out;
}

void seal_payload(std::string* body) {
  append_le(body, kVersion, 2);
  append_le(body, checksum(*body), 8);
}

bool footer_fits(std::string_view footer, const RunningSum& before) {
  Input in(footer);
  uint16_t version;
  uint64_t sum;
  return in.le16(&version) && in.le64(&sum) && version <= kVersion && sum == before.value();
}

bool payload_intact(std::string_view payload) {
  if (payload.size() < kFooterBytes) return false;
  RunningSum sum;
  sum.pass(payload.substr(0, payload.size() - 8));
  return footer_fits(payload.substr(payload.size() - kFooterBytes), sum);
}

std::optional<size_t> plain_string_begin(std::string_view payload_begin, uint64_t payload_bytes) {
  Input in(payload_begin);
  uint8_t type;
  uint64_t bytes;
  if (!in.byte(&type) || static_cast<Type>(type) != Type::kString || !in.length(&bytes)) {
    return std::nullopt;
  }
  const size_t begin = payload_begin.size() - in.left();
  if (payload_bytes != begin + bytes + kFooterBytes) return std::nullopt;
  return begin;
}

struct RunningSum::Crc {
  rdb::Crc sum;
};

RunningSum::RunningSum() : crc_(std::make_unique<Crc>()) {}
RunningSum::RunningSum(RunningSum&&) noexcept = default;
RunningSum::~RunningSum() = default;

void RunningSum::pass(std::string_view piece) {
  crc_->sum.process_bytes(piece.data(), piece.size());
}

uint64_t RunningSum::value() const {
  return crc_->sum.checksum();
}

LongStringDump::LongStringDump(uint64_t bytes) : string_bytes_(bytes) {
  append_type(&head_, Type::kString);
  append_length(&head_, bytes);
  pass(head_);
}

std::string LongStringDump::footer() {
  std::string footer;
  append_le(&footer, kVersion, 2);
  pass(footer);
  append_le(&footer, sum_.value(), 8);
  return footer;
}

uint64_t LongStringDump::bytes() const {
  return head_.size() + string_bytes_ + kFooterBytes;
}

std::optional<Object> decode_payload(std::string_view payload, uint64_t unpacked_max,
                                     bool* too_large) {
  if (payload.size() < kFooterBytes) return std::nullopt;
  Input in(payload.substr(0, payload.size() - kFooterBytes), unpacked_max);
  uint8_t type;
  if (!in.byte(&type)) return std::nullopt;
  std::optional<Object> object = decode_as(static_cast<Type>(type), in);
  if (too_large != nullptr) *too_large = in.too_large();
  if (object && !std::visit(Sound(), *object)) return std::nullopt;
  return object;
}

}  // namespace ingot::types::rdb
