// Keys whatever they hold: removing, renaming, moving, copying, asking for their type. All but
// copying in constant time: a record moves or goes, what it points at stays where it is.
#include <optional>

#include "src/commands/database_index.h"
#include "src/commands/families.h"
#include "src/commands/look_at.h"
#include "src/contract/thresholds.h"
#include "src/data/built_value.h"
#include "src/types/collection.h"
#include "src/types/string_value.h"
#include "src/types/value_type.h"

namespace ingot::commands {
namespace {

using types::Record;

void del(WriteContext& ctx, Args args) {
  int64_t removed = 0;
  for (std::string_view name : args.subspan(1)) {
    Record record;
    if (!ctx.keys.find(ctx.db, name, &record)) continue;
    ctx.keys.remove(ctx.db, name, record);
    ctx.keys.notify(notify::kGeneric, "del", ctx.db, name);
    ++removed;
  }
  ctx.reply.integer(removed);
}

void exists(ReadContext& ctx, Args args) {
  int64_t found = 0;
  Record record;
  for (std::string_view name : args.subspan(1)) found += look_at(ctx.keys, ctx.db, name, &record);
  ctx.reply.integer(found);
}

void touch(ReadContext& ctx, Args args) {
  int64_t found = 0;
  Record record;
  for (std::string_view name : args.subspan(1)) found += ctx.keys.find(ctx.db, name, &record);
  ctx.reply.integer(found);
}

void type(ReadContext& ctx, Args args) {
  Record record;
  const bool found = look_at(ctx.keys, ctx.db, args[1], &record);
  ctx.reply.simple(found ? types::type_name(record.type()) : "none");
}

// Makes `target` hold what `source` holds; what it held before is dropped.
void move_record(WriteContext& ctx, int db, std::string_view source, const Record& record,
                 int target_db, std::string_view target, const Record* replaced) {
  storage::Metadata metadata = record.metadata();
  ctx.keys.unlink(db, source, record);
  ctx.keys.store(target_db, target, replaced, metadata);
  // As in Redis, which removes the old one first.
  if (replaced != nullptr) ctx.keys.notify(notify::kNew, "new", target_db, target);
  ctx.changes = 1;
}

void rename_to(WriteContext& ctx, Args args, bool replace) {
  std::string_view source = args[1];
  std::string_view target = args[2];
  Record record;
  if (!ctx.keys.find(ctx.db, source, &record)) return ctx.reply.error(contract::error::kNoSuchKey);
  Record replaced;
  bool same = source == target;
  bool exists = !same && ctx.keys.find(ctx.db, target, &replaced);
  if (!replace && (exists || same)) return ctx.reply.integer(0);
  if (!same) {
    move_record(ctx, ctx.db, source, record, ctx.db, target, exists ? &replaced : nullptr);
    ctx.keys.notify(notify::kGeneric, "rename_from", ctx.db, source);
    ctx.keys.notify(notify::kGeneric, "rename_to", ctx.db, target);
  }
  replace ? ctx.reply.ok() : ctx.reply.integer(1);
}

void rename(WriteContext& ctx, Args args) {
  rename_to(ctx, args, true);
}
void renamenx(WriteContext& ctx, Args args) {
  rename_to(ctx, args, false);
}

void move(WriteContext& ctx, Args args) {
  std::optional<int> target_db = database_index(ctx, args[2]);
  if (!target_db) return;
  if (*target_db == ctx.db) return ctx.reply.error(contract::error::kSameObject);
  Record record;
  Record there;
  if (!ctx.keys.find(ctx.db, args[1], &record) || ctx.keys.find(*target_db, args[1], &there)) {
    return ctx.reply.integer(0);
  }
  move_record(ctx, ctx.db, args[1], record, *target_db, args[1], nullptr);
  ctx.keys.notify(notify::kGeneric, "move_from", ctx.db, args[1]);
  ctx.keys.notify(notify::kGeneric, "move_to", *target_db, args[1]);
  ctx.reply.integer(1);
}

// More than the writer copies itself.
bool is_large(const Record& record) {
  if (types::is_string(record))
    return types::string_length(record) > contract::kStringByWriterBytes;
  return record.collection() && record.collection()->count > contract::kCopiedByWriter;
}

void copy(WriteContext& ctx, Args args) {
  int target_db = ctx.db;
  bool replace = false;
  ArgReader options(args, 3);
  while (options.more()) {
    if (options.word("replace")) {
      replace = true;
    } else if (options.word("db", 1)) {
      std::optional<int> chosen = database_index(ctx, options.text());
      if (!chosen) return;
      target_db = *chosen;
    } else {
      options.fail(contract::error::kSyntax);
    }
  }
  if (options.failed()) return ctx.reply.error(options.error());
  if (target_db == ctx.db && args[1] == args[2]) {
    return ctx.reply.error(contract::error::kSameObject);
  }
  Record source;
  if (!ctx.keys.find(ctx.db, args[1], &source)) return ctx.reply.integer(0);
  Record replaced;
  bool exists = ctx.keys.peek(target_db, args[2], &replaced);
  if (exists && !replace) return ctx.reply.integer(0);
  const auto value = data::build_value(
      ctx, {.sources = args.subspan(1, 1), .is_large = is_large(source)},
      [db = ctx.db, name = std::string(args[1])](types::KeyReader& keys,
                                                 const types::PutElement& put) {
        Record record;
        const bool found = keys.peek(db, name, &record);
        return found ? types::copy_value(keys.data(), record, put) : types::BuiltValue{};
      });
  if (!value) return;
  ctx.keys.store(target_db, args[2], exists ? &replaced : nullptr, value->record());
  if (exists) ctx.keys.notify(notify::kNew, "new", target_db, args[2]);
  ctx.keys.notify(notify::kGeneric, "copy_to", target_db, args[2]);
  ctx.reply.integer(1);
}

constexpr CommandRow kTable[] = {
    {.name = "copy",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(1, key::kRo | key::kAccess), key_at(2, key::kOw | key::kUpdate)},
     .since = "6.2.0",
     .complexity = "O(1) for a small value, O(N) in its bytes",
     .summary = "Make another key with the same value",
     .arguments =
         "source:key#0 destination:key#1 destination-db:integer=DB? replace:pure-token=REPLACE?",
     .handler = copy},
    {.name = "del",
     .arity = -2,
     .flags = flag::kWrite,
     .keys = {keys_between(1, -1, 1, key::kRm | key::kDelete)},
     .since = "1.0.0",
     .complexity = "O(N) in the keys",
     .summary = "Remove keys",
     .tips = "request_policy:multi_shard,response_policy:agg_sum",
     .arguments = "key:key#0*",
     .handler = del},
    {.name = "exists",
     .arity = -2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {keys_between(1, -1, 1, key::kRo)},
     .since = "1.0.0",
     .complexity = "O(N) in the keys",
     .summary = "Count which of these keys there are",
     .history = "3.0.3: Accepts multiple `key` arguments.",
     .tips = "request_policy:multi_shard,response_policy:agg_sum",
     .arguments = "key:key#0*",
     .handler = exists},
    {.name = "move",
     .arity = 3,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kUpdate)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Take a key to another database",
     .arguments = "key:key#0 db:integer",
     .handler = move},
    {.name = "rename",
     .arity = 3,
     .flags = flag::kWrite,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kDelete),
              key_at(2, key::kOw | key::kUpdate)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Give a key another name, over what had it",
     .arguments = "key:key#0 newkey:key#1",
     .handler = rename},
    {.name = "renamenx",
     .arity = 3,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kDelete),
              key_at(2, key::kOw | key::kInsert)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Give a key another name unless that is taken",
     .history = "3.2.0: The command no longer returns an error when source and destination names "
                "are the same.",
     .arguments = "key:key#0 newkey:key#1",
     .handler = renamenx},
    {.name = "touch",
     .arity = -2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {keys_between(1, -1, 1, key::kRo)},
     .since = "3.2.1",
     .complexity = "O(N) in the keys",
     .summary = "Mark keys as just used",
     .tips = "request_policy:multi_shard,response_policy:agg_sum",
     .arguments = "key:key#0*",
     .handler = touch},
    {.name = "type",
     .arity = 2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "What kind of value a key holds",
     .arguments = "key:key#0",
     .handler = type},
    {.name = "unlink",
     .arity = -2,
     .flags = flag::kWrite | flag::kFast,
     .keys = {keys_between(1, -1, 1, key::kRm | key::kDelete)},
     .since = "4.0.0",
     .complexity = "O(N) in the keys",
     .summary = "Remove keys, their space later",
     .tips = "request_policy:multi_shard,response_policy:agg_sum",
     .arguments = "key:key#0*",
     .handler = del},
};
constexpr auto kRows = contract::family(kGenericFamily, kTable);

}  // namespace

std::span<const CommandRow> generic_rows() {
  return kRows;
}

}  // namespace ingot::commands
