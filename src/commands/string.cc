// Whole strings: SET, GET and their relatives.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "src/commands/element_reply.h"
#include "src/commands/families.h"
#include "src/commands/long_string.h"
#include "src/commands/string_options.h"
#include "src/contract/thresholds.h"
#include "src/data/view.h"
#include "src/types/string_value.h"

namespace ingot::commands {
namespace {

using types::is_string;
using types::Record;

// A bulk string or null; false when the key holds something else, which is answered as an error.
template <typename Context>
bool reply_value(Context& ctx, std::string_view key, Record* record, bool* found) {
  *found = ctx.keys.find(ctx.db, key, record);
  if constexpr (std::is_same_v<Context, WriteContext>) ctx.keys.tell_lookup(ctx.db, key, *found);
  if (!*found) {
    ctx.reply.null();
    return true;
  }
  if (!is_string(*record)) {
    ctx.reply.error(contract::error::kWrongType);
    return false;
  }
  reply_string(ctx, *record);
  return true;
}

void get(ReadContext& ctx, Args args) {
  Record record;
  bool found;
  reply_value(ctx, args[1], &record, &found);
}

// Those of values that stand in their records are read again, a run of them from one stream.
void stream_values(ReadContext& ctx, Args keys) {
  if (keys.empty()) return;
  stream_answers(ctx, keys,
                 [view = ctx.view, db = ctx.db, now_ms = ctx.now_ms()](
                     storage::Reader& data, std::string_view key, ReplySink& reply) {
                   types::KeyReader reader(data, view->databases(), now_ms, nullptr);
                   Record record;
                   const bool there = reader.peek(db, key, &record) && is_string(record);
                   there ? reply.bulk(record.payload()) : reply.null();
                 });
}

void mget(ReadContext& ctx, Args args) {
  ctx.reply.array(args.size() - 1);
  uint64_t held_max = contract::kHeldStringsBytes;  // by all long values together
  uint64_t held = 0;                                // of the others
  size_t streamed = 0;                              // where the run begins; 0: there is none
  for (size_t i = 1; i < args.size(); ++i) {
    Record record;
    const bool there = ctx.keys.find(ctx.db, args[i], &record) && is_string(record);
    const uint64_t bytes = there ? types::string_length(record) : 0;
    if (there && record.collection()) {
      if (streamed != 0) stream_values(ctx, args.subspan(streamed, i - streamed));
      streamed = 0;
      reply_string(ctx, record, 0, bytes, held_max);
      if (bytes <= held_max) held_max -= bytes;
    } else if (streamed == 0) {
      held += bytes;
      if (held > contract::kHeldValuesBytes && can_stream(ctx)) {
        streamed = i;
      } else {
        there ? ctx.reply.bulk(record.payload()) : ctx.reply.null();
      }
    }
    if (ctx.keys.data().failed()) return;
  }
  if (streamed != 0) stream_values(ctx, args.subspan(streamed));
}

// Whether it matters what the key held.
bool depends_on_old(const StringOptions& options) {
  return options.get || options.nx || options.xx || options.keep_ttl;
}

uint32_t set_key_flags(Args args) {
  StringOptions options;
  if (!parse_string_options(args.subspan(3), OptionsOf::kSet, &options)) {
    options.get = std::ranges::any_of(args.subspan(3), [](std::string_view word) {
      return contract::equals_ignore_case(word, "get");
    });
  }
  if (options.get) return key::kRw | key::kAccess | key::kUpdate;
  if (depends_on_old(options)) return key::kOw | key::kUpdate;
  return key::kOw | key::kUpdate | key::kUnread;
}

void tell_set(WriteContext& ctx, std::string_view name, bool with_expiry) {
  ctx.keys.notify(notify::kString, "set", ctx.db, name);
  if (with_expiry) ctx.keys.notify(notify::kGeneric, "expire", ctx.db, name);
}

// A time of expiry is told in Unix milliseconds, and then nothing else.
void tell_replicas_set(WriteContext& ctx, Args args, const StringOptions& options,
                       int64_t expire_ms) {
  if (options.expiry.given()) {
    return ctx.tell({"SET", args[1], args[2], "PXAT", std::to_string(expire_ms)}, 2);
  }
  if (!options.get) return;
  std::vector<std::string_view> words(args.begin(), args.end());
  std::erase_if(words, [&](std::string_view& word) {
    return &word > &words[2] && contract::equals_ignore_case(word, "get");
  });
  ctx.tell(words, 2);
}

void set(WriteContext& ctx, Args args) {
  StringOptions options;
  if (!parse_string_options(args.subspan(3), OptionsOf::kSet, &options)) {
    return ctx.reply.error(contract::error::kSyntax);
  }
  std::optional<int64_t> expire_ms = options.expiry.resolve(ctx.now_ms(), "set", ctx.reply);
  if (!expire_ms) return;
  Record old;
  bool found;
  if (options.get) {
    if (!reply_value(ctx, args[1], &old, &found)) return;
  } else if (depends_on_old(options)) {
    found = ctx.keys.peek(ctx.db, args[1], &old);
  } else {
    found = ctx.keys.peek_overwritten(ctx.db, args[1], *expire_ms != 0, &old);
  }
  if (found ? options.nx : options.xx) {
    if (!options.get) ctx.reply.null();
    return;
  }
  if (options.keep_ttl && found) expire_ms = old.expire_ms();
  store_value(ctx, args[1], found ? &old : nullptr, args[2], *expire_ms);
  tell_set(ctx, args[1], options.expiry.given());
  if (ctx.tells()) tell_replicas_set(ctx, args, options, *expire_ms);
  if (!options.get) ctx.reply.ok();
}

void setnx(WriteContext& ctx, Args args) {
  Record old;
  const bool found = ctx.keys.peek(ctx.db, args[1], &old);
  if (!found) {
    store_value(ctx, args[1], nullptr, args[2], 0);
    tell_set(ctx, args[1], false);
  }
  ctx.reply.integer(found ? 0 : 1);
}

void set_with_time(WriteContext& ctx, Args args, const ExpiryOption& expiry,
                   std::string_view command) {
  const std::optional<int64_t> expire_ms = expiry.resolve(ctx.now_ms(), command, ctx.reply);
  if (!expire_ms) return;
  Record old;
  const bool found = ctx.keys.peek_overwritten(ctx.db, args[1], true, &old);
  store_value(ctx, args[1], found ? &old : nullptr, args[3], *expire_ms);
  tell_set(ctx, args[1], true);
  if (ctx.tells()) ctx.tell({"SET", args[1], args[3], "PXAT", std::to_string(*expire_ms)}, 2);
  ctx.reply.ok();
}

void setex(WriteContext& ctx, Args args) {
  set_with_time(ctx, args, {.unit = ExpiryOption::Unit::kSeconds, .text = args[2]}, "setex");
}

void psetex(WriteContext& ctx, Args args) {
  set_with_time(ctx, args, {.unit = ExpiryOption::Unit::kMilliseconds, .text = args[2]}, "psetex");
}

void getset(WriteContext& ctx, Args args) {
  Record old;
  bool found;
  if (!reply_value(ctx, args[1], &old, &found)) return;
  store_value(ctx, args[1], found ? &old : nullptr, args[2], 0);
  tell_set(ctx, args[1], false);
  ctx.tell({"SET", args[1], args[2]}, 2);
}

void getdel(WriteContext& ctx, Args args) {
  Record old;
  bool found;
  if (!reply_value(ctx, args[1], &old, &found)) return;
  if (!found) return;
  ctx.keys.remove(ctx.db, args[1], old);
  ctx.keys.notify(notify::kGeneric, "del", ctx.db, args[1]);
  ctx.tell({"DEL", args[1]});
}

void getex(WriteContext& ctx, Args args) {
  StringOptions options;
  if (!parse_string_options(args.subspan(2), OptionsOf::kGetex, &options)) {
    return ctx.reply.error(contract::error::kSyntax);
  }
  Record record;
  const bool found = ctx.keys.find(ctx.db, args[1], &record);
  ctx.keys.tell_lookup(ctx.db, args[1], found);
  if (!found) return ctx.reply.null();
  if (!is_string(record)) return ctx.reply.error(contract::error::kWrongType);
  const std::optional<int64_t> expire_ms = options.expiry.resolve(ctx.now_ms(), "getex", ctx.reply);
  if (!expire_ms) return;
  reply_string(ctx, record);
  if (options.expiry.is_absolute() && *expire_ms <= ctx.keys.expired_by_ms()) {
    ctx.keys.remove(ctx.db, args[1], record);
    ctx.tell({"DEL", args[1]});
    return ctx.keys.notify(notify::kGeneric, "del", ctx.db, args[1]);
  }
  if (!options.expiry.given() && !(options.persist && record.expire_ms() != 0)) return;
  storage::Metadata after = record.metadata();
  after.expire_ms = *expire_ms;
  ctx.keys.store(ctx.db, args[1], &record, after);
  ctx.keys.notify(notify::kGeneric, options.persist ? "persist" : "expire", ctx.db, args[1]);
  if (options.persist) return ctx.tell({"PERSIST", args[1]});
  if (ctx.tells()) ctx.tell({"PEXPIREAT", args[1], std::to_string(*expire_ms)});
}

void set_pairs(WriteContext& ctx, Args pairs) {
  for (size_t i = 0; i < pairs.size(); i += 2) {
    Record old;
    const bool found = ctx.keys.peek_overwritten(ctx.db, pairs[i], false, &old);
    types::store_string(ctx.keys, ctx.db, pairs[i], found ? &old : nullptr, pairs[i + 1], 0);
    tell_set(ctx, pairs[i], false);
  }
}

void mset(WriteContext& ctx, Args args) {
  if (args.size() % 2 == 0) return ctx.reply.error(contract::wrong_arity_error("mset"));
  set_pairs(ctx, args.subspan(1));
  ctx.reply.ok();
}

void msetnx(WriteContext& ctx, Args args) {
  if (args.size() % 2 == 0) return ctx.reply.error(contract::wrong_arity_error("msetnx"));
  for (size_t i = 1; i < args.size(); i += 2) {
    Record old;
    if (ctx.keys.peek(ctx.db, args[i], &old)) return ctx.reply.integer(0);
  }
  set_pairs(ctx, args.subspan(1));
  ctx.reply.integer(1);
}

constexpr CommandRow kTable[] = {
    {.name = "get",
     .arity = 2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {contract::key_at(1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Answer the string of a key",
     .arguments = "key:key#0",
     .handler = get},
    {.name = "mget",
     .arity = -2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {contract::keys_between(1, -1, 1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(N) with N keys",
     .summary = "Answer the strings of several keys, all as they are at one moment",
     .tips = "request_policy:multi_shard",
     .arguments = "key:key#0*",
     .handler = mget},
    {.name = "set",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {{.flags = key::kRw | key::kAccess | key::kUpdate | key::kVariableFlags,
               .begin = 1,
               .last = 0,
               .step = 1,
               .limit = 0,
               .notes = "With GET the old value is read, too"}},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Make a string the value of a key, whatever it held before",
     .history = "2.6.12: `EX`, `PX`, `NX` and `XX`.; 6.0.0: `KEEPTTL`.; 6.2.0: `GET`, `EXAT` and "
                "`PXAT`.; 7.0.0: `NX` together with `GET`.",
     .arguments =
         "key:key#0 value:string condition:oneof@2.6.12?(nx:pure-token=NX xx:pure-token=XX) "
         "get:pure-token=GET@6.2.0? expiration:oneof?(seconds:integer=EX@2.6.12 "
         "milliseconds:integer=PX@2.6.12 unix-time-seconds:unix-time=EXAT@6.2.0 "
         "unix-time-milliseconds:unix-time=PXAT@6.2.0 keepttl:pure-token=KEEPTTL@6.0.0)",
     .handler = set,
     .key_flags = set_key_flags,
     .value_index = 2},
    {.name = "setnx",
     .arity = 3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {contract::key_at(1, key::kOw | key::kInsert)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Set a string unless the key exists",
     .arguments = "key:key#0 value:string",
     .handler = setnx,
     .value_index = 2},
    {.name = "setex",
     .arity = 4,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {contract::key_at(1, key::kOw | key::kUpdate | key::kUnread)},
     .since = "2.0.0",
     .complexity = "O(1)",
     .summary = "Set a string that expires after some seconds",
     .arguments = "key:key#0 seconds:integer value:string",
     .handler = setex,
     .value_index = 3},
    {.name = "psetex",
     .arity = 4,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {contract::key_at(1, key::kOw | key::kUpdate | key::kUnread)},
     .since = "2.6.0",
     .complexity = "O(1)",
     .summary = "Set a string that expires after some milliseconds",
     .arguments = "key:key#0 milliseconds:integer value:string",
     .handler = psetex,
     .value_index = 3},
    {.name = "getset",
     .arity = 3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {contract::key_at(1, key::kRw | key::kAccess | key::kUpdate)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Set a string and answer the one before",
     .deprecated_since = "6.2.0",
     .replaced_by = "`SET` with the `!GET` argument",
     .arguments = "key:key#0 value:string",
     .handler = getset,
     .value_index = 2},
    {.name = "getdel",
     .arity = 2,
     .flags = flag::kWrite | flag::kFast,
     .keys = {contract::key_at(1, key::kRw | key::kAccess | key::kDelete)},
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "Answer the string of a key and remove the key",
     .arguments = "key:key#0",
     .handler = getdel},
    {.name = "getex",
     .arity = -2,
     .flags = flag::kWrite | flag::kFast,
     .keys = {{.flags = key::kRw | key::kAccess | key::kUpdate,
               .begin = 1,
               .last = 0,
               .step = 1,
               .limit = 0,
               .notes = "It may change when the key expires"}},
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "Answer the string of a key and change when the key expires",
     .arguments = "key:key#0 expiration:oneof?(seconds:integer=EX milliseconds:integer=PX "
                  "unix-time-seconds:unix-time=EXAT unix-time-milliseconds:unix-time=PXAT "
                  "persist:pure-token=PERSIST)",
     .handler = getex},
    {.name = "mset",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {contract::keys_between(1, -1, 2, key::kOw | key::kUpdate | key::kUnread)},
     .since = "1.0.1",
     .complexity = "O(N) with N keys",
     .summary = "Set the strings of several keys at once",
     .tips = "request_policy:multi_shard,response_policy:all_succeeded",
     .arguments = "key_value:block*(key:key#0 value:string)",
     .handler = mset},
    {.name = "msetnx",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {contract::keys_between(1, -1, 2, key::kOw | key::kInsert)},
     .since = "1.0.1",
     .complexity = "O(N) with N keys",
     .summary = "Set the strings of several keys at once, unless one of the keys exists",
     .tips = "request_policy:multi_shard,response_policy:agg_min",
     .arguments = "key_value:block*(key:key#0 value:string)",
     .handler = msetnx},
};
constexpr auto kRows = contract::family(kStringFamily, kTable);

}  // namespace

std::span<const CommandRow> string_rows() {
  return kRows;
}

}  // namespace ingot::commands
