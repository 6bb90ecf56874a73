// What DUMP answers, for all who hand a value to another server.
#pragma once

#include <optional>
#include <string>

#include "src/settings/config.h"
#include "src/types/rdb/rdb_store.h"
#include "src/types/string_value.h"

namespace ingot::commands {

// Longer strings are dumped piece by piece: types::rdb::LongStringDump.
inline constexpr uint64_t kDumpedWholeBytes = 1 << 20;

inline bool is_long_string(const types::Record& record) {
  return types::is_string(record) && record.collection() &&
         types::string_length(record) > kDumpedWholeBytes;
}

// Reads the whole value. Nothing when that takes more than `bytes_max`.
inline std::optional<std::string> dump_payload(const settings::Config& config,
                                               types::KeyReader& keys, const types::Record& record,
                                               uint64_t bytes_max) {
  const auto object = types::rdb::read_object(keys.data(), record, keys.now_ms(), bytes_max);
  if (!object) return std::nullopt;
  const auto settings = config.settings();
  return types::rdb::encode_payload(
      *object,
      {.list_max_listpack_size = settings->list_max_listpack_size,
       .stream_node_max_bytes = settings->stream_node_max_bytes,
       .stream_node_max_entries = static_cast<uint64_t>(settings->stream_node_max_entries)});
}

}  // namespace ingot::commands
