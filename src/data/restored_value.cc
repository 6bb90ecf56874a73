// Storing a decoded dump into an overlay of its own, as a command would, and handing out what that
// holds.
#include "src/data/restored_value.h"

#include "src/data/store.h"
#include "storage/overlay.h"

namespace ingot::data {

using storage::Space;
using types::BuiltValue;

namespace {

// Where the value stands in the overlay: nobody has this keyspace, and this id is not kept.
constexpr storage::KeyspaceId kKeyspace = UINT32_MAX;
constexpr std::string_view kKey = "restored";

class OneId : public types::CollectionIds {
 public:
  static constexpr storage::CollectionId kId = UINT64_MAX - 1;
  storage::CollectionId next(storage::Status* /*failure*/) override { return kId; }
};

}  // namespace

BuiltValue restore_value(Services& services, storage::Reader& data, std::string_view payload,
                         const types::rdb::StoreLimits& limits, const types::PutElement& put) {
  if (!types::rdb::payload_intact(payload)) {
    return {.error = "ERR DUMP payload version or checksum are wrong"};
  }
  bool too_large = false;
  const auto object =
      types::rdb::decode_payload(payload, services.bounds.command_bytes, &too_large);
  if (too_large) return {.error = "OOM command not allowed when used memory > 'maxmemory'."};
  if (!object) return {.error = "ERR Bad data format"};

  storage::Overlay overlay(services.store.engine(), nullptr, storage::Tier::kDisk);
  types::KeyspaceState state;
  state.databases = {kKeyspace};
  OneId ids;
  types::Effects effects;
  types::KeyWriter keys(overlay, state, ids, effects, services.store.now_ms(), nullptr,
                        /*collect_touched=*/false);
  types::rdb::store_object(keys, 0, kKey, *object, limits);
  types::Record record;
  if (!keys.peek(0, kKey, &record)) {
    data.latch_error(overlay.error());
    return {};
  }
  const std::string begin = storage::collection_begin(OneId::kId);
  for (const Space space : {Space::kData, Space::kOrder}) {
    overlay.uncommitted(space, begin, storage::collection_end(OneId::kId),
                        [&](std::string_view key, std::string_view value) {
                          put(space, key.substr(begin.size()), value);
                        });
  }
  return {.metadata = record.metadata(),
          .payload = std::string(record.payload()),
          .size = 1,
          .error = {}};
}

}  // namespace ingot::data
