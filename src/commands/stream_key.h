// What the commands on streams share: finding one, IDs among the arguments, entries in replies.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "src/commands/typed_key.h"
#include "src/contract/context.h"
#include "src/settings/config.h"
#include "src/types/stream_value.h"

namespace ingot::commands {

// `before` is null for a stream to be made; it and `key` must outlive the writer.
inline types::StreamWriter stream_writer(contract::WriteContext& ctx, std::string_view key,
                                         const types::Record* before) {
  const auto settings = ctx.config.settings();
  return {ctx.keys, ctx.db, key, before, settings->inline_max_bytes};
}

// To change the stream of a key, or to make one where there is none.
inline auto open_stream(contract::WriteContext& ctx, std::string_view key) {
  return Opened(ctx, key, storage::ValueType::kStream, [&](const types::Record& record) {
    return stream_writer(ctx, key, before(record));
  });
}

template <typename Context>
auto read_stream(Context& ctx, std::string_view key) {
  return Opened(ctx, key, storage::ValueType::kStream, [&](const types::Record& record) {
    return types::StreamReader(ctx.keys.data(), record);
  });
}

// "ms-seq" or "ms"; nothing when the error was answered.
std::optional<types::StreamId> stream_id_argument(contract::ReplySink& reply, std::string_view text,
                                                  uint64_t missing_seq = 0);
// The same, or "-" or "+".
std::optional<types::StreamId> stream_end_argument(contract::ReplySink& reply,
                                                   std::string_view text, uint64_t missing_seq);
// The bounds of a range, inclusive; each may be exclusive in the arguments: "(ms-seq".
struct StreamRange {
  types::StreamId first;
  types::StreamId last = types::kStreamIdMax;
};
std::optional<types::StreamId> range_start_argument(contract::ReplySink& reply,
                                                    std::string_view text);
std::optional<types::StreamId> range_end_argument(contract::ReplySink& reply,
                                                  std::string_view text);

inline void reply_id(contract::ReplySink& reply, types::StreamId id) {
  reply.bulk(types::stream_id_text(id));
}
void reply_entry(contract::ReplySink& reply, types::StreamId id, const types::StreamFields& fields);
// An array of the entries of a range, at most `count` of them (0: all).
void reply_entries(contract::ReadContext& ctx, const types::StreamReader& stream,
                   const StreamRange& range, uint64_t count, bool reverse = false);
void reply_entries(contract::WriteContext& ctx, const types::StreamReader& stream,
                   const StreamRange& range, uint64_t count);

// Calls `each` for all of them; what is pending of them in `group` is looked up ahead.
template <typename Each>
void each_ahead(types::StreamWriter& stream, std::span<const types::StreamId> ids,
                const types::StreamGroup* group, const Each& each) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i % types::StreamWriter::kLookedUpAhead == 0) {
      const auto rest = ids.subspan(i);
      stream.look_ahead(rest.first(std::min(rest.size(), types::StreamWriter::kLookedUpAhead)),
                        group);
    }
    each(ids[i]);
  }
}

// Tell replicas how far a group has been given entries, and who has one of them.
void tell_group_position(contract::WriteContext& ctx, std::string_view key,
                         const types::StreamGroup& group);
void tell_claim(contract::WriteContext& ctx, std::string_view key, const types::StreamGroup& group,
                std::string_view consumer, const types::StreamPending& pending);

// "NOGROUP No such key ... or consumer group ...".
std::string no_group_error(std::string_view key, std::string_view group);

}  // namespace ingot::commands
