// OBJECT: how a value is kept and when it was used.
#include <limits>
#include <optional>
#include <string>

#include "src/commands/families.h"
#include "src/commands/value_facts.h"
#include "src/contract/help.h"
#include "src/settings/config.h"
#include "src/types/access_clock.h"
#include "src/types/collection.h"

namespace ingot::commands {
namespace {

using types::Record;

bool policy_is_lfu(ReadContext& ctx) {
  return settings::counts_uses(ctx.config.settings()->maxmemory_policy);
}

// Redis answers null for a key that is not there.
bool look_up(ReadContext& ctx, Args args, Record* record) {
  const bool found = ctx.keys.peek(ctx.db, args[2], record);
  ++(found ? ctx.keys.hits : ctx.keys.misses);  // but it is no event
  if (found) return true;
  ctx.reply.null();
  return false;
}

void encoding(ReadContext& ctx, Args args) {
  Record record;
  if (look_up(ctx, args, &record)) ctx.reply.bulk(types::encoding_name(record));
}

void refcount(ReadContext& ctx, Args args) {
  Record record;
  if (!look_up(ctx, args, &record)) return;
  ctx.reply.integer(reference_count(record));
}

void idletime(ReadContext& ctx, Args args) {
  Record record;
  if (!look_up(ctx, args, &record)) return;
  if (policy_is_lfu(ctx)) {
    return ctx.reply.error(
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when "
        "switching between policies at runtime LRU and LFU data will take some time to adjust.");
  }
  ctx.reply.integer(idle_seconds(ctx, args[2]));
}

void freq(ReadContext& ctx, Args args) {
  Record record;
  if (!look_up(ctx, args, &record)) return;
  if (!policy_is_lfu(ctx)) {
    return ctx.reply.error(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note "
        "that when switching between policies at runtime LRU and LFU data will take some time to "
        "adjust.");
  }
  types::AccessClock* const access = ctx.keys.access();
  ctx.reply.integer(
      access == nullptr ? 0 : access->frequency(ctx.keys.keyspace(ctx.db), args[2], ctx.now_ms()));
}

void help(SessionContext& ctx, Args) {
  contract::reply_help(ctx.reply, "OBJECT",
                       {"ENCODING <key>",
                        "    Return the kind of internal representation used in order to store the "
                        "value",
                        "    associated with a <key>.", "FREQ <key>",
                        "    Return the access frequency index of the <key>. The returned integer "
                        "is",
                        "    proportional to the logarithm of the recent access frequency of the "
                        "key.",
                        "IDLETIME <key>",
                        "    Return the idle time of the <key>, that is the approximated number of",
                        "    seconds elapsed since the last access to the key.", "REFCOUNT <key>",
                        "    Return the number of references of the value associated with the "
                        "specified",
                        "    <key>."});
}

constexpr CommandRow kSubcommandTable[] = {
    {.name = "encoding",
     .arity = 3,
     .flags = flag::kReadonly,
     .keys = {key_at(2, key::kRo)},
     .since = "2.2.3",
     .complexity = "O(1)",
     .summary = "How the value is kept",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0",
     .handler = encoding},
    {.name = "freq",
     .arity = 3,
     .flags = flag::kReadonly,
     .keys = {key_at(2, key::kRo)},
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "How often the key is used, where that is counted",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0",
     .handler = freq},
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "What the subcommands are for",
     .handler = help,
     .immediate = true},
    {.name = "idletime",
     .arity = 3,
     .flags = flag::kReadonly,
     .keys = {key_at(2, key::kRo)},
     .since = "2.2.3",
     .complexity = "O(1)",
     .summary = "Seconds since the key was used",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0",
     .handler = idletime},
    {.name = "refcount",
     .arity = 3,
     .flags = flag::kReadonly,
     .keys = {key_at(2, key::kRo)},
     .since = "2.2.3",
     .complexity = "O(1)",
     .summary = "How many share the value, in Redis' terms",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0",
     .handler = refcount},
};
constexpr auto kSubcommands = contract::family(kGenericFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "object",
     .arity = -2,
     .since = "2.2.3",
     .complexity = "That of the subcommand",
     .summary = "What lies behind a value",
     .subcommands = kSubcommands},
};
constexpr auto kRows = contract::family(kGenericFamily, kTable);

}  // namespace

int64_t reference_count(const Record& record) {
  constexpr int64_t kSharedIntegers = 10000;
  constexpr int64_t kShared = std::numeric_limits<int32_t>::max();
  if (types::encoding_name(record) != "int") return 1;
  const std::optional<int64_t> value = contract::parse_integer(record.payload());
  return value && *value >= 0 && *value < kSharedIntegers ? kShared : 1;
}

int64_t idle_seconds(ReadContext& ctx, std::string_view key) {
  types::AccessClock* access = ctx.keys.access();
  if (access == nullptr) return 0;
  return access->idle_seconds(ctx.keys.keyspace(ctx.db), key, ctx.now_ms());
}

std::span<const CommandRow> object_rows() {
  return kRows;
}

}  // namespace ingot::commands
