// PSYNC, SYNC and REPLCONF: a client that follows this server's changes.
#include <fmt/format.h>

#include <span>

#include "src/commands/families.h"
#include "src/contract/args.h"
#include "src/contract/replicas.h"
#include "src/contract/running_server.h"

namespace ingot::commands {
namespace {

using contract::Args;
using contract::Replica;
using contract::SessionContext;

void follow(SessionContext& ctx, contract::FollowRequest request) {
  if (ctx.client.follows) return;  // as in Redis
  std::string error;
  auto body = ctx.server.follow(ctx.client, std::move(request), &error);
  if (body == nullptr) return ctx.reply.error(error);
  ctx.reply.elements(std::move(body));
}

// A master in a failover makes this replica lead, which has its data. False: it does not.
bool take_over(SessionContext& ctx, std::string_view id) {
  if (!ctx.server.master_link()) {
    ctx.reply.error("ERR PSYNC FAILOVER can't be sent to a master.");
    return false;
  }
  if (!contract::equals_ignore_case(id, ctx.server.replication_id())) {
    ctx.reply.error("ERR PSYNC FAILOVER replid must match my replid.");
    return false;
  }
  ctx.server.follow_nobody();
  return true;
}

// The offset is that of the first byte that is wanted; -1: all of the data.
void psync(SessionContext& ctx, Args args) {
  const std::optional<int64_t> offset = contract::parse_integer(args[2]);
  if (!offset) return ctx.reply.error(contract::error::kNotInteger);
  if (args.size() > 3 && contract::equals_ignore_case(args[3], "failover") && !ctx.client.follows &&
      !take_over(ctx, args[1])) {
    return;
  }
  contract::FollowRequest request{.is_psync = true, .id = std::string(args[1]), .offset = {}};
  if (*offset > 0) request.offset = static_cast<uint64_t>(*offset) - 1;
  follow(ctx, std::move(request));
}

void sync(SessionContext& ctx, Args) {
  follow(ctx, {.is_psync = false, .id = {}, .offset = {}});
}

// Of an RDB: nothing but what the text names. False: it names what nobody has.
bool filter_rdb(std::string_view text, Replica& replica) {
  replica.wants_data = replica.wants_functions = false;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (contract::equals_ignore_case(word, "functions")) {
      replica.wants_functions = true;
    } else if (!word.empty()) {
      return false;
    }
  }
  return true;
}

void acknowledge(SessionContext& ctx, uint64_t offset, std::optional<uint64_t> synced) {
  if (!ctx.client.follows) return;
  Replica& replica = *ctx.client.replica;
  // Nobody has what was not told: who says so would be counted among those who have what is yet to
  // come.
  const uint64_t told = ctx.server.replicas().told;
  if (offset <= told) replica.acked = std::max(replica.acked.load(), offset);
  if (synced && *synced <= told) replica.synced = std::max(replica.synced.load(), *synced);
  replica.acked_ms = ctx.server.now_ms();
  if (replica.state == Replica::State::kLoads) {
    replica.state = Replica::State::kOnline;
    if (replica.on_loaded) std::exchange(replica.on_loaded, {})();
  }
  ctx.server.replicas().on_ack();
}

// Pairs of an option and its value. What asks or acknowledges is not answered.
void replconf(SessionContext& ctx, Args args) {
  if (args.size() % 2 == 0) return ctx.reply.error(contract::error::kSyntax);
  if (!ctx.client.replica) ctx.client.replica = std::make_shared<Replica>();
  Replica& replica = *ctx.client.replica;
  const auto is = [](std::string_view word, std::string_view option) {
    return contract::equals_ignore_case(word, option);
  };
  for (size_t i = 1; i < args.size(); i += 2) {
    const std::string_view option = args[i];
    const std::string_view value = args[i + 1];
    const std::optional<int64_t> number = contract::parse_integer(value);
    if (is(option, "ack")) {
      std::optional<uint64_t> synced;
      if (i + 3 < args.size() && is(args[i + 2], "fack")) {
        synced = static_cast<uint64_t>(contract::parse_integer(args[i + 3]).value_or(0));
      }
      if (number && *number >= 0) acknowledge(ctx, static_cast<uint64_t>(*number), synced);
      return;
    }
    if (is(option, "getack")) return;  // of a master, which we do not follow by this connection
    // From here on it is told what it cannot change any more.
    if (ctx.client.follows) continue;
    if (is(option, "listening-port")) {
      if (!number) return ctx.reply.error(contract::error::kNotInteger);
      replica.port = static_cast<int>(*number);
    } else if (is(option, "ip-address")) {
      constexpr size_t kAddressMax = 255;
      if (value.size() >= kAddressMax) {
        return ctx.reply.error(fmt::format(
            "ERR REPLCONF ip-address provided by replica instance is too long: {} bytes",
            value.size()));
      }
      replica.ip = value;
    } else if (is(option, "capa")) {
      if (is(value, "eof")) replica.takes_mark = true;
      if (is(value, "psync2")) replica.takes_new_id = true;
      if (is(value, "ingot")) replica.is_ingot = true;
    } else if (is(option, "rdb-only")) {
      if (!number) return ctx.reply.error(contract::error::kNotInteger);
      replica.wants_rdb_only = *number == 1;
    } else if (is(option, "rdb-filter-only")) {
      if (!filter_rdb(value, replica)) {
        return ctx.reply.error(fmt::format("ERR Unsupported rdb-filter-only option: {}", value));
      }
    } else {
      return ctx.reply.error(fmt::format("ERR Unrecognized REPLCONF option: {}", option));
    }
  }
  ctx.reply.ok();
}

constexpr uint32_t kFollowFlags =
    flag::kAdmin | flag::kNoScript | flag::kNoAsyncLoading | flag::kNoMulti;
constexpr CommandRow kTable[] = {
    {.name = "psync",
     .arity = -3,
     .flags = kFollowFlags,
     .since = "2.8.0",
     .complexity = contract::kNoComplexity,
     .summary = "Follow the changes of this server, from where one stands",
     .arguments = "replicationid:string offset:integer",
     .handler = psync,
     .pushes = true},
    {.name = "replconf",
     .arity = -1,
     .flags = flag::kAdmin | flag::kNoScript | flag::kLoading | flag::kStale | flag::kAllowBusy,
     .since = "3.0.0",
     .complexity = "O(1)",
     .summary = "What a replica says of itself and of how far it is",
     .handler = replconf,
     .is_internal = true},
    {.name = "sync",
     .arity = 1,
     .flags = kFollowFlags,
     .since = "1.0.0",
     .complexity = contract::kNoComplexity,
     .summary = "Follow the changes of this server, as it was done before Redis 2.8",
     .handler = sync,
     .pushes = true},
};
constexpr auto kRows = contract::family(kServerFamily, kTable);

}  // namespace

std::span<const CommandRow> psync_rows() {
  return kRows;
}

}  // namespace ingot::commands
