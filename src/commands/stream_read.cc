// Reading on from where one was, alone or as a consumer of a group: XREAD, XREADGROUP.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/commands/blocking.h"
#include "src/commands/families.h"
#include "src/commands/stream_key.h"
#include "src/contract/thresholds.h"

namespace ingot::commands {
namespace {

using types::Record;
using types::StreamConsumer;
using types::StreamFields;
using types::StreamGroup;
using types::StreamId;
using types::StreamPending;
using types::StreamReader;
using types::StreamWriter;

// A reader that waited is not flooded with what came meanwhile.
constexpr uint64_t kCountAfterWait = 1000;

struct Request {
  std::optional<std::string_view> block;  // milliseconds
  uint64_t count = 0;                     // entries of each stream; 0: all
  bool grouped = false;
  bool no_ack = false;
  std::string_view group;
  std::string_view consumer;
  Args keys;
  Args ids;
};

// Nothing when the error has been answered.
std::optional<Request> parse(ReplySink& reply, Args args, bool with_group) {
  Request request;
  ArgReader reader(args);
  bool streams = false;
  while (reader.more() && !streams) {
    if (reader.word("block", 1)) {
      request.block = reader.text();
    } else if (reader.word("count", 1)) {
      request.count = static_cast<uint64_t>(std::max<int64_t>(0, reader.integer()));
    } else if (reader.word("streams", 1)) {
      streams = true;
    } else if (reader.word("group", 2)) {
      request.grouped = true;
      request.group = reader.text();
      request.consumer = reader.text();
      if (!with_group) {
        reader.fail(
            "ERR The GROUP option is only supported by XREADGROUP. You called XREAD "
            "instead.");
      }
    } else if (reader.word("noack")) {
      request.no_ack = true;
      if (!with_group) {
        reader.fail(
            "ERR The NOACK option is only supported by XREADGROUP. You called XREAD "
            "instead.");
      }
    } else {
      reader.fail(contract::error::kSyntax);
    }
  }
  if (!streams) reader.fail(contract::error::kSyntax);
  const Args rest = reader.rest();
  if (rest.size() % 2 != 0) {
    reader.fail(
        "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be "
        "specified.");
  }
  if (with_group && !request.grouped) reader.fail("ERR Missing GROUP option for XREADGROUP");
  if (reader.failed()) {
    reply.error(reader.error());
    return std::nullopt;
  }
  request.keys = rest.first(rest.size() / 2);
  request.ids = rest.last(rest.size() / 2);
  return request;
}

void announce_streams(ReplySink& reply, size_t count) {
  reply.version() > 2 ? reply.map(count) : reply.array(count);
}

void announce_stream(ReplySink& reply, std::string_view key) {
  if (reply.version() == 2) reply.array(2);
  reply.bulk(key);
}

// --- XREAD

// Behind which ID each stream is read; nothing when the error has been answered.
template <typename Context>
std::optional<std::vector<StreamId>> resolve_ids(Context& ctx, const Request& request) {
  std::vector<StreamId> ids;
  for (size_t i = 0; i < request.keys.size(); ++i) {
    const auto stream = read_stream(ctx, request.keys[i]);
    if (!stream) return std::nullopt;
    if (request.ids[i] == "$") {
      ids.push_back(stream->notes().last);
      continue;
    }
    if (request.ids[i] == ">") {
      ctx.reply.error(
          "ERR The > ID can be specified only when calling XREADGROUP using the GROUP "
          "<group> <consumer> option.");
      return std::nullopt;
    }
    const auto id = stream_id_argument(ctx.reply, request.ids[i]);
    if (!id) return std::nullopt;
    ids.push_back(*id);
  }
  return ids;
}

bool has_entries_behind(const StreamReader& stream, StreamId id) {
  if (stream.length() == 0) return false;
  // The first entry is there. The last one may have gone, so its ID alone tells nothing.
  return stream.notes().first > id || (stream.notes().last > id && stream.last_entry() > id);
}

// Answers what stands behind the IDs; false when nothing does.
template <typename Context>
bool read_on(Context& ctx, Args keys, std::span<const StreamId> ids, uint64_t count) {
  std::vector<std::pair<size_t, Record>> served;
  for (size_t i = 0; i < keys.size(); ++i) {
    Record record;
    if (types::find_as(ctx.keys, ctx.db, keys[i], storage::ValueType::kStream, &record) !=
        types::Found::kYes) {
      continue;
    }
    if (has_entries_behind(StreamReader(ctx.keys.data(), record), ids[i])) {
      served.emplace_back(i, std::move(record));
    }
  }
  if (served.empty()) return false;
  announce_streams(ctx.reply, served.size());
  for (const auto& [i, record] : served) {
    announce_stream(ctx.reply, keys[i]);
    reply_entries(ctx, StreamReader(ctx.keys.data(), record), {*types::id_after(ids[i])}, count);
  }
  return true;
}

void xread(ReadContext& ctx, Args args) {
  const auto request = parse(ctx.reply, args, /*with_group=*/false);
  if (!request) return;
  const auto ids = resolve_ids(ctx, *request);
  if (!ids) return;
  if (!read_on(ctx, request->keys, *ids, request->count)) ctx.reply.null_array();
}

// The IDs that "$" meant when the client began to wait.
std::string remember(std::span<const StreamId> ids) {
  std::string memory;
  for (const StreamId id : ids) memory.append(types::stream_id_bytes(id));
  return memory;
}

StreamId recall(std::string_view memory, size_t index) {
  return types::read_stream_id(memory.substr(index * types::kStreamIdBytes));
}

void xread_or_wait(WriteContext& ctx, Args args) {
  const auto request = parse(ctx.reply, args, /*with_group=*/false);
  if (!request) return;
  const auto until_ms = wait_until_ms(ctx, *request->block);
  if (!until_ms) return;
  if (ctx.fed) {
    const size_t index =
        static_cast<size_t>(std::ranges::find(request->keys, ctx.fed->key) - request->keys.begin());
    const StreamId id = recall(ctx.fed->memory, index);
    const uint64_t count = request->count == 0 ? kCountAfterWait : request->count;
    if (read_on(ctx, request->keys.subspan(index, 1), {&id, 1}, count)) return;
    return wait_for(ctx, request->keys, *until_ms);
  }
  const auto ids = resolve_ids(ctx, *request);
  if (!ids || read_on(ctx, request->keys, *ids, request->count)) return;
  wait_for(ctx, request->keys, *until_ms, remember(*ids));
}

// --- XREADGROUP

// What one stream gives a consumer.
struct Delivery {
  std::string_view key;
  // An entry that was delivered before and is not there any more has no bytes.
  std::vector<std::pair<StreamId, std::optional<std::string>>> entries;
};

// What one XREADGROUP may still give, of all its streams together.
struct Room {
  uint64_t entries = contract::kDeliveredByWriter;
  uint64_t bytes = contract::kDeliveredBytesByWriter;

