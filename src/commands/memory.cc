// MEMORY: what a value takes, and giving memory back.
#include <algorithm>
#include <limits>

#include "src/commands/families.h"
#include "src/contract/help.h"
#include "src/server/memory_usage.h"

namespace ingot::commands {
namespace {

using storage::Space;

constexpr int64_t kSamples = 5;  // Redis' default

// The records of a collection in one space: those looked at, and the rest as large as they are.
uint64_t collection_bytes(ReadContext& ctx, const storage::Metadata::Collection& collection,
                          Space space, uint64_t samples) {
  const auto at = ctx.keys.data().cursor(space, storage::collection_begin(collection.id),
                                         storage::collection_end(collection.id));
  uint64_t bytes = 0;
  uint64_t seen = 0;
  for (at->seek(storage::collection_begin(collection.id)); at->valid() && seen < samples;
       at->next()) {
    bytes += at->key().size() + at->value().size();
    ++seen;
  }
  const bool more = at->valid();
  ctx.keys.data().check(*at);
  return more ? bytes * std::max(collection.count, seen) / seen : bytes;
}

// The bytes of the key's records, on disk and, before compression, in the cache.
void usage(ReadContext& ctx, Args args) {
  ArgReader options(args, 3);
  int64_t samples = kSamples;
  while (options.more()) {
    if (!options.word("samples", 1)) options.fail(contract::error::kSyntax);
    if (options.failed()) break;
    samples = options.integer();
    if (!options.failed() && samples < 0) options.fail(contract::error::kSyntax);
    if (samples == 0) samples = std::numeric_limits<int64_t>::max();
  }
  if (options.failed()) return ctx.reply.error(options.error());
  types::Record record;
  if (!ctx.keys.peek(ctx.db, args[2], &record)) return ctx.reply.null();
  uint64_t bytes =
      storage::meta_key(ctx.keys.keyspace(ctx.db), args[2]).size() + record.bytes().size();
  if (record.collection()) {
    if (samples > kSamples && !ctx.keys.data().begin_walk(samples)) return;
    if (record.type() == storage::ValueType::kString) {
      bytes += record.collection()->count;
    } else {
      bytes +=
          collection_bytes(ctx, *record.collection(), Space::kData, static_cast<uint64_t>(samples));
      // Members and scores stand in the order, too.
      if (record.type() == storage::ValueType::kSortedSet) bytes *= 2;
    }
  }
  ctx.reply.integer(static_cast<int64_t>(bytes));
}

void purge(SessionContext& ctx, Args) {
  server::return_memory_now();
  ctx.reply.ok();
}

void help(SessionContext& ctx, Args) {
  contract::reply_help(
      ctx.reply, "MEMORY",
      {"PURGE", "    Give unused memory back to the system.", "USAGE <key> [SAMPLES <count>]",
       "    Return the bytes of the records of <key>; of a large collection it is",
       "    estimated from <count> of them (default: 5, 0: all)."});
}

constexpr CommandRow kSubcommandTable[] = {
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "What the subcommands are for",
     .handler = help,
     .immediate = true},
    {.name = "purge",
     .arity = 2,
     .since = "4.0.0",
     .complexity = "O(N) with N the unused pages",
     .summary = "Give unused memory back to the system",
     .tips = "request_policy:all_shards,response_policy:all_succeeded",
     .handler = purge,
     .offload = true},
    {.name = "usage",
     .arity = -3,
     .flags = flag::kReadonly,
     .keys = {contract::key_at(2, key::kRo)},
     .since = "4.0.0",
     .complexity = "O(N) with N samples",
     .summary = "Bytes of a key's records",
     .arguments = "key:key#0 count:integer=SAMPLES?",
     .handler = usage},
};
constexpr auto kSubcommands = contract::family(kServerFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "memory",
     .arity = -2,
     .since = "4.0.0",
     .complexity = "That of the subcommand",
     .summary = "What memory and disk are used for",
     .subcommands = kSubcommands},
};
constexpr auto kRows = contract::family(kServerFamily, kTable);

}  // namespace

std::span<const CommandRow> memory_rows() {
  return kRows;
}

}  // namespace ingot::commands
