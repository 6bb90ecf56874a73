// Values as bytes that another server takes, and back: DUMP, RESTORE.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/command/context.h"
#include "src/commands/dump_payload.h"
#include "src/commands/families.h"
#include "src/commands/hash_key.h"
#include "src/commands/set_key.h"
#include "src/commands/zset_key.h"
#include "src/types/rdb_store.h"
#include "src/types/restored_value.h"

namespace ingot::commands {
namespace {

namespace acl = command::acl;
namespace flag = command::flag;
namespace key = command::key;
using command::ArgReader;
using command::Args;
using command::CommandRow;
using command::key_at;
using command::ReadContext;
using command::WriteContext;
using types::Record;

void dump(ReadContext& ctx, Args args) {
  Record record;
  if (!ctx.keys.find(ctx.db, args[1], &record)) return ctx.reply.null();
  if (record.collection() && !ctx.keys.data().begin_walk()) return;
  ctx.reply.bulk(dump_payload(ctx.services, ctx.keys, record));
}

struct RestoreOptions {
  bool replace = false;
  bool absolute = false;
};

// Nothing when an error was answered. How idle or frequently used the key is said to be is checked
// and not kept.
std::optional<RestoreOptions> parse_options(ArgReader& reader, command::ReplySink& reply) {
  RestoreOptions options;
  bool idle = false, frequency = false;
  while (reader.more()) {
    if (reader.word("replace")) {
      options.replace = true;
    } else if (reader.word("absttl")) {
      options.absolute = true;
    } else if (reader.left() >= 2 && !frequency && reader.word("idletime")) {
      idle = true;
      if (reader.integer() < 0) reader.fail("ERR Invalid IDLETIME value, must be >= 0");
    } else if (reader.left() >= 2 && !idle && reader.word("freq")) {
      frequency = true;
      const int64_t value = reader.integer();
      if (value < 0 || value > 255) {
        reader.fail("ERR Invalid FREQ value, must be >= 0 and <= 255");
      }
    } else {
      reader.fail(command::error::kSyntax);
    }
  }
  if (!reader.failed()) return options;
  reply.error(reader.error());
  return std::nullopt;
}

// A dump up to this size is decoded and stored by the writer itself.
constexpr size_t kRestoredHereBytes = 16 << 10;

struct Restoring {
  std::string_view payload;
  types::rdb::StoreLimits limits;
  // One of the two:
  std::optional<types::rdb::Object> object = {};
  std::shared_ptr<types::RestoredValue> prepared = nullptr;
};

// False when an error was answered, or the pool is to read the payload first.
bool read(WriteContext& ctx, Restoring* restoring) {
  std::string_view error;
  if (restoring->payload.size() <= kRestoredHereBytes || ctx.in_place) {
    restoring->object = types::read_payload(restoring->payload, &error);
  } else {
    restoring->prepared = std::dynamic_pointer_cast<types::RestoredValue>(ctx.prepared);
    if (!restoring->prepared) {
      ctx.needs(types::prepare_restored(ctx.services, restoring->payload, restoring->limits));
      return false;
    }
    error = restoring->prepared->error();
  }
  if (!error.empty()) ctx.reply.error(error);
  return error.empty();
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
  const std::optional<int64_t> ttl = command::parse_integer(args[2]);
  if (!ttl) return ctx.reply.error(command::error::kNotInteger);
  if (*ttl < 0) return ctx.reply.error("ERR Invalid TTL value, must be >= 0");
  Restoring restoring{
      .payload = args[3],
      .limits = {.hash = hash_limits(ctx), .set = set_limits(ctx), .sorted_set = zset_limits(ctx)}};
  if (!read(ctx, &restoring)) return;
  if (exists) ctx.keys.remove(ctx.db, args[1], old);
  int64_t expire_ms = *ttl;
  if (expire_ms != 0 && !options->absolute &&
      __builtin_add_overflow(expire_ms, ctx.now_ms(), &expire_ms)) {
    expire_ms = INT64_MIN;  // in Redis, too, a sum that wraps around lies in the past
  }
  if (expire_ms != 0 && expire_ms <= ctx.now_ms()) {
    if (exists) ctx.keys.notify(types::notify::kGeneric, "del", ctx.db, args[1]);
    return ctx.reply.ok();
  }
  if (restoring.object) {
    types::rdb::store_object(ctx.keys, ctx.db, args[1], *restoring.object, expire_ms,
                             restoring.limits);
  } else if (!restoring.prepared->link(ctx.keys, ctx.db, args[1], expire_ms)) {
    return;  // reading failed, which is latched
  }
  ctx.keys.notify(types::notify::kGeneric, "restore", ctx.db, args[1]);
  ctx.reply.ok();
}

constexpr CommandRow kRows[] = {
    {.name = "dump",
     .arity = 2,
     .flags = flag::kReadonly,
     .acl = acl::kKeyspace | acl::kRead | acl::kSlow,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .group = "generic",
     .since = "2.6.0",
     .complexity = "O(N) in the bytes of the value",
     .summary = "Answer the value in the form that RESTORE takes",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0",
     .handler = dump},
    {.name = "restore",
     .arity = -4,
     .flags = flag::kWrite | flag::kDenyOom,
     .acl = acl::kKeyspace | acl::kWrite | acl::kSlow | acl::kDangerous,
     .keys = {key_at(1, key::kOw | key::kUpdate)},
     .group = "generic",
     .since = "2.6.0",
     .complexity = "O(N) in the bytes of the value",
     .summary = "Make a key with the value that DUMP answered",
     .history = "3.0.0: `REPLACE` is taken.; 5.0.0: `ABSTTL` is taken.; 5.0.0: "
                "`IDLETIME` and `FREQ` are taken.",
     .arguments = "key:key#0 ttl:integer serialized-value:string replace:pure-token=REPLACE@3.0.0? "
                  "absttl:pure-token=ABSTTL@5.0.0? seconds:integer=IDLETIME@5.0.0? "
                  "frequency:integer=FREQ@5.0.0?",
     .handler = restore},
};

}  // namespace

std::span<const CommandRow> dump_rows() {
  return kRows;
}

}  // namespace ingot::commands
