// Storing a decoded dump into a sandbox, as a command would, and handing out what that
// holds.
#include "src/data/restored_value.h"

#include <algorithm>

#include "src/data/sandbox.h"
#include "src/data/store.h"
#include "src/types/string_value.h"

namespace ingot::data {

using storage::Space;
using types::BuiltValue;

namespace {

// Where the value stands in the sandbox: nobody has this keyspace.
constexpr storage::KeyspaceId kKeyspace = storage::kMarkersBit - 1;
constexpr std::string_view kKey = "restored";

// What a payload comes to stands in memory twice, as objects and as records; but the writer has no
// part in it.
constexpr uint64_t kUnpackedCommands = 2;

constexpr char kBadFooter[] = "ERR DUMP payload version or checksum are wrong";
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

}  // namespace

uint64_t held_value_max(const Services& services) {
  return services.bounds.command_bytes;
}

BuiltValue restore_value(Services& services, storage::Reader& data, std::string_view payload,
                         const types::rdb::StoreLimits& limits, const types::PutElement& put) {
  if (!types::rdb::payload_intact(payload)) {
    return {.error = kBadFooter};
  }
  bool too_large = false;
  const auto object = types::rdb::decode_payload(
      payload, kUnpackedCommands * services.bounds.command_bytes, &too_large);
  if (too_large) return {.error = kOutOfMemory};
  if (!object) return {.error = "ERR Bad data format"};

  Sandbox sandbox(services.store.engine(), nullptr, {kKeyspace}, services.store.now_ms());
  types::rdb::store_object(sandbox.keys(), 0, kKey, *object, limits);
  types::Record record;
  if (!sandbox.keys().peek(0, kKey, &record)) {
    data.latch_error(sandbox.overlay().error());
    return {};
  }
  const std::string begin = storage::collection_begin(Sandbox::kId);
  for (const Space space : {Space::kData, Space::kOrder}) {
    sandbox.overlay().uncommitted(space, begin, storage::collection_end(Sandbox::kId),
                                  [&](std::string_view key, std::string_view value) {
                                    put(space, key.substr(begin.size()), value);
                                  });
  }
  return {.metadata = record.metadata(),
          .payload = std::string(record.payload()),
          .size = 1,
          .error = {}};
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
  return restore_value(services, data, payload, limits, put);
}

}  // namespace ingot::data
