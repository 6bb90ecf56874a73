// DEBUG: what tests ask of a server. enable-debug-command decides who may (CommandRow::debug).
//
// One row for all, as in Redis: its subcommands are no commands of their own there.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "src/commands/chance.h"
#include "src/commands/families.h"
#include "src/commands/value_facts.h"
#include "src/contract/errors.h"
#include "src/contract/glob.h"
#include "src/contract/help.h"
#include "src/data/restored_value.h"
#include "src/metrics/log.h"
#include "src/settings/setting_values.h"
#include "src/types/collection.h"
#include "src/types/digest.h"
#include "src/types/string_value.h"

namespace ingot::commands {
namespace {

using contract::equals_ignore_case;
using types::Record;

void sleep(ReadContext& ctx, Args args) {
  constexpr double kSecondsMax = 1e9;
  const double seconds = std::strtod(std::string(args[2]).c_str(), nullptr);
  if (seconds > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, kSecondsMax)));
  }
  ctx.reply.ok();
}

void digest(ReadContext& ctx, Args) {
  const auto has_keys = [&](int db) { return !ctx.keys.counts(db).surely_empty(); };
  ctx.reply.simple(
      types::digest_text(types::dataset_digest(ctx.keys.data(), ctx.keys.databases(), has_keys)));
}

void digest_value(ReadContext& ctx, Args args) {
  ctx.reply.array(args.size() - 2);
  for (const std::string_view key : args.subspan(2)) {
    Record record;
    const bool found = ctx.keys.peek(ctx.db, key, &record);
    ctx.reply.simple(
        types::digest_text(found ? types::value_digest(ctx.keys.data(), record) : types::Digest{}));
  }
}

template <typename Integer>
bool fits(int64_t value) {
  return value >= std::numeric_limits<Integer>::min() &&
         value <= std::numeric_limits<Integer>::max();
}

// The bytes of the string in a dump of Redis that compresses nothing.
uint64_t serialized_length(const Record& record) {
  if (types::string_length(record) <= 11 && !record.collection()) {
    if (const auto value = contract::parse_integer(record.payload())) {
      if (fits<int8_t>(*value)) return 2;
      if (fits<int16_t>(*value)) return 3;
      if (fits<int32_t>(*value)) return 5;
    }
  }
  const uint64_t length = types::string_length(record);
  return length + (length < 64 ? 1 : length < 16384 ? 2 : 5);
}

void object(ReadContext& ctx, Args args) {
  Record record;
  if (!ctx.keys.peek(ctx.db, args[2], &record)) {
    return ctx.reply.error(contract::error::kNoSuchKey);
  }
  constexpr int64_t kClockMask = (1 << 24) - 1;  // Redis' clock of uses has 24 bits
  const int64_t idle = idle_seconds(ctx, args[2]);
  ctx.reply.simple(fmt::format(
      "Value at:{} refcount:{} encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}",
      fmt::ptr(&record), reference_count(record), types::encoding_name(record),
      serialized_length(record), (ctx.now_ms() / 1000 - idle) & kClockMask, idle));
}

void set_active_expire(ReadContext& ctx, Args args) {
  ctx.server.set_active_expire(std::atoi(std::string(args[2]).c_str()) != 0);
  ctx.reply.ok();
}

// What Redis would write to its dump and read back goes from memory to tables here; later reads
// come from there.
void flush_engine(ReadContext& ctx) {
  const storage::Status status = ctx.server.flush_engine();
  status.ok() ? ctx.reply.ok() : ctx.reply.error("ERR " + status.message());
}

