// Whole databases: counting, emptying and exchanging them, in constant time.
#include <optional>

#include "src/commands/families.h"
#include "src/settings/config.h"
#include "src/types/key_walk.h"

namespace ingot::commands {
namespace {

// Where the number is not settled, the keys are counted, unless the operator does without.
void dbsize(ReadContext& ctx, Args) {
  const storage::KeyCounts counts = ctx.keys.counts(ctx.db);
  uint64_t keys = counts.keys;
  // Not in the writer (an EXEC that writes), where everybody would wait.
  const bool may_walk = ctx.view && ctx.config.settings()->key_count == settings::KeyCount::kExact;
  if (!counts.settled && may_walk) {
    if (!ctx.keys.data().begin_walk()) return;
    keys = types::count_keys(ctx.keys.data(), ctx.keys.keyspace(ctx.db));
  }
  ctx.reply.integer(static_cast<int64_t>(keys));
}

// SYNC and ASYNC are the same here: emptying takes constant time, the space comes back later.
bool flush_options_fit(WriteContext& ctx, Args args) {
  contract::ArgReader reader(args);
  (void)(reader.word("sync") || reader.word("async"));
  if (!reader.done()) ctx.reply.error(reader.error());
  return !reader.failed();
}

void flushdb(WriteContext& ctx, Args args) {
  if (!flush_options_fit(ctx, args)) return;
  ctx.keys.flush(ctx.db);
  ctx.tell_unchanged();
  ctx.reply.ok();
}

void flushall(WriteContext& ctx, Args args) {
  if (!flush_options_fit(ctx, args)) return;
  for (size_t db = 0; db < ctx.keys.databases().size(); ++db) {
    ctx.keys.flush(static_cast<int>(db));
  }
  ctx.tell_unchanged();
  ctx.reply.ok();
}

// Nothing when it is no int.
std::optional<int64_t> parse_index(std::string_view text) {
  const std::optional<int64_t> index = contract::parse_integer(text);
  return index && *index >= INT32_MIN && *index <= INT32_MAX ? index : std::nullopt;
}

void swapdb(WriteContext& ctx, Args args) {
  const auto first = parse_index(args[1]);
  if (!first) return ctx.reply.error("ERR invalid first DB index");
  const auto second = parse_index(args[2]);
  if (!second) return ctx.reply.error("ERR invalid second DB index");
  const auto databases = static_cast<int64_t>(ctx.keys.databases().size());
  if (*first < 0 || *first >= databases || *second < 0 || *second >= databases) {
    return ctx.reply.error(contract::error::kDbOutOfRange);
  }
  if (*first != *second) ctx.keys.swap(static_cast<int>(*first), static_cast<int>(*second));
  ctx.changes = 1;
  ctx.tell_unchanged();
  ctx.reply.ok();
}

constexpr CommandRow kTable[] = {
    {.name = "dbsize",
     .arity = 1,
     .flags = flag::kReadonly | flag::kFast,
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "How many keys the database has",
     .tips = "request_policy:all_shards,response_policy:agg_sum",
     .handler = dbsize,
     .after_reads = true},
    {.name = "flushall",
     .arity = -1,
     .flags = flag::kWrite,
     .acl = acl::kDangerous,
     .since = "1.0.0",
     .complexity = "O(1) for each database",
     .summary = "Remove every key of every database",
     .history = "4.0.0: Added the `ASYNC` flushing mode modifier.; 6.2.0: Added the `SYNC` "
                "flushing mode modifier.",
     .tips = "request_policy:all_shards,response_policy:all_succeeded",
     .arguments = "async:oneof?(async:pure-token=ASYNC@4.0.0 sync:pure-token=SYNC@6.2.0)",
     .handler = flushall},
    {.name = "flushdb",
     .arity = -1,
     .flags = flag::kWrite,
     .acl = acl::kDangerous,
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Remove every key of the database",
     .history = "4.0.0: Added the `ASYNC` flushing mode modifier.; 6.2.0: Added the `SYNC` "
                "flushing mode modifier.",
     .tips = "request_policy:all_shards,response_policy:all_succeeded",
     .arguments = "async:oneof?(async:pure-token=ASYNC@4.0.0 sync:pure-token=SYNC@6.2.0)",
     .handler = flushdb},
    {.name = "swapdb",
     .arity = 3,
     .flags = flag::kWrite | flag::kFast,
     .acl = acl::kDangerous,
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "Let two databases change places",
     .arguments = "index1:integer index2:integer",
     .handler = swapdb},
};
constexpr auto kRows = contract::family({.group = "server", .acl = acl::kKeyspace}, kTable);

}  // namespace

std::span<const CommandRow> keyspace_admin_rows() {
  return kRows;
}

}  // namespace ingot::commands
