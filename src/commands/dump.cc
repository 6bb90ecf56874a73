// Values as bytes that another server takes, and back: DUMP, RESTORE.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/commands/dump_payload.h"
#include "src/commands/families.h"
#include "src/commands/hash_key.h"
#include "src/commands/set_key.h"
#include "src/commands/zset_key.h"
#include "src/contract/errors.h"
#include "src/contract/thresholds.h"
#include "src/data/built_argument.h"
#include "src/data/built_value.h"
#include "src/data/piece_source.h"
#include "src/data/restored_value.h"
#include "src/data/string_source.h"
#include "src/settings/config.h"
#include "src/types/access_clock.h"

namespace ingot::commands {
namespace {

using types::Record;

void dump_long_string(ReadContext& ctx, const Record& record) {
  const uint64_t length = types::string_length(record);
  types::rdb::LongStringDump dump(length);
  const uint64_t bytes = dump.bytes();
  const auto frame = [&dump](data::PieceSource::Read read) -> data::PieceSource::Read {
    return [dump = std::move(dump), read = std::move(read), begun = false](
               storage::Reader& data, std::string* piece) mutable {
      const bool more = read(data, piece);
      dump.pass(*piece);
      if (!std::exchange(begun, true)) piece->insert(0, dump.head());
      if (!more) piece->append(dump.footer());
      return more;
    };
  };
  auto source = data::stream_string(
      ctx.data, ctx.keys, ctx.view,
      {.chunks = types::chunks_of(record), .offset = 0, .bytes = length}, frame);
  if (source) ctx.reply.stream({.bytes = bytes, .source = std::move(source)});
}

void dump(ReadContext& ctx, Args args) {
  Record record;
  if (!ctx.keys.find(ctx.db, args[1], &record)) return ctx.reply.null();
  if (record.collection() && !ctx.keys.data().begin_walk(record.collection()->count)) return;
  const bool streams = ctx.reply.keeps_bytes_max() == 0;
  if (streams && is_long_string(record)) return dump_long_string(ctx, record);
  const auto payload = dump_payload(ctx.config, ctx.keys, record, data::held_value_max(ctx.data));
  payload ? ctx.reply.bulk(*payload) : ctx.reply.error(contract::kOutOfMemory);
}

struct RestoreOptions {
  bool replace = false;
  bool absolute = false;
  std::optional<int64_t> idle_s;
  std::optional<int64_t> frequency;
};

// Nothing when an error was answered.
std::optional<RestoreOptions> parse_options(ArgReader& reader, contract::ReplySink& reply) {
  RestoreOptions options;
  while (reader.more()) {
    if (reader.word("replace")) {
      options.replace = true;
    } else if (reader.word("absttl")) {
      options.absolute = true;
    } else if (!options.frequency && reader.word("idletime", 1)) {
      options.idle_s = reader.integer();
      if (options.idle_s < 0) reader.fail("ERR Invalid IDLETIME value, must be >= 0");
    } else if (!options.idle_s && reader.word("freq", 1)) {
      options.frequency = reader.integer();
      if (options.frequency < 0 || options.frequency > 255) {
        reader.fail("ERR Invalid FREQ value, must be >= 0 and <= 255");
      }
    } else {
      reader.fail(contract::error::kSyntax);
    }
  }
  if (!reader.failed()) return options;
  reply.error(reader.error());
  return std::nullopt;
}

std::shared_ptr<const data::BuiltArgument> argument_of(const WriteContext& ctx) {
  if (ctx.argument == nullptr) return nullptr;
  return ctx.argument->shared_from_this();
}

// Of the two that a server keeps, what its policy asks for.
void note_use(WriteContext& ctx, std::string_view key, const RestoreOptions& options) {
  types::AccessClock* const access = ctx.keys.access();
  if (access == nullptr) return;
  const storage::KeyspaceId keyspace = ctx.keys.keyspace(ctx.db);
  const bool counts = settings::counts_uses(ctx.config.settings()->maxmemory_policy);
  if (counts && options.frequency) {
    access->set_frequency(keyspace, key, static_cast<uint32_t>(*options.frequency), ctx.now_ms());
  } else if (!counts && options.idle_s) {
    access->set_idle_seconds(keyspace, key, *options.idle_s, ctx.now_ms());
  }
}

void restore(WriteContext& ctx, Args args) {
  ArgReader reader(args, 4);
  const auto options = parse_options(reader, ctx.reply);
  if (!options) return;
  Record old;
  const bool exists = ctx.keys.find(ctx.db, args[1], &old);
  if (exists && !options->replace) {
    return ctx.reply.error("BUSYKEY Target key name already exists.");
  }
  const std::optional<int64_t> ttl = contract::parse_integer(args[2]);
  if (!ttl) return ctx.reply.error(contract::error::kNotInteger);
  if (*ttl < 0) return ctx.reply.error("ERR Invalid TTL value, must be >= 0");
  if (ctx.argument != nullptr && !ctx.argument->status().ok()) {
    return ctx.keys.data().latch_error(ctx.argument->status());
  }
  const auto value = data::build_value(
      ctx,
      {.is_large = ctx.argument != nullptr || args[3].size() > contract::kRestoredByWriterBytes},
      [&services = ctx.data, payload = args[3], argument = argument_of(ctx),
       limits =
           types::rdb::StoreLimits{
               .hash = hash_limits(ctx), .set = set_limits(ctx), .sorted_set = zset_limits(ctx)}](
          types::KeyReader& keys, const types::PutElement& put) {
        return argument ? data::restore_argument(services, keys.data(), *argument, limits, put)
                        : data::restore_value(services, keys.data(), payload, limits, put);
      });
  if (!value) return;
  if (!value->error.empty()) return ctx.reply.error(value->error);
  storage::Metadata record = value->record();
  if (exists) ctx.keys.remove(ctx.db, args[1], old);
  int64_t expire_ms = *ttl;
  if (expire_ms != 0 && !options->absolute &&
      __builtin_add_overflow(expire_ms, ctx.now_ms(), &expire_ms)) {
    expire_ms = INT64_MIN;  // in Redis, too, a sum that wraps around lies in the past
  }
  if (expire_ms != 0 && expire_ms <= ctx.keys.expired_by_ms()) {
    if (exists) ctx.keys.notify(types::notify::kGeneric, "del", ctx.db, args[1]);
    if (exists) ctx.tell({"DEL", args[1]});
    if (record.collection) ctx.keys.discard_collection(record.collection->id);
    return ctx.reply.ok();
  }
  record.expire_ms = expire_ms;
  ctx.keys.store(ctx.db, args[1], nullptr, record);
  if (expire_ms != 0 && !options->absolute && ctx.tells()) {
    const std::string when_ms = std::to_string(expire_ms);
    std::vector<std::string_view> words(args.begin(), args.end());
    words[2] = when_ms;
    words.push_back("ABSTTL");
    ctx.tell(words, 3);
  }
  note_use(ctx, args[1], *options);
  ctx.keys.notify(types::notify::kGeneric, "restore", ctx.db, args[1]);
  ctx.reply.ok();
}

constexpr CommandRow kRestoreRow{
    .name = "restore",
    .arity = -4,
    .flags = flag::kWrite | flag::kDenyOom,
    .acl = acl::kDangerous,
    .keys = {key_at(1, key::kOw | key::kUpdate)},
    .since = "2.6.0",
    .complexity = "O(N) in the bytes of the value",
    .summary = "Make a key with the value that DUMP answered",
    .history =
        "3.0.0: `REPLACE` is taken.; 5.0.0: `ABSTTL` is taken.; 5.0.0: "
        "`IDLETIME` and `FREQ` are taken.",
    .arguments =
        "key:key#0 ttl:integer serialized-value:string replace:pure-token=REPLACE@3.0.0? "
        "absttl:pure-token=ABSTTL@5.0.0? seconds:integer=IDLETIME@5.0.0? "
        "frequency:integer=FREQ@5.0.0?",
    .handler = restore,
    .value_index = 3};

// What a node of a cluster sends another one while a slot moves.
constexpr CommandRow restore_asking_row() {
  CommandRow row = kRestoreRow;
  row.name = "restore-asking";
  row.flags |= flag::kAsking;
  row.group = kServerFamily.group;
  row.since = "3.0.0";
  row.summary = "RESTORE for a slot that moves between nodes of a cluster";
  row.is_internal = true;
  return row;
}

constexpr CommandRow kTable[] = {
    {.name = "dump",
     .arity = 2,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.6.0",
     .complexity = "O(N) in the bytes of the value",
     .summary = "Answer the value in the form that RESTORE takes",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0",
     .handler = dump},
    kRestoreRow,
    restore_asking_row(),
};
constexpr auto kRows = contract::family(kGenericFamily, kTable);

}  // namespace

std::span<const CommandRow> dump_rows() {
  return kRows;
}

}  // namespace ingot::commands