  // False once there is none: the first is given however large it is.
  bool take(uint64_t entry_bytes) {
    --entries;
    bytes -= std::min(bytes, entry_bytes);
    return entries != 0 && bytes != 0;
  }
  bool is_spent() const { return entries == 0 || bytes == 0; }
};

void reply_deliveries(ReplySink& reply, const std::vector<Delivery>& deliveries) {
  announce_streams(reply, deliveries.size());
  for (const Delivery& delivery : deliveries) {
    announce_stream(reply, delivery.key);
    reply.array(delivery.entries.size());
    for (const auto& [id, packed] : delivery.entries) {
      if (packed) {
        reply_entry(reply, id, StreamFields(*packed));
      } else {
        reply.array(2);
        reply_id(reply, id);
        reply.null_array();
      }
    }
  }
}

// How far the group has read, once it has read this entry.
int64_t entries_read_with(const StreamReader& stream, const StreamGroup& group, StreamId id) {
  if (group.entries_read != -1 && !stream.deleted_since(id)) return group.entries_read + 1;
  if (stream.notes().added == 0) return group.entries_read;
  return stream.added_until(id).value_or(-1);
}

void deliver_new(WriteContext& ctx, const Request& request, StreamWriter& stream,
                 StreamGroup* group, StreamConsumer* consumer, uint64_t count, Room* room,
                 Delivery* delivery) {
  stream.walk(*types::id_after(group->last), types::kStreamIdMax, false,
              [&](StreamId id, const StreamFields& fields) {
                delivery->entries.emplace_back(id, std::string(fields.packed()));
                return room->take(fields.packed().size()) && delivery->entries.size() != count;
              });
  for (const auto& [id, packed] : delivery->entries) {
    group->entries_read = entries_read_with(stream, *group, id);
    group->last = id;
    if (request.no_ack) continue;
    // An XGROUP SETID back lets an entry be delivered that is pending already.
    const auto before = stream.pending(*group, id);
    const StreamPending pending{
        .id = id, .consumer = consumer->name, .delivered_ms = ctx.now_ms(), .deliveries = 1};
    stream.give(group, consumer, pending, before ? &*before : nullptr);
    tell_claim(ctx, delivery->key, *group, consumer->name, pending);
  }
  if (request.no_ack && !delivery->entries.empty()) {
    tell_group_position(ctx, delivery->key, *group);
  }
}

// What the consumer has not acknowledged, behind the ID.
void deliver_again(WriteContext& ctx, StreamWriter& stream, const StreamGroup& group,
                   const StreamConsumer& consumer, StreamId behind, uint64_t count, Room* room,
                   Delivery* delivery) {
  const auto first = types::id_after(behind);
  if (!first) return;
  std::vector<StreamPending> owned;
  stream.walk_pending(group, consumer, *first, [&](const StreamPending& pending) {
    owned.push_back(pending);
    return owned.size() != count && owned.size() != room->entries;
  });
  for (StreamPending& pending : owned) {
    auto& [id, packed] = delivery->entries.emplace_back(pending.id, std::nullopt);
    stream.entry(id, [&](StreamId, const StreamFields& fields) {
      packed.emplace(fields.packed());
      return true;
    });
    const bool goes_on = room->take(packed ? packed->size() : 0);
    if (packed) {
      pending.delivered_ms = ctx.now_ms();
      ++pending.deliveries;
      stream.store(group, pending);
    }
    if (!goes_on) break;
  }
}

// Serves from one stream, if there is something for the consumer. The group must be there. Counts
// the consumer that comes into being as a change.
std::optional<Delivery> serve(WriteContext& ctx, const Request& request, size_t index,
                              uint64_t count, Room* room) {
  const std::string_view key = request.keys[index];
  Record record;
  if (!ctx.keys.find(ctx.db, key, &record)) return std::nullopt;
  StreamWriter stream = stream_writer(ctx, key, &record);
  auto group = stream.group(request.group);
  if (!group) return std::nullopt;
  const bool only_new = request.ids[index] == ">";
  if (only_new && !has_entries_behind(stream, group->last)) return std::nullopt;
  auto consumer = stream.consumer(*group, request.consumer);
  const bool is_new = !consumer;
  if (is_new) {
    consumer = stream.create_consumer(&*group, request.consumer, ctx.now_ms());
    ++*ctx.changes;
    ctx.keys.notify(notify::kStream, "xgroup-createconsumer", ctx.db, key);
  }
  ctx.tell_nothing();  // but what follows
  if (is_new && request.no_ack) {
    ctx.tell({"XGROUP", "CREATECONSUMER", key, group->name, consumer->name});
  }
  consumer->seen_ms = ctx.now_ms();
  Delivery delivery{.key = key, .entries = {}};
  if (only_new) {
    deliver_new(ctx, request, stream, &*group, &*consumer, count, room, &delivery);
  } else {
    const auto behind = types::parse_stream_id(request.ids[index], 0);
    deliver_again(ctx, stream, *group, *consumer, behind.value_or(StreamId{}), count, room,
                  &delivery);
  }
  stream.store(*group, *consumer);
  stream.store(*group);
  stream.finish();
  return delivery;
}

// False when an error was answered.
bool check_streams(WriteContext& ctx, const Request& request) {
  for (size_t i = 0; i < request.keys.size(); ++i) {
    const auto stream = read_stream(ctx, request.keys[i]);
    if (!stream) return false;
    if (!stream->group(request.group)) {
      ctx.reply.error(no_group_error(request.keys[i], request.group) +
                      " in XREADGROUP with GROUP option");
      return false;
    }
    if (request.ids[i] == "$") {
      ctx.reply.error(
          "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read "
          "the history of this consumer by specifying a proper ID, or use the > ID to "
          "get new messages. The $ ID would just return an empty result set.");
      return false;
    }
    if (request.ids[i] != ">" && !stream_id_argument(ctx.reply, request.ids[i])) return false;
  }
  return true;
}

// A waiting consumer's stream has changed.
void serve_fed(WriteContext& ctx, const Request& request, int64_t until_ms) {
  Record record;
  if (types::find_as(ctx.keys, ctx.db, ctx.fed->key, storage::ValueType::kStream, &record) !=
      types::Found::kYes) {
    return ctx.reply.error("UNBLOCKED the stream key no longer exists");
  }
  if (!StreamReader(ctx.keys.data(), record).group(request.group)) {
    return ctx.reply.error(
        "NOGROUP the consumer group this client was blocked on no longer exists");
  }
  const size_t index =
      static_cast<size_t>(std::ranges::find(request.keys, ctx.fed->key) - request.keys.begin());
  Room room;
  const auto delivery =
      serve(ctx, request, index, request.count == 0 ? kCountAfterWait : request.count, &room);
  if (delivery) return reply_deliveries(ctx.reply, {*delivery});
  wait_for(ctx, request.keys, until_ms);
}

void xreadgroup(WriteContext& ctx, Args args) {
  const auto request = parse(ctx.reply, args, /*with_group=*/true);
  if (!request) return;
  std::optional<int64_t> until_ms;
  if (request->block) {
    until_ms = wait_until_ms(ctx, *request->block);
    if (!until_ms) return;
  }
  ctx.changes = 0;
  if (ctx.fed) return serve_fed(ctx, *request, *until_ms);
  if (!check_streams(ctx, *request)) return;
  std::vector<Delivery> deliveries;
  Room room;
  for (size_t i = 0; i < request->keys.size() && !room.is_spent(); ++i) {
    if (auto delivery = serve(ctx, *request, i, request->count, &room)) {
      deliveries.push_back(std::move(*delivery));
      ++*ctx.changes;
    }
  }
  if (!deliveries.empty()) return reply_deliveries(ctx.reply, deliveries);
  if (!until_ms) return ctx.reply.null_array();
  wait_for(ctx, request->keys, *until_ms, {}, /*for_removal=*/true);
}

const CommandRow* row_for_waiting(Args args);

constexpr contract::OptionWord kGroupReadOptions[] = {{"group", 2}};

constexpr CommandRow kTable[] = {
    {.name = "xread",
     .arity = -4,
     .flags = flag::kReadonly | flag::kBlocking | flag::kMovableKeys,
     .keys = {{.flags = key::kRo | key::kAccess,
               .keyword = "STREAMS",
               .begin = 1,
               .last = -1,
               .step = 1,
               .limit = 2}},
     .since = "5.0.0",
     .complexity = "O(N) with N entries answered",
     .summary = "Answer the entries behind IDs of streams, or wait for some",
     .arguments = "count:integer=COUNT? milliseconds:integer=BLOCK? "
                  "streams:block=STREAMS(key:key#0* id:string*)",
     .handler = xread,
     .instead = row_for_waiting},
    {.name = "xreadgroup",
     .arity = -7,
     .flags = flag::kWrite | flag::kBlocking | flag::kMovableKeys,
     .keys = {{.flags = key::kRo | key::kAccess,
               .keyword = "STREAMS",
               .begin = 4,
               .last = -1,
               .step = 1,
               .limit = 2,
               .options_begin = 1,
               .options = kGroupReadOptions}},
     .since = "5.0.0",
     .complexity = "O(M) with M entries answered",
     .summary = "Answer new entries of streams to a consumer of a group, or wait for some; or "
                "answer again what it has not acknowledged",
     .arguments = "group_consumer:block=GROUP(group:string consumer:string) count:integer=COUNT? "
                  "milliseconds:integer=BLOCK? noack:pure-token=NOACK? "
                  "streams:block=STREAMS(key:key#0* id:string*)",
     .handler = xreadgroup},
};
constexpr auto kRows = contract::family(kStreamFamily, kTable);

constexpr CommandRow kWaitingRow = contract::variant_of(kRows[0], xread_or_wait);

// Only the writer lets a client wait.
const CommandRow* row_for_waiting(Args args) {
  for (size_t i = 1; i + 1 < args.size(); i += 2) {
    if (contract::equals_ignore_case(args[i], "streams")) return nullptr;
    if (contract::equals_ignore_case(args[i], "block")) return &kWaitingRow;
  }
  return nullptr;
}

}  // namespace

std::span<const CommandRow> stream_read_rows() {
  return kRows;
}

}  // namespace ingot::commands
