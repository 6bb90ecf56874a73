// Encoding every type as Redis 7.0 does, and decoding every form that it accepts, checks included.
#include "src/types/rdb/rdb_object.h"

#include <fmt/printf.h>

#include <algorithm>
#include <bit>
#include <boost/unordered/unordered_flat_set.hpp>
#include <charconv>
#include <cmath>

#include "src/types/rdb/rdb_bytes.h"
#include "src/types/rdb/rdb_listpack.h"
#include "src/types/rdb/rdb_stream.h"

namespace ingot::types::rdb {

namespace {

// --- encoding

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

ObjectType encode(const String& string, const EncodeOptions& options, std::string* out) {
  append_string(out, string, options.compress);
  return ObjectType::kString;
}

ObjectType encode(const List& list, const EncodeOptions& options, std::string* out) {
  const NodeLimit limit(options.list_max_listpack_size);
  std::vector<std::string> nodes;
  ListpackWriter node;
  for (const std::string& element : list) {
    if (node.count() > 0 && !limit.allows(node, element.size())) nodes.push_back(node.finish());
    node.add(element);
  }
  if (node.count() > 0) nodes.push_back(node.finish());
  append_length(out, nodes.size());
  for (const std::string& packed : nodes) {
    append_length(out, kPackedNode);
    append_string(out, packed, options.compress);
  }
  return ObjectType::kListQuicklist2;
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

ObjectType encode(const Set& set, const EncodeOptions& options, std::string* out) {
  const auto numbers = set.compact ? numbers_of(set) : std::nullopt;
  if (numbers) {
    append_string(out, write_intset(*numbers), options.compress);
    return ObjectType::kSetIntset;
  }
  append_length(out, set.members.size());
  for (const std::string& member : set.members) append_string(out, member, options.compress);
  return ObjectType::kSet;
}

ObjectType encode(const SortedSet& set, const EncodeOptions& options, std::string* out) {
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
    append_string(out, items.finish(), options.compress);
    return ObjectType::kSortedSetListpack;
  }
  append_length(out, set.members.size());
  // Redis writes the last member first: reading them, each then goes to the front.
  for (auto at = set.members.rbegin(); at != set.members.rend(); ++at) {
    append_string(out, at->first, options.compress);
    append_le(out, std::bit_cast<uint64_t>(at->second), 8);
  }
  return ObjectType::kSortedSet;
}

ObjectType encode(const Hash& hash, const EncodeOptions& options, std::string* out) {
  if (hash.compact) {
    ListpackWriter items;
    for (const auto& [field, value] : hash.fields) {
      items.add(field);
      items.add(value);
    }
    append_string(out, items.finish(), options.compress);
    return ObjectType::kHashListpack;
  }
  append_length(out, hash.fields.size());
  for (const auto& [field, value] : hash.fields) {
    append_string(out, field, options.compress);
    append_string(out, value, options.compress);
  }
  return ObjectType::kHash;
}

ObjectType encode(const Stream& stream, const EncodeOptions& options, std::string* out) {
  encode_stream(stream, options, out);
  return ObjectType::kStream2;
}

// --- decoding: each adds to an empty value

using Unpack = bool (*)(std::string_view, Items*, size_t items_max);

bool decode_packed(Input& in, Unpack unpack, Items* items) {
  std::string packed;
  if (!in.string(&packed)) return false;
  const uint64_t items_max = in.strings_max();
  const bool fits = unpack(packed, items, items_max);
  // One that is full may have had more.
  return in.hold_strings(items->size() + (!fits && items->size() == items_max ? 1 : 0)) && fits;
}

bool decode_strings(Input& in, std::vector<std::string>* out) {
  uint64_t count;
  if (!in.count(&count) || !in.hold_strings(count)) return false;
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

bool decode_sorted_set(Input& in, ObjectType type, SortedSet* set) {
  uint64_t count;
  if (!in.count(&count, 2) || !in.hold_strings(count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    auto& [member, score] = set->members.emplace_back();
    if (!in.string(&member) || !read_score(type, in, &score)) return false;
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

// Fields, values and times in turn.
bool decode_packed_expiring_hash(Input& in, ObjectType type, Hash* hash) {
  uint64_t first_ms;  // of its times; each is told again
  Items items;
  if (type == ObjectType::kHashListpackTimes && !in.le64(&first_ms)) return false;
  if (!decode_packed(in, read_listpack, &items) || items.size() % 3 != 0) return false;
  hash->compact = true;
  for (size_t i = 0; i < items.size(); i += 3) {
    const std::optional<int64_t> expire_ms = as_integer(items[i + 2]);
    if (!expire_ms || *expire_ms < 0) return false;
    hash->fields.emplace_back(std::move(items[i]), std::move(items[i + 1]));
    hash->expire_ms.push_back(*expire_ms);
  }
  return true;
}

bool decode_hash(Input& in, Hash* hash) {
  uint64_t count;
  if (!in.count(&count, 2) || !in.hold_strings(2 * count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    auto& [field, value] = hash->fields.emplace_back();
    if (!in.string(&field) || !in.string(&value)) return false;
  }
  return true;
}

bool decode_list(Input& in, ObjectType type, List* list) {
  if (type == ObjectType::kList) return decode_strings(in, list);
  if (type == ObjectType::kListZiplist) return decode_packed(in, read_ziplist, list);
  return decode_quicklist(in, type == ObjectType::kListQuicklist2, list);
}

bool decode_set(Input& in, ObjectType type, Set* set) {
  set->compact = type == ObjectType::kSetIntset;
  if (set->compact) return decode_packed(in, read_intset, &set->members);
  return type == ObjectType::kSetListpack ? decode_packed(in, read_listpack, &set->members)
                                          : decode_strings(in, &set->members);
}

bool decode_any_sorted_set(Input& in, ObjectType type, SortedSet* set) {
  const bool read =
      type == ObjectType::kSortedSetListpack  ? decode_packed_sorted_set(in, read_listpack, set)
      : type == ObjectType::kSortedSetZiplist ? decode_packed_sorted_set(in, read_ziplist, set)
                                              : decode_sorted_set(in, type, set);
  if (!read) return false;
  std::ranges::sort(set->members, {}, [](const auto& member) {
    return std::pair(member.second, std::string_view(member.first));
  });
  return true;
}

bool decode_any_hash(Input& in, ObjectType type, Hash* hash) {
  if (type == ObjectType::kHash) return decode_hash(in, hash);
  if (type == ObjectType::kHashListpackTimes || type == ObjectType::kHashListpackTimesEarly) {
    return decode_packed_expiring_hash(in, type, hash);
  }
  return decode_packed_hash(in,
                            type == ObjectType::kHashListpack  ? read_listpack
                            : type == ObjectType::kHashZiplist ? read_ziplist
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

std::optional<Object> decode_as(ObjectType type, Input& in) {
  switch (type) {
    case ObjectType::kString:
      return decoded<String>([&](String* string) { return in.string(string); });
    case ObjectType::kList:
    case ObjectType::kListZiplist:
    case ObjectType::kListQuicklist:
    case ObjectType::kListQuicklist2:
      return decoded<List>([&](List* list) { return decode_list(in, type, list); });
    case ObjectType::kSet:
    case ObjectType::kSetIntset:
    case ObjectType::kSetListpack:
      return decoded<Set>([&](Set* set) { return decode_set(in, type, set); });
    case ObjectType::kSortedSetText:
    case ObjectType::kSortedSet:
    case ObjectType::kSortedSetZiplist:
    case ObjectType::kSortedSetListpack:
      return decoded<SortedSet>(
          [&](SortedSet* set) { return decode_any_sorted_set(in, type, set); });
    case ObjectType::kHash:
    case ObjectType::kHashZipmap:
    case ObjectType::kHashZiplist:
    case ObjectType::kHashListpack:
    case ObjectType::kHashListpackTimes:
    case ObjectType::kHashListpackTimesEarly:
      return decoded<Hash>([&](Hash* hash) { return decode_any_hash(in, type, hash); });
    case ObjectType::kModuleEarly:
    case ObjectType::kModule:
    case ObjectType::kStream:
    case ObjectType::kStream2:
    case ObjectType::kStream3:
    case ObjectType::kHashTimes:
    case ObjectType::kHashTimesEarly:
      break;
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
  const ObjectType type = encode_object(object, options, &out);
  out.insert(0, 1, static_cast<char>(type));
  seal_payload(&out);
  return out;
}

ObjectType encode_object(const Object& object, const EncodeOptions& options, std::string* out) {
  return std::visit([&](const auto& value) { return encode(value, options, out); }, object);
}

void seal_payload(std::string* body) {
  append_le(body, kVersion, 2);
  RunningSum sum;
  sum.pass(*body);
  append_le(body, sum.value(), 8);
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
  if (!in.byte(&type) || static_cast<ObjectType>(type) != ObjectType::kString ||
      !in.length(&bytes)) {
    return std::nullopt;
  }
  const size_t begin = payload_begin.size() - in.left();
  if (payload_bytes != begin + bytes + kFooterBytes) return std::nullopt;
  return begin;
}

LongStringDump::LongStringDump(uint64_t bytes) : string_bytes_(bytes) {
  head_.push_back(static_cast<char>(ObjectType::kString));
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

bool read_score(ObjectType type, Input& in, double* score) {
  return type == ObjectType::kSortedSetText ? decode_score_text(in, score)
                                            : decode_score(in, score);
}

std::optional<Object> decode_payload(std::string_view payload, uint64_t unpacked_max,
                                     bool* too_large) {
  if (payload.size() < kFooterBytes) return std::nullopt;
  Input in(payload.substr(0, payload.size() - kFooterBytes), unpacked_max);
  uint8_t type;
  if (!in.byte(&type) || type > static_cast<uint8_t>(kLastType)) return std::nullopt;
  std::optional<Object> object = decode_object(static_cast<ObjectType>(type), in);
  if (too_large != nullptr) *too_large = in.too_large();
  return object;
}

std::optional<Object> decode_object(ObjectType type, Input& in) {
  std::optional<Object> object = decode_as(type, in);
  if (object && !std::visit(Sound(), *object)) return std::nullopt;
  return object;
}

}  // namespace ingot::types::rdb
