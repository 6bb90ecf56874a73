// What DUMP answers, for all who hand a value to another server.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/exec/services.h"
#include "src/server/config.h"
#include "src/types/rdb_store.h"

namespace ingot::commands {

// Reads the whole value. Nothing when it is of a type that cannot be dumped.
inline std::optional<std::string> dump_payload(const exec::Services& services,
                                               types::KeyReader& keys,
                                               const types::Record& record) {
  const auto object = types::rdb::read_object(keys.data(), record, keys.now_ms());
  if (!object) return std::nullopt;
  const auto settings = services.config.settings();
  return types::rdb::encode_payload(
      *object,
      {.list_max_listpack_size = settings->list_max_listpack_size,
       .stream_node_max_bytes = settings->stream_node_max_bytes,
       .stream_node_max_entries = static_cast<uint64_t>(settings->stream_node_max_entries)});
}

inline constexpr std::string_view kCannotBeDumped = "ERR this type of value cannot be dumped";

}  // namespace ingot::commands
