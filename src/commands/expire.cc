// When keys expire: EXPIRE and its relatives, TTL and its relatives, PERSIST.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/expiry_time.h"
#include "src/commands/families.h"
#include "src/commands/look_at.h"

namespace ingot::commands {
namespace {

using types::Record;

// When a change of an expiry is wanted.
struct Conditions {
  bool only_without = false;  // NX
  bool only_with = false;     // XX
  bool only_later = false;    // GT
  bool only_earlier = false;  // LT

  bool hold(int64_t old_ms, int64_t new_ms) const {
    if (only_without && old_ms != 0) return false;
    if (only_with && old_ms == 0) return false;
    // No expiry is later than any.
    if (only_later && (old_ms == 0 || new_ms <= old_ms)) return false;
    return !(only_earlier && old_ms != 0 && new_ms >= old_ms);
  }
};

// Reads the options behind the time; nothing when an error was answered.
std::optional<Conditions> read_conditions(WriteContext& ctx, Args args) {
  Conditions conditions;
  ArgReader options(args, 3);
  while (options.flag({{"nx", &conditions.only_without},
                       {"xx", &conditions.only_with},
                       {"gt", &conditions.only_later},
                       {"lt", &conditions.only_earlier}})) {
  }
  if (options.more()) {
    ctx.reply.error("ERR Unsupported option " + std::string(options.text()));
    return std::nullopt;
  }
  bool others = conditions.only_with || conditions.only_later || conditions.only_earlier;
  if (conditions.only_without && others) {
    ctx.reply.error("ERR NX and XX, GT or LT options at the same time are not compatible");
    return std::nullopt;
  }
  if (conditions.only_later && conditions.only_earlier) {
    ctx.reply.error("ERR GT and LT options at the same time are not compatible");
    return std::nullopt;
  }
  return conditions;
}

// With the conditions, which hold there, too.
void tell_time(WriteContext& ctx, Args args, int64_t when_ms) {
  const std::string time = std::to_string(when_ms);
  std::vector<std::string_view> words = {"PEXPIREAT", args[1], time};
  words.insert(words.end(), args.begin() + 3, args.end());
  ctx.tell(words);
}

void set_expiry(WriteContext& ctx, Args args, const TimeForm& form) {
  std::optional<Conditions> conditions = read_conditions(ctx, args);
  if (!conditions) return;
  std::optional<int64_t> when_ms = expiry_time(ctx, args[2], form);
  if (!when_ms) return;
  Record record;
  if (!ctx.keys.find(ctx.db, args[1], &record)) return ctx.reply.integer(0);
  if (!conditions->hold(record.expire_ms(), *when_ms)) return ctx.reply.integer(0);
  if (*when_ms <= ctx.keys.expired_by_ms()) {
    ctx.keys.remove(ctx.db, args[1], record);
    ctx.keys.notify(notify::kGeneric, "del", ctx.db, args[1]);
    ctx.tell({"DEL", args[1]});
  } else {
    storage::Metadata metadata = record.metadata();
    metadata.expire_ms = *when_ms;
    ctx.keys.store(ctx.db, args[1], &record, metadata);
    ctx.keys.notify(notify::kGeneric, "expire", ctx.db, args[1]);
    if (ctx.tells()) tell_time(ctx, args, *when_ms);
  }
  ctx.reply.integer(1);
}

void expire(WriteContext& ctx, Args args) {
  set_expiry(ctx, args, {.command = "expire", .unit_ms = 1000, .is_absolute = false});
}
void pexpire(WriteContext& ctx, Args args) {
  set_expiry(ctx, args, {.command = "pexpire", .unit_ms = 1, .is_absolute = false});
}
void expireat(WriteContext& ctx, Args args) {
  set_expiry(ctx, args, {.command = "expireat", .unit_ms = 1000, .is_absolute = true});
}
void pexpireat(WriteContext& ctx, Args args) {
  set_expiry(ctx, args, {.command = "pexpireat", .unit_ms = 1, .is_absolute = true});
}

void persist(WriteContext& ctx, Args args) {
  Record record;
  if (!ctx.keys.find(ctx.db, args[1], &record) || record.expire_ms() == 0) {
    return ctx.reply.integer(0);
  }
  storage::Metadata metadata = record.metadata();
  metadata.expire_ms = 0;
  ctx.keys.store(ctx.db, args[1], &record, metadata);
  ctx.keys.notify(notify::kGeneric, "persist", ctx.db, args[1]);
  ctx.reply.integer(1);
}

// -2: no such key, -1: it never expires; else when, or how long from `since_ms` on, in units.
void reply_expiry(ReadContext& ctx, Args args, int64_t unit_ms, int64_t since_ms) {
  Record record;
  if (!look_at(ctx.keys, ctx.db, args[1], &record)) return ctx.reply.integer(-2);
  if (record.expire_ms() == 0) return ctx.reply.integer(-1);
  // Seconds are rounded; unsigned, because the largest time has no room for it.
  auto ms = static_cast<uint64_t>(std::max<int64_t>(0, record.expire_ms() - since_ms));
  if (unit_ms != 1) ms = (ms + 500) / static_cast<uint64_t>(unit_ms);
  ctx.reply.integer(static_cast<int64_t>(ms));
}

void ttl(ReadContext& ctx, Args args) {
  reply_expiry(ctx, args, 1000, ctx.now_ms());
}
void pttl(ReadContext& ctx, Args args) {
  reply_expiry(ctx, args, 1, ctx.now_ms());
}
void expiretime(ReadContext& ctx, Args args) {
  reply_expiry(ctx, args, 1000, 0);
}
void pexpiretime(ReadContext& ctx, Args args) {
  reply_expiry(ctx, args, 1, 0);
}

constexpr CommandRow kTable[] = {
    {.name = "expire",
     .arity = -3,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Let a key expire after some seconds",
     .history = "7.0.0: Added options: `NX`, `XX`, `GT` and `LT`.",
     .arguments = "key:key#0 seconds:integer condition:oneof@7.0.0?(nx:pure-token=NX "
                  "xx:pure-token=XX gt:pure-token=GT lt:pure-token=LT)",
     .handler = expire},
    {.name = "expireat",
     .arity = -3,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "1.2.0",
     .complexity = "O(1)",
     .summary = "Let a key expire at a time in seconds",
     .history = "7.0.0: Added options: `NX`, `XX`, `GT` and `LT`.",
     .arguments = "key:key#0 unix-time-seconds:unix-time condition:oneof@7.0.0?(nx:pure-token=NX "
                  "xx:pure-token=XX gt:pure-token=GT lt:pure-token=LT)",
     .handler = expireat},
    {.name = "expiretime",
     .arity = 2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "7.0.0",
     .complexity = "O(1)",
     .summary = "When a key expires, in seconds",
     .arguments = "key:key#0",
     .handler = expiretime},
    {.name = "persist",
     .arity = 2,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "2.2.0",
     .complexity = "O(1)",
     .summary = "Let a key never expire",
     .arguments = "key:key#0",
     .handler = persist},
    {.name = "pexpire",
     .arity = -3,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "2.6.0",
     .complexity = "O(1)",
     .summary = "Let a key expire after some milliseconds",
     .history = "7.0.0: Added options: `NX`, `XX`, `GT` and `LT`.",
     .arguments = "key:key#0 milliseconds:integer condition:oneof@7.0.0?(nx:pure-token=NX "
                  "xx:pure-token=XX gt:pure-token=GT lt:pure-token=LT)",
     .handler = pexpire},
    {.name = "pexpireat",
     .arity = -3,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "2.6.0",
     .complexity = "O(1)",
     .summary = "Let a key expire at a time in milliseconds",
     .history = "7.0.0: Added options: `NX`, `XX`, `GT` and `LT`.",
     .arguments =
         "key:key#0 unix-time-milliseconds:unix-time condition:oneof@7.0.0?(nx:pure-token=NX "
         "xx:pure-token=XX gt:pure-token=GT lt:pure-token=LT)",
     .handler = pexpireat},
    {.name = "pexpiretime",
     .arity = 2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "7.0.0",
     .complexity = "O(1)",
     .summary = "When a key expires, in milliseconds",
     .arguments = "key:key#0",
     .handler = pexpiretime},
    {.name = "pttl",
     .arity = 2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.6.0",
     .complexity = "O(1)",
     .summary = "How long a key still lives, in milliseconds",
     .history = "2.8.0: Added the -2 reply.",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0",
     .handler = pttl},
    {.name = "ttl",
     .arity = 2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "How long a key still lives, in seconds",
     .history = "2.8.0: Added the -2 reply.",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0",
     .handler = ttl},
};
constexpr auto kRows = contract::family(kGenericFamily, kTable);

}  // namespace

std::span<const CommandRow> expire_rows() {
  return kRows;
}

}  // namespace ingot::commands