void reload(ReadContext& ctx, Args args) {
  contract::ArgReader reader(args, 2);
  bool any = false;
  while (reader.flag({{"merge", &any}, {"noflush", &any}, {"nosave", &any}})) {
  }
  if (!reader.done()) {
    return ctx.reply.error("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
  }
  flush_engine(ctx);
}

void load_log(ReadContext& ctx, Args) {
  flush_engine(ctx);
}

void debug_error(ReadContext& ctx, Args args) {
  std::string text(args[2]);
  std::ranges::replace_if(
      text, [](char c) { return c == '\r' || c == '\n'; }, ' ');
  ctx.reply.error(text);
}

void debug_log(ReadContext& ctx, Args args) {
  metrics::log::warning("DEBUG LOG: {}", args[2]);
  ctx.reply.ok();
}

void change_replication_id(ReadContext& ctx, Args) {
  ctx.server.change_replication_id();
  ctx.reply.ok();
}

// Lists have no nodes whose packing it could change: it is checked, and that is all.
void quicklist_packed_threshold(ReadContext& ctx, Args args) {
  constexpr uint64_t kMax = (uint64_t{4} << 30) - (1 << 20);
  const auto bytes = settings::parse_memory(args[2]);
  if (!bytes || *bytes > kMax) {
    return ctx.reply.error(
        "ERR argument must be a memory value bigger than 1 and smaller than 4gb");
  }
  ctx.reply.ok();
}

// Patterns and texts of the signs that mean something to the matcher: it has to come back.
void stringmatch_test(ReadContext& ctx, Args) {
  constexpr int kRounds = 1'000'000;
  constexpr size_t kLengthMax = 16;
  constexpr std::string_view kSigns = "*?[]^-\\abcdef";
  const auto draw = [&kSigns](std::string* text) {
    text->resize(dice()() % (kLengthMax + 1));
    for (char& sign : *text) sign = kSigns[dice()() % kSigns.size()];
  };
  std::string pattern;
  std::string text;
  for (int i = 0; i < kRounds; ++i) {
    draw(&pattern);
    draw(&text);
    (void)contract::glob_matches(pattern, text);
  }
  ctx.reply.simple("Apparently Redis did not crash: test passed");
}

void reply_three(ReplySink& reply) {
  for (int64_t i = 0; i < 3; ++i) reply.integer(i);
}

void reply_map(ReplySink& reply) {
  reply.map(3);
  for (int64_t i = 0; i < 3; ++i) {
    reply.integer(i);
    reply.boolean(i == 1);
  }
}

void reply_with_attribute(ReplySink& reply) {
  if (reply.version() >= 3) {
    reply.attribute(1);
    reply.bulk("key-popularity");
    reply.array(2);
    reply.bulk("key:123");
    reply.integer(90);
  }
  reply.bulk("Some real reply following the attribute");
}

void reply_with_push(ReplySink& reply) {
  if (reply.version() < 3) return reply.error("ERR RESP2 is not supported by this command");
  reply.push(2);
  reply.bulk("server-cpu-usage");
  reply.integer(42);
  reply.bulk("Some real reply following the push reply");
}

struct ProtocolType {
  std::string_view name;
  void (*answer)(ReplySink& reply);
};

// What clients are tried with; the values are Redis'.
constexpr ProtocolType kProtocolTypes[] = {
    {"string", [](ReplySink& reply) { reply.bulk("Hello World"); }},
    {"integer", [](ReplySink& reply) { reply.integer(12345); }},
    {"double", [](ReplySink& reply) { reply.real(3.141); }},
    {"bignum", [](ReplySink& reply) { reply.big_number("1234567999999999999999999999999999999"); }},
    {"null", [](ReplySink& reply) { reply.null(); }},
    {"array",
     [](ReplySink& reply) {
       reply.array(3);
       reply_three(reply);
     }},
    {"set",
     [](ReplySink& reply) {
       reply.set(3);
       reply_three(reply);
     }},
    {"map", reply_map},
    {"attrib", reply_with_attribute},
    {"push", reply_with_push},
    {"verbatim", [](ReplySink& reply) { reply.verbatim("txt", "This is a verbatim\nstring"); }},
    {"true", [](ReplySink& reply) { reply.boolean(true); }},
    {"false", [](ReplySink& reply) { reply.boolean(false); }},
};

void protocol(ReadContext& ctx, Args args) {
  for (const ProtocolType& type : kProtocolTypes) {
    if (equals_ignore_case(args[2], type.name)) return type.answer(ctx.reply);
  }
  ctx.reply.error(
      "ERR Wrong protocol type name. Please use one of the following: "
      "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false");
}

void help(ReadContext& ctx, Args) {
  contract::reply_help(
      ctx.reply, "DEBUG",
      {"CHANGE-REPL-ID",
       "    Change the replication IDs of the instance.",
       "    Dangerous: should be used only for testing the replication subsystem.",
       "DIGEST",
       "    Output a hex signature representing the current DB content.",
       "DIGEST-VALUE <key> [<key> ...]",
       "    Output a hex signature of the values of all the specified keys.",
       "ERROR <string>",
       "    Return a Redis protocol error with <string> as message. Useful for clients",
       "    unit tests to simulate Redis errors.",
       "LOG <message>",
       "    Write <message> to the server log.",
       "LOADAOF",
       "    Flush the AOF buffers on disk and reload the AOF in memory.",
       "OBJECT <key>",
       "    Show low level info about `key` and associated value.",
       "POPULATE <count> [<prefix>] [<size>]",
       "    Create <count> string keys named key:<num>. If <prefix> is specified then",
       "    it is used instead of the 'key' prefix. These are not propagated to",
       "PROTOCOL <type>",
       "    Reply with a test value of the specified type. <type> can be: string,",
       "    integer, double, bignum, null, array, set, map, attrib, push, verbatim,",
       "    true, false.",
       "RELOAD [option ...]",
       "SET-ACTIVE-EXPIRE <0|1>",
       "    Setting it to 0 disables expiring keys in background when they are not",
       "    accessed (otherwise the Redis behavior). Setting it to 1 reenables back the",
       "    default.",
       "QUICKLIST-PACKED-THRESHOLD <size>",
       "    Sets the threshold for elements to be inserted as plain vs packed nodes",
       "    Default value is 1GB, allows values up to 4GB. Setting to 0 restores to default.",
       "SLEEP <seconds>",
       "    Stop the server for <seconds>. Decimals allowed.",
       "STRINGMATCH-TEST",
       "    Run a fuzz tester against the stringmatchlen() function."});
}

struct Subcommand {
  std::string_view name;
  size_t arguments;  // behind the name
  bool and_more;
  void (*run)(ReadContext& ctx, Args args);
};

constexpr Subcommand kSubcommands[] = {
    {"change-repl-id", 0, false, change_replication_id},
    {"digest", 0, false, digest},
    {"digest-value", 0, true, digest_value},
    {"error", 1, false, debug_error},
    {"help", 0, false, help},
    {"loadaof", 0, true, load_log},
    {"log", 1, false, debug_log},
    {"object", 1, false, object},
    {"protocol", 1, false, protocol},
    {"quicklist-packed-threshold", 1, false, quicklist_packed_threshold},
    {"reload", 0, true, reload},
    {"set-active-expire", 1, false, set_active_expire},
    {"sleep", 1, false, sleep},
    {"stringmatch-test", 0, false, stringmatch_test},
};

void debug(ReadContext& ctx, Args args) {
  if (!ctx.keys.data().begin_walk()) return;
  const size_t arguments = args.size() - 2;
  for (const Subcommand& subcommand : kSubcommands) {
    if (!equals_ignore_case(args[1], subcommand.name)) continue;
    if (arguments == subcommand.arguments ||
        (arguments > subcommand.arguments && subcommand.and_more)) {
      return subcommand.run(ctx, args);
    }
  }
  constexpr size_t kShown = 128;
  ctx.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                  std::string(args[1].substr(0, kShown)) + "'. Try DEBUG HELP.");
}

