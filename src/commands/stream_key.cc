// Parsing the IDs and ends of ranges, and entries as replies, held or streamed.
#include "src/commands/stream_key.h"

#include <algorithm>
#include <string>
#include <vector>

#include "src/commands/element_reply.h"
#include "src/contract/thresholds.h"
#include "src/types/stream_bytes.h"

namespace ingot::commands {

using contract::ReplySink;
using types::StreamFields;
using types::StreamId;
using types::StreamReader;

namespace {

constexpr std::string_view kBadId = "ERR Invalid stream ID specified as stream command argument";

// Entries of a range, because a reply tells first how many there are.
struct Held {
  std::vector<std::pair<StreamId, std::string>> entries;
  uint64_t count = 0;  // with those behind `entries`
  StreamId last;
};

// Holds at most `held_max` entries of the range; those behind are only counted.
Held hold_entries(ReplySink& reply, const StreamReader& stream, const StreamRange& range,
                  uint64_t count, bool reverse, size_t held_max) {
  Held held;
  size_t bytes = 0;
  stream.walk(range.first, range.last, reverse, [&](StreamId id, const StreamFields& fields) {
    if (held.count < held_max) {
      held.entries.emplace_back(id, fields.packed());
      bytes += fields.packed().size();
    }
    held.last = id;
    return ++held.count != count && reply.may_hold(bytes);
  });
  return held;
}

void reply_held(ReplySink& reply, const Held& held) {
  for (const auto& [id, packed] : held.entries) reply_entry(reply, id, StreamFields(packed));
}

}  // namespace

std::optional<StreamId> stream_id_argument(ReplySink& reply, std::string_view text,
                                           uint64_t missing_seq) {
  const auto id = types::parse_stream_id(text, missing_seq);
  if (!id) reply.error(kBadId);
  return id;
}

std::optional<StreamId> stream_end_argument(ReplySink& reply, std::string_view text,
                                            uint64_t missing_seq) {
  if (text == "-") return types::kStreamIdMin;
  if (text == "+") return types::kStreamIdMax;
  return stream_id_argument(reply, text, missing_seq);
}

std::optional<StreamId> range_start_argument(ReplySink& reply, std::string_view text) {
  if (!text.starts_with('(')) return stream_end_argument(reply, text, 0);
  const auto id = stream_id_argument(reply, text.substr(1), 0);
  if (!id) return std::nullopt;
  const auto first = types::id_after(*id);
  if (!first) reply.error("ERR invalid start ID for the interval");
  return first;
}

std::optional<StreamId> range_end_argument(ReplySink& reply, std::string_view text) {
  if (!text.starts_with('(')) return stream_end_argument(reply, text, UINT64_MAX);
  const auto id = stream_id_argument(reply, text.substr(1), UINT64_MAX);
  if (!id) return std::nullopt;
  const auto last = types::id_before(*id);
  if (!last) reply.error("ERR invalid end ID for the interval");
  return last;
}

void reply_entry(ReplySink& reply, StreamId id, const StreamFields& fields) {
  reply.array(2);
  reply_id(reply, id);
  reply.array(fields.count());
  std::string_view item;
  for (types::PackedReader items = fields.items(); items.next(&item);) reply.bulk(item);
}

void reply_entries(contract::ReadContext& ctx, const StreamReader& stream, const StreamRange& range,
                   uint64_t count, bool reverse) {
  const uint64_t most = count == 0 ? stream.length() : std::min(count, stream.length());
  if (most > contract::kVisitedOnIoThread && stream.is_large() &&
      !ctx.keys.data().begin_walk(most)) {
    return;
  }
  const bool streams = ctx.view != nullptr && stream.is_large();
  const Held held = hold_entries(ctx.reply, stream, range, count, reverse,
                                 streams ? contract::kHeldElements : SIZE_MAX);
  ctx.reply.array(held.count);
  if (held.count == held.entries.size()) return reply_held(ctx.reply, held);
  const std::string begin = storage::collection_begin(stream.id());
  const StreamId lowest = reverse ? held.last : range.first;
  const StreamId highest = reverse ? range.last : held.last;
  reply_elements(ctx,
                 {.space = storage::Space::kData,
                  .lower = begin + types::entry_key(lowest),
                  .upper = begin + types::entry_key(highest) + '\0',
                  .reverse = reverse},
                 held.count, [](std::string_view key, std::string_view value, ReplySink& reply) {
                   reply_entry(reply, types::entry_id(key), StreamFields(value.substr(1)));
                   return 1;
                 });
}

void reply_entries(contract::WriteContext& ctx, const StreamReader& stream,
                   const StreamRange& range, uint64_t count) {
  const Held held = hold_entries(ctx.reply, stream, range, count, false, SIZE_MAX);
  ctx.reply.array(held.count);
  reply_held(ctx.reply, held);
}

void tell_group_position(contract::WriteContext& ctx, std::string_view key,
                         const types::StreamGroup& group) {
  if (!ctx.tells()) return ctx.tell_nothing();
  ctx.tell({"XGROUP", "SETID", key, group.name, types::stream_id_text(group.last), "ENTRIESREAD",
            std::to_string(group.entries_read)});
}

void tell_claim(contract::WriteContext& ctx, std::string_view key, const types::StreamGroup& group,
                std::string_view consumer, const types::StreamPending& pending) {
  if (!ctx.tells()) return ctx.tell_nothing();
  ctx.tell({"XCLAIM", key, group.name, consumer, "0", types::stream_id_text(pending.id), "TIME",
            std::to_string(pending.delivered_ms), "RETRYCOUNT", std::to_string(pending.deliveries),
            "FORCE", "JUSTID", "LASTID", types::stream_id_text(group.last)});
}

std::string no_group_error(std::string_view key, std::string_view group) {
  return "NOGROUP No such key '" + std::string(key) + "' or consumer group '" + std::string(group) +
         "'";
}

}  // namespace ingot::commands
