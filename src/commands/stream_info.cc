// What there is to know about streams: XINFO.
#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/families.h"
#include "src/commands/pending_reply.h"
#include "src/commands/stream_key.h"
#include "src/contract/help.h"
#include "src/contract/thresholds.h"

namespace ingot::commands {
namespace {

using types::StreamConsumer;
using types::StreamFields;
using types::StreamGroup;
using types::StreamId;
using types::StreamPending;
using types::StreamReader;

constexpr int64_t kFullCount = 10;      // Redis' default
constexpr uint64_t kEntriesEach = 100;  // of what Redis' radix tree holds; see differences.md

// Whether the stream was found; an error has been answered if not.
bool is_there(ReadContext& ctx, const Opened<StreamReader>& stream) {
  if (stream && !stream.exists()) ctx.reply.error(contract::error::kNoSuchKey);
  return stream.exists();
}

// Lists that are told with their length first.
std::vector<StreamGroup> groups_of(const StreamReader& stream) {
  std::vector<StreamGroup> groups;
  stream.walk_groups([&](const StreamGroup& group) {
    groups.push_back(group);
    return true;
  });
  return groups;
}

std::vector<StreamConsumer> consumers_of(const StreamReader& stream, const StreamGroup& group) {
  std::vector<StreamConsumer> consumers;
  stream.walk_consumers(group, [&](const StreamConsumer& consumer) {
    consumers.push_back(consumer);
    return true;
  });
  return consumers;
}

void reply_count(ReplySink& reply, std::string_view name, uint64_t count) {
  reply.bulk(name);
  reply.integer(static_cast<int64_t>(count));
}

void reply_named_id(ReplySink& reply, std::string_view name, StreamId id) {
  reply.bulk(name);
  reply_id(reply, id);
}

void reply_progress(ReplySink& reply, const StreamReader& stream, const StreamGroup& group) {
  reply.bulk("entries-read");
  group.entries_read == -1 ? reply.null() : reply.integer(group.entries_read);
  reply.bulk("lag");
  const auto lag = stream.lag(group);
  lag ? reply.integer(*lag) : reply.null();
}

void consumers(ReadContext& ctx, Args args) {
  const auto stream = read_stream(ctx, args[2]);
  if (!is_there(ctx, stream)) return;
  const auto group = stream->group(args[3]);
  if (!group) {
    return ctx.reply.error("NOGROUP No such consumer group '" + std::string(args[3]) +
                           "' for key name '" + std::string(args[2]) + "'");
  }
  const auto found = consumers_of(*stream, *group);
  ctx.reply.array(found.size());
  for (const StreamConsumer& consumer : found) {
    ctx.reply.map(3);
    ctx.reply.bulk("name");
    ctx.reply.bulk(consumer.name);
    reply_count(ctx.reply, "pending", consumer.pending);
    ctx.reply.bulk("idle");
    ctx.reply.integer(std::max<int64_t>(0, ctx.now_ms() - consumer.seen_ms));
  }
}

void groups(ReadContext& ctx, Args args) {
  const auto stream = read_stream(ctx, args[2]);
  if (!is_there(ctx, stream)) return;
  const auto found = groups_of(*stream);
  ctx.reply.array(found.size());
  for (const StreamGroup& group : found) {
    ctx.reply.map(6);
    ctx.reply.bulk("name");
    ctx.reply.bulk(group.name);
    reply_count(ctx.reply, "consumers", group.consumers);
    reply_count(ctx.reply, "pending", group.pending);
    reply_named_id(ctx.reply, "last-delivered-id", group.last);
    reply_progress(ctx.reply, *stream, group);
  }
}

void reply_head(ReplySink& reply, const StreamReader& stream) {
  const types::StreamNotes& notes = stream.notes();
  const uint64_t nodes = (stream.length() + kEntriesEach - 1) / kEntriesEach;
  reply_count(reply, "length", stream.length());
  reply_count(reply, "radix-tree-keys", nodes);
  reply_count(reply, "radix-tree-nodes", nodes + 1);
  reply_named_id(reply, "last-generated-id", notes.last);
  reply_named_id(reply, "max-deleted-entry-id", notes.max_deleted);
  reply_count(reply, "entries-added", notes.added);
  reply_named_id(reply, "recorded-first-entry-id", notes.first);
}

void reply_edge(ReplySink& reply, const StreamReader& stream, std::string_view name, bool last) {
  reply.bulk(name);
  if (stream.length() == 0) return reply.null();
  stream.walk(types::kStreamIdMin, types::kStreamIdMax, last,
              [&](StreamId id, const StreamFields& fields) {
                reply_entry(reply, id, fields);
                return false;
              });
}

// What XINFO STREAM FULL is about; `count` of everything at most.
struct Full {
  ReadContext& ctx;
  const StreamReader& stream;
  const types::Record& record;
  uint64_t count;
};

void reply_pending_of_group(const Full& full, const StreamGroup& group) {
  reply_count(full.ctx.reply, "pel-count", group.pending);
  full.ctx.reply.bulk("pending");
  reply_pending_list(full.ctx, full.stream, full.record, group, {.count = full.count},
                     [](const StreamPending& pending, ReplySink& reply) {
                       reply.array(4);
                       reply_id(reply, pending.id);
                       reply.bulk(pending.consumer);
                       reply.integer(pending.delivered_ms);
                       reply.integer(static_cast<int64_t>(pending.deliveries));
                     });
}

void reply_full_consumer(const Full& full, const StreamGroup& group,
                         const StreamConsumer& consumer) {
  ReplySink& reply = full.ctx.reply;
  reply.map(4);
  reply.bulk("name");
  reply.bulk(consumer.name);
  reply.bulk("seen-time");
  reply.integer(consumer.seen_ms);
  reply_count(reply, "pel-count", consumer.pending);
  reply.bulk("pending");
  reply_pending_list(full.ctx, full.stream, full.record, group,
                     {.count = full.count, .consumer = consumer},
                     [](const StreamPending& pending, ReplySink& sink) {
                       sink.array(3);
                       reply_id(sink, pending.id);
                       sink.integer(pending.delivered_ms);
                       sink.integer(static_cast<int64_t>(pending.deliveries));
                     });
}

void reply_full(ReadContext& ctx, const StreamReader& stream, const types::Record& record,
                uint64_t count) {
  ReplySink& reply = ctx.reply;
  const Full full{.ctx = ctx,
                  .stream = stream,
                  .record = record,
                  .count = count == 0 ? std::numeric_limits<uint64_t>::max() : count};
  const auto found = groups_of(stream);
  uint64_t visited = found.size();
  for (const StreamGroup& group : found) {
    visited += group.consumers + (count == 0 ? group.pending : std::min(count, group.pending));
  }
  if (visited > contract::kVisitedOnIoThread && !ctx.keys.data().begin_walk(visited)) return;
  reply.map(9);
  reply_head(reply, stream);
  reply.bulk("entries");
  reply_entries(ctx, stream, {}, count);
  reply.bulk("groups");
  reply.array(found.size());
  for (const StreamGroup& group : found) {
    reply.map(7);
    reply.bulk("name");
    reply.bulk(group.name);
    reply_named_id(reply, "last-delivered-id", group.last);
    reply_progress(reply, stream, group);
    reply_pending_of_group(full, group);
    reply.bulk("consumers");
    const auto members =
        group.consumers == 0 ? std::vector<StreamConsumer>() : consumers_of(stream, group);
    reply.array(members.size());
    for (const StreamConsumer& consumer : members) {
      reply_full_consumer(full, group, consumer);
    }
  }
}

void stream(ReadContext& ctx, Args args) {
  const auto found = read_stream(ctx, args[2]);
  if (!is_there(ctx, found)) return;
  if (args.size() == 3) {
    ctx.reply.map(10);
    reply_head(ctx.reply, *found);
    reply_count(ctx.reply, "groups", found->notes().groups);
    reply_edge(ctx.reply, *found, "first-entry", /*last=*/false);
    return reply_edge(ctx.reply, *found, "last-entry", /*last=*/true);
  }
  ArgReader reader(args, 3);
  int64_t count = kFullCount;
  bool fits = reader.word("full");
  if (fits && reader.more()) {
    fits = reader.left() == 2 && reader.word("count");
    if (fits) count = reader.integer();
  }
  if (!fits || reader.left() != 0) {
    return ctx.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                           std::string(args[1]) + "'. Try XINFO HELP.");
  }
  if (reader.failed()) return ctx.reply.error(reader.error());
  reply_full(ctx, *found, found.record(), static_cast<uint64_t>(count < 0 ? kFullCount : count));
}

void help(SessionContext& ctx, Args) {
  contract::reply_help(
      ctx.reply, "XINFO",
      {"CONSUMERS <key> <groupname>", "    Show consumers of <groupname>.", "GROUPS <key>",
       "    Show the stream consumer groups.", "STREAM <key> [FULL [COUNT <count>]",
       "    Show information about the stream."});
}

constexpr CommandRow kSubcommandTable[] = {
    {.name = "consumers",
     .arity = 4,
     .flags = flag::kReadonly,
     .keys = {key_at(2, key::kRo | key::kAccess)},
     .since = "5.0.0",
     .complexity = "O(N) with N consumers",
     .summary = "The consumers of a group",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0 groupname:string",
     .handler = consumers},
    {.name = "groups",
     .arity = 3,
     .flags = flag::kReadonly,
     .keys = {key_at(2, key::kRo | key::kAccess)},
     .since = "5.0.0",
     .complexity = "O(N) with N groups",
     .summary = "The consumer groups of a stream",
     .history = "7.0.0: `entries-read` and `lag` are told.",
     .arguments = "key:key#0",
     .handler = groups},
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "What the subcommands are for",
     .handler = help,
     .immediate = true},
    {.name = "stream",
     .arity = -3,
     .flags = flag::kReadonly,
     .keys = {key_at(2, key::kRo | key::kAccess)},
     .since = "5.0.0",
     .complexity = "O(1); FULL: O(N) with N records told",
     .summary = "What there is to know about a stream",
     .history = "6.0.0: `FULL`.; 7.0.0: What was added and deleted, and `lag`, are told.",
     .arguments = "key:key#0 full:block=FULL?(count:integer=COUNT?)",
     .handler = stream},
};
constexpr auto kSubcommands = contract::family(kStreamFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "xinfo",
     .arity = -2,
     .since = "5.0.0",
     .complexity = "That of the subcommand",
     .summary = "What there is to know about streams",
     .subcommands = kSubcommands},
};
constexpr auto kRows = contract::family(kStreamFamily, kTable);

}  // namespace

std::span<const CommandRow> stream_info_rows() {
  return kRows;
}

}  // namespace ingot::commands