// --- POPULATE, which writes

constexpr size_t kPopulateArguments = 3;  // at most
constexpr int64_t kKeysAtOnce = 1000;
constexpr size_t kBytesAtOnce = 1 << 20;

struct Population {
  int64_t keys = 0;
  std::string_view prefix = "key";
  int64_t value_bytes = 0;  // 0: as many as the text takes
};

std::optional<Population> read_population(WriteContext& ctx, Args args) {
  constexpr size_t kPrefixMax = 100;
  ArgReader reader(args, 2);
  const auto positive = [&reader] {
    return reader.integer_between(0, INT64_MAX, "ERR value is out of range, must be positive");
  };
  Population population{.keys = positive()};
  if (reader.more()) population.prefix = reader.text().substr(0, kPrefixMax);
  if (reader.more()) population.value_bytes = positive();
  if (!reader.failed() &&
      static_cast<uint64_t>(population.value_bytes) > data::held_value_max(ctx.data)) {
    reader.fail(contract::kOutOfMemory);
  }
  if (!reader.failed() && !ctx.may_block && population.keys > kKeysAtOnce) {
    reader.fail("ERR DEBUG POPULATE makes at most 1000 keys inside a transaction");
  }
  if (!reader.failed()) return population;
  ctx.reply.error(reader.error());
  return std::nullopt;
}

void populate(WriteContext& ctx, Args args) {
  const auto population = read_population(ctx, args);
  if (!population) return;
  ctx.tell_nothing();  // as in Redis
  int64_t next = contract::parse_integer(ctx.went_on).value_or(0);
  const int64_t end = std::min(population->keys, next + kKeysAtOnce);
  size_t bytes = 0;
  for (; next < end && (bytes < kBytesAtOnce || !ctx.may_block); ++next) {
    const std::string key = fmt::format("{}:{}", population->prefix, next);
    Record old;
    if (ctx.keys.peek(ctx.db, key, &old)) continue;
    std::string value = fmt::format("value:{}", next);
    if (population->value_bytes > 0) value.resize(static_cast<size_t>(population->value_bytes));
    bytes += value.size();
    types::store_string(ctx.keys, ctx.db, key, nullptr, value, 0);
    if (ctx.keys.data().failed()) return;
  }
  if (next < population->keys) return ctx.go_on(std::to_string(next));
  ctx.reply.ok();
}

// The row for what writes, or null.
const CommandRow* writing_row(Args args);

constexpr CommandRow kTable[] = {
    {.name = "debug",
     .arity = -2,
     .flags = contract::flag::kAdmin | contract::flag::kNoScript | contract::flag::kLoading |
              contract::flag::kStale,
     .since = "1.0.0",
     .complexity = "That of the subcommand",
     .summary = "Tools for tests of the server",
     .handler = debug,
     .instead = writing_row,
     .scans = true,
     .guard = contract::Guard::kDebug,
     .is_internal = true},
};
constexpr auto kRows = contract::family(kServerFamily, kTable);

constexpr CommandRow populate_row() {
  CommandRow row = contract::variant_of(kRows[0], populate);
  row.flags |= flag::kWrite | flag::kDenyOom;
  return row;
}
constexpr CommandRow kPopulateRow = populate_row();

const CommandRow* writing_row(Args args) {
  const bool populates = args.size() >= 3 && args.size() <= 2 + kPopulateArguments &&
                         equals_ignore_case(args[1], "populate");
  return populates ? &kPopulateRow : nullptr;
}

}  // namespace

std::span<const CommandRow> debug_rows() {
  return kRows;
}

}  // namespace ingot::commands
