// Consumer groups of streams and what they have acknowledged: XGROUP, XACK.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/families.h"
#include "src/commands/large_removal.h"
#include "src/commands/stream_key.h"
#include "src/contract/help.h"

namespace ingot::commands {
namespace {

using types::StreamConsumer;
using types::StreamGroup;
using types::StreamId;
using types::StreamWriter;

// What CREATE and SETID take behind the ID.
struct GroupOptions {
  bool make_stream = false;
  int64_t entries_read = -1;
};

std::string unknown_form(Args args) {
  return "ERR unknown subcommand or wrong number of arguments for '" + std::string(args[1]) +
         "'. Try XGROUP HELP.";
}

std::optional<GroupOptions> read_options(ReplySink& reply, Args args, bool creating) {
  GroupOptions options;
  ArgReader reader(args, 5);
  while (reader.more()) {
    if (creating && reader.word("mkstream")) {
      options.make_stream = true;
    } else if (reader.word("entriesread", 1)) {
      options.entries_read = reader.integer();
      if (!reader.failed() && options.entries_read < -1) {
        reader.fail("ERR value for ENTRIESREAD must be positive or -1");
      }
    } else {
      reader.fail(unknown_form(args));
    }
  }
  if (!reader.failed()) return options;
  reply.error(reader.error());
  return std::nullopt;
}

// Whether a subcommand finds its stream; an error has been answered if not.
bool is_there(WriteContext& ctx, const Opened<StreamWriter>& stream, bool make_stream = false) {
  if (!stream || stream.exists() || make_stream) return static_cast<bool>(stream);
  ctx.reply.error(
      "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you "
      "may want to use the MKSTREAM option to create an empty stream automatically.");
  return false;
}

std::optional<StreamGroup> open_group(WriteContext& ctx, const StreamWriter& stream, Args args) {
  auto group = stream.group(args[3]);
  if (!group) {
    ctx.reply.error("NOGROUP No such consumer group '" + std::string(args[3]) + "' for key name '" +
                    std::string(args[2]) + "'");
  }
  return group;
}

void create(WriteContext& ctx, Args args) {
  const auto options = read_options(ctx.reply, args, /*creating=*/true);
  if (!options) return;
  auto stream = open_stream(ctx, args[2]);
  if (!is_there(ctx, stream, options->make_stream)) return;
  constexpr size_t kArgsMax = 8;  // each option once
  if (args.size() > kArgsMax) return ctx.reply.error(unknown_form(args));
  const auto id =
      args[4] == "$" ? std::optional(stream->notes().last) : stream_id_argument(ctx.reply, args[4]);
  if (!id) return;
  if (stream->group(args[3])) {
    return ctx.reply.error("BUSYGROUP Consumer Group name already exists");
  }
  stream->create_group(args[3], *id, options->entries_read);
  stream->finish();
  ctx.keys.notify(notify::kStream, "xgroup-create", ctx.db, args[2]);
  ctx.reply.ok();
}

void setid(WriteContext& ctx, Args args) {
  const auto options = read_options(ctx.reply, args, /*creating=*/false);
  if (!options) return;
  auto stream = open_stream(ctx, args[2]);
  if (!is_there(ctx, stream)) return;
  auto group = open_group(ctx, *stream, args);
  if (!group) return;
  constexpr size_t kArgsMax = 7;
  if (args.size() > kArgsMax) return ctx.reply.error(unknown_form(args));
  const auto id = args[4] == "$" ? std::optional(stream->notes().last)
                                 : stream_end_argument(ctx.reply, args[4], 0);
  if (!id) return;
  group->last = *id;
  group->entries_read = options->entries_read;
  stream->store(*group);
  stream->finish();
  ctx.keys.notify(notify::kStream, "xgroup-setid", ctx.db, args[2]);
  ctx.reply.ok();
}

// What `remove(stream, group)` takes from the group of the arguments, which are many elements.
// False: return at once.
template <typename Remove>
bool remove_beside(WriteContext& ctx, Args args, const types::Record& record, uint64_t elements,
                   types::Touch touch, const Remove& remove, const RestOf& rest_of) {
  const auto take = [db = ctx.db, key = args[2], name = args[3], elements, touch, remove,
                     inline_max_bytes = ctx.config.settings()->inline_max_bytes](
                        const data::Taking& here) -> std::optional<data::TakenCount> {
    types::StreamWriter stream(here.keys, db, key, &here.before, inline_max_bytes);
    if (auto group = stream.group(name)) remove(stream, *group);
    if (here.is_too_much()) return std::nullopt;
    stream.finish(touch);
    return data::TakenCount{.count = elements};
  };
  return leave_rest(ctx, args[2], record, elements, take, rest_of, touch).has_value();
}

void destroy(WriteContext& ctx, Args args) {
  auto stream = open_stream(ctx, args[2]);
  if (!is_there(ctx, stream)) return;
  const auto group = stream->group(args[3]);
  if (!group) return ctx.reply.integer(0);
  // Consumers that wait are told.
  constexpr types::Touch kTold = types::Touch::kFed;
  const uint64_t elements = group->consumers + 2 * group->pending;
  if (is_large_group_removal(ctx, stream.record(), elements)) {
    const bool removed = remove_beside(
        ctx, args, stream.record(), elements, kTold,
        [](types::StreamWriter& from, const types::StreamGroup& gone) { from.destroy(gone); },
        [group = *group](types::KeyReader& keys, const types::Record& record,
                         const types::PutElement& put, data::SpillSort&) {
          return types::stream_without_group(keys.data(), record, group, put);
        });
    if (!removed) return;
  } else {
    stream->destroy(*group);
    stream->finish(kTold);
  }
  ctx.keys.notify(notify::kStream, "xgroup-destroy", ctx.db, args[2]);
  ctx.reply.integer(1);
}

void createconsumer(WriteContext& ctx, Args args) {
  auto stream = open_stream(ctx, args[2]);
  if (!is_there(ctx, stream)) return;
  auto group = open_group(ctx, *stream, args);
  if (!group) return;
  if (stream->consumer(*group, args[4])) return ctx.reply.integer(0);
  stream->create_consumer(&*group, args[4], ctx.now_ms());
  stream->store(*group);
  stream->finish();
  ctx.keys.notify(notify::kStream, "xgroup-createconsumer", ctx.db, args[2]);
  ctx.reply.integer(1);
}

void delconsumer(WriteContext& ctx, Args args) {
  auto stream = open_stream(ctx, args[2]);
  if (!is_there(ctx, stream)) return;
  auto group = open_group(ctx, *stream, args);
  if (!group) return;
  const auto consumer = stream->consumer(*group, args[4]);
  if (!consumer) return ctx.reply.integer(0);
  if (is_large_group_removal(ctx, stream.record(), 2 * consumer->pending)) {
    const bool removed = remove_beside(
        ctx, args, stream.record(), 2 * consumer->pending, types::Touch::kQuiet,
        [consumer = *consumer](types::StreamWriter& from, types::StreamGroup& of) {
          from.remove(&of, consumer);
          from.store(of);
        },
        [group = *group, consumer = *consumer](types::KeyReader& keys, const types::Record& record,
                                               const types::PutElement& put, data::SpillSort&) {
          return types::stream_without_consumer(keys.data(), record, group, consumer, put);
        });
    if (!removed) return;
  } else {
    stream->remove(&*group, *consumer);
    stream->store(*group);
    stream->finish();
  }
  ctx.keys.notify(notify::kStream, "xgroup-delconsumer", ctx.db, args[2]);
  ctx.reply.integer(static_cast<int64_t>(consumer->pending));
}

void help(SessionContext& ctx, Args) {
  contract::reply_help(
      ctx.reply, "XGROUP",
      {"CREATE <key> <groupname> <id|$> [option]",
       "    Create a new consumer group. Options are:", "    * MKSTREAM",
       "      Create the empty stream if it does not exist.", "    * ENTRIESREAD entries_read",
       "      Set the group's entries_read counter (internal use).",
       "CREATECONSUMER <key> <groupname> <consumer>",
       "    Create a new consumer in the specified group.",
       "DELCONSUMER <key> <groupname> <consumer>", "    Remove the specified consumer.",
       "DESTROY <key> <groupname>", "    Remove the specified group.",
       "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
       "    Set the current group ID and entries_read counter."});
}

void xack(WriteContext& ctx, Args args) {
  auto stream = open_stream(ctx, args[1]);
  if (!stream) return;
  auto group = stream->group(args[2]);
  if (!group) return ctx.reply.integer(0);
  std::vector<StreamId> ids;
  for (std::string_view text : args.subspan(3)) {
    const auto id = stream_id_argument(ctx.reply, text);
    if (!id) return;
    ids.push_back(*id);
  }
  uint64_t acknowledged = 0;
  std::optional<StreamConsumer> owner;  // of the last one, stored when it is another's turn
  each_ahead(*stream, ids, &*group, [&](StreamId id) {
    const auto pending = stream->pending(*group, id);
    if (!pending) return;
    if (!owner || owner->name != pending->consumer) {
      if (owner) stream->store(*group, *owner);
      owner = stream->consumer(*group, pending->consumer);
    }
    stream->release(&*group, *pending, owner ? &*owner : nullptr);
    ++acknowledged;
  });
  if (owner) stream->store(*group, *owner);
  ctx.changes = acknowledged;
  if (acknowledged != 0) stream->store(*group);
  stream->finish();
  ctx.reply.integer(static_cast<int64_t>(acknowledged));
}

constexpr CommandRow kSubcommandTable[] = {
    {.name = "create",
     .arity = -5,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(2, key::kRw | key::kInsert)},
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "Create a consumer group",
     .history = "7.0.0: `ENTRIESREAD`.",
     .arguments = "key:key#0 groupname:string id:oneof(id:string new_id:pure-token=$) "
                  "mkstream:pure-token=MKSTREAM? entries_read:integer=ENTRIESREAD?",
     .handler = create},
    {.name = "createconsumer",
     .arity = 5,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(2, key::kRw | key::kInsert)},
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "Create a consumer in a group",
     .arguments = "key:key#0 groupname:string consumername:string",
     .handler = createconsumer},
    {.name = "delconsumer",
     .arity = 5,
     .flags = flag::kWrite,
     .keys = {key_at(2, key::kRw | key::kDelete)},
     .since = "5.0.0",
     .complexity = "O(N) with N entries pending for it",
     .summary = "Remove a consumer and what is pending for it",
     .arguments = "key:key#0 groupname:string consumername:string",
     .handler = delconsumer},
    {.name = "destroy",
     .arity = 4,
     .flags = flag::kWrite,
     .keys = {key_at(2, key::kRw | key::kDelete)},
     .since = "5.0.0",
     .complexity = "O(N) with N entries pending in it",
     .summary = "Remove a consumer group",
     .arguments = "key:key#0 groupname:string",
     .handler = destroy},
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "What the subcommands are for",
     .handler = help,
     .immediate = true},
    {.name = "setid",
     .arity = -5,
     .flags = flag::kWrite,
     .keys = {key_at(2, key::kRw | key::kUpdate)},
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "Set the last entry that a group was given",
     .history = "7.0.0: `ENTRIESREAD`.",
     .arguments = "key:key#0 groupname:string id:oneof(id:string new_id:pure-token=$) "
                  "entries_read:integer=ENTRIESREAD?",
     .handler = setid},
};
constexpr auto kSubcommands = contract::family(kStreamFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "xack",
     .arity = -4,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "5.0.0",
     .complexity = "O(1) for each ID",
     .summary = "Acknowledge entries that were delivered to a consumer",
     .arguments = "key:key#0 group:string id:string*",
     .handler = xack,
     .counts_lookups = true},
    {.name = "xgroup",
     .arity = -2,
     .since = "5.0.0",
     .complexity = "That of the subcommand",
     .summary = "Consumer groups of streams",
     .subcommands = kSubcommands},
};
constexpr auto kRows = contract::family(kStreamFamily, kTable);

}  // namespace

std::span<const CommandRow> stream_group_rows() {
  return kRows;
}

}  // namespace ingot::commands
