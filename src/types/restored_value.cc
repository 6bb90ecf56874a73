// See restored_value.h.
#include "src/types/restored_value.h"

#include <utility>

#include "src/exec/store.h"

namespace ingot::types {

using storage::Space;
using storage::Status;

namespace {

// Where the value stands in the overlay: nobody has this keyspace.
constexpr storage::KeyspaceId kKeyspace = UINT32_MAX;
constexpr std::string_view kKey = "restored";

// The one collection that a value has.
class OneId : public CollectionIds {
 public:
  explicit OneId(storage::CollectionId id) : id_(id) {}
  storage::CollectionId next() override { return id_; }

 private:
  const storage::CollectionId id_;
};

}  // namespace

std::optional<rdb::Object> read_payload(std::string_view payload, std::string_view* error) {
  if (!rdb::payload_intact(payload)) {
    *error = "ERR DUMP payload version or checksum are wrong";
    return std::nullopt;
  }
  auto object = rdb::decode_payload(payload);
  if (!object) *error = "ERR Bad data format";
  return object;
}

// The value is stored into an overlay of its own, as a command would do, and what that holds is
// written.
RestoredValue::RestoredValue(exec::Services& services, std::string_view payload,
                             const rdb::StoreLimits& limits)
    : collection_(services) {
  const auto object = read_payload(payload, &error_);
  if (!object) return;
  storage::Overlay overlay(services.store.engine(), nullptr, storage::Tier::kDisk);
  KeyspaceState state;
  state.databases = {kKeyspace};
  OneId ids(collection_.id());
  Effects effects;
  KeyWriter keys(overlay, state, ids, effects, services.store.now_ms(), nullptr,
                 /*collect_touched=*/false);
  rdb::store_object(keys, 0, kKey, *object, /*expire_ms=*/0, limits);
  const std::string begin = storage::collection_begin(collection_.id());
  for (const Space space : {Space::kData, Space::kOrder}) {
    overlay.uncommitted(space, begin, storage::collection_end(collection_.id()),
                        [&](std::string_view key, std::string_view value) {
                          collection_.put(space, key.substr(begin.size()), value);
                        });
  }
  collection_.flush();
  if (!keys.peek(0, kKey, &record_) && status().ok()) collection_.fail(overlay.error());
}

bool RestoredValue::link(KeyWriter& keys, int db, std::string_view key, int64_t expire_ms) {
  if (record_.collection() && !collection_.link(keys)) return false;
  storage::Metadata metadata = record_.metadata();
  metadata.expire_ms = expire_ms;
  keys.store(db, key, nullptr, metadata);
  return true;
}

command::Prepare prepare_restored(exec::Services& services, std::string_view payload,
                                  const rdb::StoreLimits& limits) {
  return [&services, payload, limits](KeyReader&, exec::Store&,
                                      Status* error) -> std::shared_ptr<command::Prepared> {
    auto value = std::make_shared<RestoredValue>(services, payload, limits);
    *error = value->status();
    return error->ok() ? value : nullptr;
  };
}

}  // namespace ingot::types
