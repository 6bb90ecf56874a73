// Handing a decoded dump's elements out one by one; or storing it into a sandbox, as a command
// would, and handing out what that holds: a packed value as a whole, a stream piece by piece.
#include "src/data/restored_value.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "src/data/rdb_value.h"
#include "src/data/sandbox.h"
#include "src/data/store.h"
#include "src/types/hash_builder.h"
#include "src/types/list_builder.h"
#include "src/types/set_builder.h"
#include "src/types/sorted_set_builder.h"
#include "src/types/string_value.h"

namespace ingot::data {

using storage::Space;
using types::BuiltValue;
using types::rdb::ObjectType;

namespace {

// Where the value stands in the sandbox: nobody has this keyspace.
constexpr storage::KeyspaceId kKeyspace = storage::kMarkersBit - 1;
constexpr std::string_view kKey = "restored";

// What a payload comes to stands in memory twice, as objects and as records; but the writer has no
// part in it.
constexpr uint64_t kUnpackedCommands = 2;

constexpr char kBadFooter[] = "ERR DUMP payload version or checksum are wrong";
constexpr char kBadData[] = "ERR Bad data format";
constexpr char kOutOfMemory[] = "OOM command not allowed when used memory > 'maxmemory'.";

// Takes the string out of the payload, which has it from `begin` on, chunk after chunk.
BuiltValue restore_string(storage::Reader& data, const BuiltArgument& argument, uint64_t begin,
                          const types::PutElement& put) {
  const uint64_t end = argument.length() - types::rdb::kFooterBytes;
  types::rdb::RunningSum sum;
  std::string piece;
  const auto read = [&](uint64_t from, uint64_t bytes) {
    piece.clear();
    types::read_string(data, {argument.id()}, from, bytes, &piece);
    return !data.failed();
  };
  if (!read(0, begin)) return {};
  sum.pass(piece);
  for (uint64_t at = begin; at < end; at += piece.size()) {
    if (!read(at, std::min<uint64_t>(storage::kStringChunkBytes, end - at))) return {};
    sum.pass(piece);
    types::put_chunk(put, static_cast<uint32_t>((at - begin) / storage::kStringChunkBytes), piece);
  }
  if (!read(end, types::rdb::kFooterBytes)) return {};
  sum.pass(std::string_view(piece).substr(0, 2));
  if (!types::rdb::footer_fits(piece, sum)) return {.error = kBadFooter};
  return {.metadata = {.type = storage::ValueType::kString,
                       .limit_passed = true,
                       .collection = storage::Metadata::Collection{.count = end - begin}},
          .payload = {},
          .size = end - begin,
          .error = {}};
}

// What is made element by element: each is let go when it has been handed out, for a sandbox would
// hold all of their records beside them. Nothing: a form that only a sandbox takes.
class Building {
 public:
  Building(const types::rdb::StoreLimits& limits, const types::PutElement& put)
      : limits_(limits), put_(put) {}

  std::optional<BuiltValue> operator()(types::rdb::String&) { return std::nullopt; }
  std::optional<BuiltValue> operator()(types::rdb::Stream&) { return std::nullopt; }
  std::optional<BuiltValue> operator()(types::rdb::List& list) {
    types::ListBuilder builder(limits_.set.inline_max_bytes, put_);
    for (std::string& element : list) builder.add(std::exchange(element, {}));
    return builder.finish();
  }
  std::optional<BuiltValue> operator()(types::rdb::Set& set) {
    types::SetBuilder builder(limits_.set, put_);
    for (std::string& member : set.members) builder.add(std::exchange(member, {}));
    return builder.finish();
  }
  std::optional<BuiltValue> operator()(types::rdb::SortedSet& set) {
    if (set.compact) return std::nullopt;
    const auto before = [](const auto& one, const auto& other) {
      return one.second != other.second ? one.second < other.second : one.first < other.first;
    };
    std::ranges::sort(set.members, before);
    types::SortedSetBuilder builder(limits_.sorted_set, put_);
    size_t longest = 0;
    for (const auto& [member, score] : set.members) longest = std::max(longest, member.size());
    builder.expect(set.members.size(), longest);
    for (auto& [member, score] : set.members) builder.add(std::exchange(member, {}), score);
    return builder.finish();
  }
  std::optional<BuiltValue> operator()(types::rdb::Hash& hash) {
    if (hash.compact) return std::nullopt;
    types::HashBuilder builder(limits_.hash, put_);
    for (size_t i = 0; i < hash.fields.size(); ++i) {
      const auto [field, value] = std::exchange(hash.fields[i], {});
      builder.add(field,
                  {.bytes = value, .expire_ms = hash.expire_ms.empty() ? 0 : hash.expire_ms[i]});
    }
    return builder.finish();
  }

