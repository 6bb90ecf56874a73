// What DUMP answers, for all who hand a value to another server.
#pragma once

#include <string>

#include "src/settings/config.h"
#include "src/types/rdb/rdb_store.h"

namespace ingot::commands {

// Reads the whole value.
inline std::string dump_payload(const settings::Config& config, types::KeyReader& keys,
                                const types::Record& record) {
  const auto settings = config.settings();
  return types::rdb::encode_payload(
      types::rdb::read_object(keys.data(), record, keys.now_ms()),
      {.list_max_listpack_size = settings->list_max_listpack_size,
       .stream_node_max_bytes = settings->stream_node_max_bytes,
       .stream_node_max_entries = static_cast<uint64_t>(settings->stream_node_max_entries)});
}

}  // namespace ingot::commands
