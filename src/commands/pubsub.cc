// SUBSCRIBE, PUBLISH and their relatives. A message is an effect of its unit: the writer counts who
// listens, and after the commit the couriers carry it.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "net/resp_writer.h"
#include "src/commands/families.h"
#include "src/contract/channels.h"
#include "src/contract/errors.h"
#include "src/contract/help.h"

namespace ingot::commands {
namespace {

using contract::ChannelKind;
using contract::Client;

// What one client's subscriptions may take: as much as a command may.
uint64_t subscriptions_bytes_max(const SessionContext& context) {
  return std::max<uint64_t>(16 << 20, context.server.memory_limit_bytes() / 16);
}

// Channels and patterns are counted together.
void reply_change(SessionContext& context, ChannelKind kind, std::string_view what,
                  std::optional<std::string_view> name) {
  const Client& client = context.client;
  const uint32_t count = kind == ChannelKind::kShard
                             ? client.subscribed_to(kind)
                             : client.subscribed_to(ChannelKind::kChannel) +
                                   client.subscribed_to(ChannelKind::kPattern);
  context.reply.push(3);
  context.reply.bulk(what);
  name ? context.reply.bulk(*name) : context.reply.null();
  context.reply.integer(count);
}

void subscribe_to(SessionContext& context, Args names, ChannelKind kind, std::string_view what) {
  uint64_t bytes = context.client.subscribed_bytes;
  for (const std::string_view name : names) bytes += name.size() + contract::kSubscriptionBytes;
  if (bytes > subscriptions_bytes_max(context)) {
    return context.reply.error(contract::kOutOfMemory);
  }
  for (const std::string_view name : names) {
    context.channels.subscribe(context.client, kind, name);
    reply_change(context, kind, what, name);
  }
}

void unsubscribe_from(SessionContext& context, Args names, ChannelKind kind,
                      std::string_view what) {
  const auto leave = [&](std::string_view name) {
    context.channels.unsubscribe(context.client, kind, name);
    reply_change(context, kind, what, name);
  };
  if (!names.empty()) {
    for (const std::string_view name : names) leave(name);
    return;
  }
  const auto all = context.channels.names_of(context.client, kind);
  if (all.empty()) return reply_change(context, kind, what, std::nullopt);
  for (const std::string& name : all) leave(name);
}

void subscribe(SessionContext& context, Args args) {
  subscribe_to(context, args.subspan(1), ChannelKind::kChannel, "subscribe");
}
void psubscribe(SessionContext& context, Args args) {
  subscribe_to(context, args.subspan(1), ChannelKind::kPattern, "psubscribe");
}
void ssubscribe(SessionContext& context, Args args) {
  if (context.in_exec) {
    return context.reply.error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
  }
  subscribe_to(context, args.subspan(1), ChannelKind::kShard, "ssubscribe");
}
void unsubscribe(SessionContext& context, Args args) {
  unsubscribe_from(context, args.subspan(1), ChannelKind::kChannel, "unsubscribe");
}
void punsubscribe(SessionContext& context, Args args) {
  unsubscribe_from(context, args.subspan(1), ChannelKind::kPattern, "punsubscribe");
}
void sunsubscribe(SessionContext& context, Args args) {
  unsubscribe_from(context, args.subspan(1), ChannelKind::kShard, "sunsubscribe");
}

void publish_to(WriteContext& context, Args args, bool sharded) {
  const auto audience = context.channels.audience(args[1], sharded);
  if (audience.clients > 0) {
    auto bulk = std::make_shared<std::string>();
    net::RespWriter(*bulk, 2).bulk(args[2]);
    context.keys.effects().notices.tell(types::Message{.channel = std::string(args[1]),
                                                       .bulk = std::move(bulk),
                                                       .sharded = sharded,
                                                       .threads = audience.threads});
  }
  context.tell_unchanged();
  context.reply.integer(static_cast<int64_t>(audience.clients));
}

void publish(WriteContext& context, Args args) {
  publish_to(context, args, /*sharded=*/false);
}
void spublish(WriteContext& context, Args args) {
  publish_to(context, args, /*sharded=*/true);
}

void list_channels(SessionContext& context, Args args, ChannelKind kind) {
  if (args.size() > 3) {
    return context.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                               std::string(args[1]) + "'. Try PUBSUB HELP.");
  }
  const auto pattern = args.size() == 3 ? std::optional(args[2]) : std::nullopt;
  const auto names = context.channels.names_like(kind, pattern);
  context.reply.array(names.size());
  for (const std::string& name : names) context.reply.bulk(name);
}

void count_subscribers(SessionContext& context, Args names, ChannelKind kind) {
  context.reply.array(2 * names.size());
  for (const std::string_view name : names) {
    context.reply.bulk(name);
    context.reply.integer(static_cast<int64_t>(context.channels.subscribers(kind, name)));
  }
}

void pubsub_channels(SessionContext& context, Args args) {
  list_channels(context, args, ChannelKind::kChannel);
}
void pubsub_shardchannels(SessionContext& context, Args args) {
  list_channels(context, args, ChannelKind::kShard);
}
void pubsub_numsub(SessionContext& context, Args args) {
  count_subscribers(context, args.subspan(2), ChannelKind::kChannel);
}
void pubsub_shardnumsub(SessionContext& context, Args args) {
  count_subscribers(context, args.subspan(2), ChannelKind::kShard);
}
void pubsub_numpat(SessionContext& context, Args) {
  context.reply.integer(static_cast<int64_t>(context.channels.size(ChannelKind::kPattern)));
}

void pubsub_help(SessionContext& context, Args) {
  contract::reply_help(
      context.reply, "PUBSUB",
      {"CHANNELS [<pattern>]",
       "    Return the currently active channels matching a <pattern> (default: '*').", "NUMPAT",
       "    Return number of subscriptions to patterns.", "NUMSUB [<channel> ...]",
       "    Return the number of subscribers for the specified channels, excluding",
       "    pattern subscriptions(default: no channels).", "SHARDCHANNELS [<pattern>]",
       "    Return the currently active shard level channels matching a <pattern> (default: '*').",
       "SHARDNUMSUB [<shardchannel> ...]",
       "    Return the number of subscribers for the specified shard level channel(s)"});
}

constexpr uint32_t kAsking = flag::kPubsub | flag::kLoading | flag::kStale;
constexpr uint32_t kListening = kAsking | flag::kNoScript;
constexpr uint32_t kTelling = kAsking | flag::kFast | flag::kMayReplicate;

constexpr CommandRow kSubcommandTable[] = {
    {.name = "channels",
     .arity = -2,
     .flags = kAsking,
     .since = "2.8.0",
     .complexity = "O(N), N being the channels that somebody listens to",
     .summary = "The channels that somebody listens to",
     .arguments = "pattern:pattern?",
     .handler = pubsub_channels,
     .offload = true},
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "A short text about each subcommand",
     .handler = pubsub_help},
    {.name = "numpat",
     .arity = 2,
     .flags = kAsking,
     .since = "2.8.0",
     .complexity = "O(1)",
     .summary = "How many different patterns are listened to",
     .handler = pubsub_numpat},
    {.name = "numsub",
     .arity = -2,
     .flags = kAsking,
     .since = "2.8.0",
     .complexity = "O(N log M), N being the channels named, M those that are listened to",
     .summary = "How many clients listen to each of these channels, by its name",
     .arguments = "channel:string?*",
     .handler = pubsub_numsub},
    {.name = "shardchannels",
     .arity = -2,
     .flags = kAsking,
     .since = "7.0.0",
     .complexity = "O(N), N being the shard channels that somebody listens to",
     .summary = "The shard channels that somebody listens to",
     .arguments = "pattern:pattern?",
     .handler = pubsub_shardchannels,
     .offload = true},
    {.name = "shardnumsub",
     .arity = -2,
     .flags = kAsking,
     .since = "7.0.0",
     .complexity = "O(N log M), N being the channels named, M those that are listened to",
     .summary = "How many clients listen to each of these shard channels",
     .arguments = "shardchannel:string?*",
     .handler = pubsub_shardnumsub},
};
constexpr auto kSubcommands = contract::family(kPubsubFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "psubscribe",
     .arity = -2,
     .flags = kListening,
     .since = "2.0.0",
     .complexity = "O(N log M), N being the patterns named, M those that are listened to",
     .summary = "Listen to all channels that match these patterns",
     .arguments = "pattern:block*(pattern:pattern)",
     .handler = psubscribe,
     .channels = contract::ChannelArguments::kAllPatterns,
     .pushes = true,
     .from_subscribers = true},
    {.name = "publish",
     .arity = 3,
     .flags = kTelling,
     .since = "2.0.0",
     .complexity = "O(N+M), N being the clients that listen, M the patterns that may match",
     .summary = "Send a message to all who listen to a channel",
     .arguments = "channel:string message:string",
     .handler = publish,
     .channels = contract::ChannelArguments::kFirst},
    {.name = "pubsub",
     .arity = -2,
     .since = "2.8.0",
     .complexity = "That of the subcommand",
     .summary = "Commands about who listens to what",
     .subcommands = kSubcommands},
    {.name = "punsubscribe",
     .arity = -1,
     .flags = kListening,
     .since = "2.0.0",
     .complexity = "O(N log M), N being the patterns named, M those that are listened to",
     .summary = "Listen to these patterns no more, or to none at all",
     .arguments = "pattern:pattern?*",
     .handler = punsubscribe,
     .pushes = true,
     .from_subscribers = true},
    {.name = "spublish",
     .arity = 3,
     .flags = kTelling,
     .keys = {key_at(1, key::kNotKey)},
     .since = "7.0.0",
     .complexity = "O(N), N being the clients that listen",
     .summary = "Send a message to all who listen to a shard channel",
     .arguments = "shardchannel:string message:string",
     .handler = spublish,
     .channels = contract::ChannelArguments::kFirst},
    {.name = "ssubscribe",
     .arity = -2,
     .flags = kListening,
     .keys = {keys_between(1, -1, 1, key::kNotKey)},
     .since = "7.0.0",
     .complexity = "O(N log M), N being the channels named, M those that are listened to",
     .summary = "Listen to these shard channels",
     .arguments = "shardchannel:string*",
     .handler = ssubscribe,
     .channels = contract::ChannelArguments::kAll,
     .pushes = true,
     .from_subscribers = true},
    {.name = "subscribe",
     .arity = -2,
     .flags = kListening,
     .since = "2.0.0",
     .complexity = "O(N log M), N being the channels named, M those that are listened to",
     .summary = "Listen to these channels",
     .arguments = "channel:string*",
     .handler = subscribe,
     .channels = contract::ChannelArguments::kAll,
     .pushes = true,
     .from_subscribers = true},
    {.name = "sunsubscribe",
     .arity = -1,
     .flags = kListening,
     .keys = {keys_between(1, -1, 1, key::kNotKey)},
     .since = "7.0.0",
     .complexity = "O(N log M), N being the channels named, M those that are listened to",
     .summary = "Listen to these shard channels no more, or to none at all",
     .arguments = "shardchannel:string?*",
     .handler = sunsubscribe,
     .pushes = true,
     .from_subscribers = true},
    {.name = "unsubscribe",
     .arity = -1,
     .flags = kListening,
     .since = "2.0.0",
     .complexity = "O(N log M), N being the channels named, M those that are listened to",
     .summary = "Listen to these channels no more, or to none at all",
     .arguments = "channel:string?*",
     .handler = unsubscribe,
     .pushes = true,
     .from_subscribers = true},
};
constexpr auto kRows = contract::family(kPubsubFamily, kTable);

}  // namespace

std::span<const CommandRow> pubsub_rows() {
  return kRows;
}

}  // namespace ingot::commands