 private:
  const types::rdb::StoreLimits& limits_;
  const types::PutElement& put_;
};

// Of the payload, or the error reply.
std::optional<types::rdb::Object> decode(const Services& services, std::string_view payload,
                                         std::string* error) {
  if (!types::rdb::payload_intact(payload)) {
    *error = kBadFooter;
    return std::nullopt;
  }
  bool too_large = false;
  auto object = types::rdb::decode_payload(
      payload, kUnpackedCommands * services.bounds.command_bytes, &too_large);
  if (too_large) object.reset();
  if (!object) *error = too_large ? kOutOfMemory : kBadData;
  return object;
}

// What is stored as by a command, and what is handed out then.
class Storing {
 public:
  Storing(const Services& services, const types::PutElement& put)
      : sandbox_(services.store.engine(), nullptr, {kKeyspace}, services.store.now_ms()),
        put_(put) {}

  types::KeyWriter& keys() { return sandbox_.keys(); }
  void hand_out_if_much() {
    if (sandbox_.overlay().bytes() >= kHeldBytes) hand_out();
  }
  BuiltValue finish(storage::Reader& data) {
    types::Record record;
    if (!keys().peek(0, kKey, &record)) {
      data.latch_error(sandbox_.overlay().error());
      return {};
    }
    hand_out();
    return {.metadata = record.metadata(),
            .payload = std::string(record.payload()),
            .size = 1,
            .error = {}};
  }

 private:
  static constexpr size_t kHeldBytes = 1 << 20;

  void hand_out() {
    const size_t id_bytes = storage::collection_begin(Sandbox::kId).size();
    sandbox_.take_elements([&](Space space, std::string_view key, const std::string_view* value) {
      if (value != nullptr) put_(space, key.substr(id_bytes), *value);
    });
  }

  Sandbox sandbox_;
  const types::PutElement& put_;
};

BuiltValue restore_object(Services& services, storage::Reader& data, types::rdb::Object object,
                          const types::rdb::StoreLimits& limits, const types::PutElement& put) {
  if (auto built = std::visit(Building(limits, put), object)) return *std::move(built);
  Storing storing(services, put);
  types::rdb::store_object(storing.keys(), 0, kKey, object, limits);
  return storing.finish(data);
}

std::optional<ObjectType> stream_type(std::string_view payload) {
  const auto type = static_cast<ObjectType>(payload.empty() ? 0 : payload[0]);
  if (type == ObjectType::kStream || type == ObjectType::kStream2) return type;
  return std::nullopt;
}

// Node by node: as objects its entries would take several times their bytes.
BuiltValue restore_stream(Services& services, storage::Reader& data, ObjectType type,
                          std::string_view payload, const types::rdb::StoreLimits& limits,
                          const types::PutElement& put) {
  if (!types::rdb::payload_intact(payload)) return {.error = kBadFooter};
  Storing storing(services, put);
  const auto stream = begin_stream(type, {.keys = storing.keys(),
                                          .inline_max_bytes = limits.set.inline_max_bytes,
                                          .db = 0,
                                          .key = kKey,
                                          .expire_ms = 0,
                                          .kept = true});
  std::string_view rest = payload.substr(1, payload.size() - 1 - types::rdb::kFooterBytes);
  while (!stream->complete()) {
    types::rdb::Input in(rest, kUnpackedCommands * services.bounds.command_bytes);
    if (!stream->take(in)) return {.error = in.too_large() ? kOutOfMemory : kBadData};
    rest = in.rest();
    storing.hand_out_if_much();
    if (data.failed()) return {};  // the disk is full
  }
  stream->store();
  return storing.finish(data);
}

}  // namespace

uint64_t held_value_max(const Services& services) {
  return services.bounds.command_bytes;
}

BuiltValue restore_value(Services& services, storage::Reader& data, std::string_view payload,
                         const types::rdb::StoreLimits& limits, const types::PutElement& put) {
  if (const auto type = stream_type(payload)) {
    return restore_stream(services, data, *type, payload, limits, put);
  }
  std::string error;
  auto object = decode(services, payload, &error);
  if (!object) return {.error = std::move(error)};
  return restore_object(services, data, *std::move(object), limits, put);
}

BuiltValue restore_argument(Services& services, storage::Reader& data,
                            const BuiltArgument& argument, const types::rdb::StoreLimits& limits,
                            const types::PutElement& put) {
  constexpr uint64_t kHeadBytes = 16;
  std::string payload;
  types::read_string(data, {argument.id()}, 0, kHeadBytes, &payload);
  if (data.failed()) return {};
  if (const auto begin = types::rdb::plain_string_begin(payload, argument.length())) {
    return restore_string(data, argument, *begin, put);
  }
  if (argument.length() > held_value_max(services)) {
    return {.error = kOutOfMemory};
  }
  payload.clear();
  types::read_string(data, {argument.id()}, 0, argument.length(), &payload);
  if (data.failed()) return {};
  if (const auto type = stream_type(payload)) {
    return restore_stream(services, data, *type, payload, limits, put);
  }
  std::string error;
  auto object = decode(services, payload, &error);
  if (!object) return {.error = std::move(error)};
  std::string().swap(payload);  // both are as large; assigning would keep its buffer
  return restore_object(services, data, *std::move(object), limits, put);
}

}  // namespace ingot::data
