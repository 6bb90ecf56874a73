// MEMORY: what a value takes, and giving memory back.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "src/commands/families.h"
#include "src/contract/help.h"
#include "src/script/scripts.h"
#include "src/server/memory_usage.h"
#include "src/types/list_node.h"

namespace ingot::commands {
namespace {

using storage::Space;

constexpr int64_t kSamples = 5;  // Redis' default

uint64_t elements_in(const types::Record& record, std::string_view stored) {
  return record.type() == storage::ValueType::kList ? types::elements_in(stored) : 1;
}

// The elements of a collection: those looked at, and the rest as large as they are.
uint64_t collection_bytes(ReadContext& ctx, const types::Record& record, uint64_t samples) {
  const storage::Metadata::Collection& collection = *record.collection();
  const auto at = ctx.keys.data().cursor(Space::kData, storage::collection_begin(collection.id),
                                         storage::collection_end(collection.id));
  uint64_t bytes = 0;
  uint64_t seen = 0;
  for (at->seek(storage::collection_begin(collection.id)); at->valid() && seen < samples;
       at->next()) {
    bytes += at->key().size() + at->value().size();
    seen += elements_in(record, at->value());
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
      bytes += collection_bytes(ctx, record, static_cast<uint64_t>(samples));
      // Members and scores stand in the order, too.
      if (record.type() == storage::ValueType::kSortedSet) bytes *= 2;
    }
  }
  ctx.reply.integer(static_cast<int64_t>(bytes));
}

double part_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
int64_t difference(uint64_t larger, uint64_t smaller) {
  return static_cast<int64_t>(larger) - static_cast<int64_t>(smaller);
}

// What part of Redis' memory has a counterpart here stands in RunningServer::memory_figures();
// there are neither hash tables of keys nor buffers of replicas, nodes or an append-only file.
void memory_stats(ReadContext& ctx, Args) {
  struct Database {
    int number;
    storage::KeyCounts counts;
  };
  std::vector<Database> databases;
  uint64_t keys = 0;
  for (size_t db = 0; db < ctx.keys.databases().size(); ++db) {
    const storage::KeyCounts counts = ctx.keys.counts(static_cast<int>(db));
    if (counts.keys == 0) continue;
    databases.push_back({.number = static_cast<int>(db), .counts = counts});
    keys += counts.keys;
  }
  const contract::MemoryFigures memory = ctx.server.memory_figures();
  const uint64_t grown = memory.used - std::min(memory.used, memory.startup);
  ReplySink& reply = ctx.reply;
  const auto number = [&reply](std::string_view name, uint64_t value) {
    reply.bulk(name);
    reply.integer(static_cast<int64_t>(value));
  };
  const auto signed_number = [&reply](std::string_view name, int64_t value) {
    reply.bulk(name);
    reply.integer(value);
  };
  const auto real = [&reply](std::string_view name, double value) {
    reply.bulk(name);
    reply.real(value);
  };
  constexpr uint64_t kFigures = 27;
  reply.map(kFigures + databases.size());
  number("peak.allocated", memory.peak);
  number("total.allocated", memory.used);
  number("startup.allocated", memory.startup);
  number("replication.backlog", 0);
  number("clients.slaves", 0);
  number("clients.normal", memory.clients);
  number("cluster.links", 0);
  number("aof.buffer", 0);
  number("lua.caches", memory.scripts);
  number("functions.caches", memory.functions);
  for (const Database& database : databases) {
    reply.bulk("db." + std::to_string(database.number));
    reply.map(3);
    for (const std::string_view name : {"overhead.hashtable.main", "overhead.hashtable.expires",
                                        "overhead.hashtable.slot-to-keys"}) {
      number(name, 0);
    }
  }
  number("overhead.total", memory.overhead());
  number("keys.count", keys);
  number("keys.bytes-per-key", keys == 0 ? 0 : grown / keys);
  number("dataset.bytes", memory.dataset());
  real("dataset.percentage", std::min(100.0, part_of(memory.dataset(), grown) * 100));
  real("peak.percentage", part_of(memory.used, memory.peak) * 100);
  number("allocator.allocated", memory.used);
  number("allocator.active", memory.allocator_active);
  number("allocator.resident", memory.allocator_resident);
  real("allocator-fragmentation.ratio", part_of(memory.allocator_active, memory.used));
  signed_number("allocator-fragmentation.bytes", difference(memory.allocator_active, memory.used));
  real("allocator-rss.ratio", part_of(memory.allocator_resident, memory.allocator_active));
  signed_number("allocator-rss.bytes",
                difference(memory.allocator_resident, memory.allocator_active));
  real("rss-overhead.ratio", part_of(memory.resident, memory.allocator_resident));
  signed_number("rss-overhead.bytes", difference(memory.resident, memory.allocator_resident));
  real("fragmentation", part_of(memory.resident, memory.used));
  signed_number("fragmentation.bytes", difference(memory.resident, memory.used));
}

// What an operator could do something about.
std::vector<std::string> memory_complaints(const contract::MemoryFigures& memory, size_t clients,
                                           size_t scripts) {
  constexpr uint64_t kWorthALook = 10 << 20;
  constexpr size_t kManyScripts = 1000;
  constexpr uint64_t kClientBytes = 200 << 10;
  std::vector<std::string> found;
  if (!memory.filters_fit) {
    found.emplace_back(
        "The filters of all keys no longer fit the engine's cache, so reads of absent keys need "
        "the disk. Raise maxmemory (or cache-size).");
  }
  if (memory.clients > kClientBytes * std::max<size_t>(clients, 1)) {
    found.push_back(fmt::format(
        "Clients have {} bytes waiting in their buffers, {} for each of them: some send more than "
        "is answered, or do not read. CLIENT LIST tells which (qbuf, omem).",
        memory.clients, memory.clients / std::max<size_t>(clients, 1)));
  }
  if (scripts > kManyScripts) {
    found.push_back(fmt::format(
        "{} scripts are cached. Scripts whose text is made anew for each call should take what "
        "differs as KEYS and ARGV.",
        scripts));
  }
  if (memory.used >= kWorthALook && memory.peak > memory.used + memory.used / 2) {
    found.push_back(fmt::format(
        "The peak was {} bytes, half as much again as the {} of now: after a burst the resident "
        "memory may stay high for a while. MEMORY PURGE gives back what it can.",
        memory.peak, memory.used));
  }
  const uint64_t unused = memory.resident - std::min(memory.resident, memory.used);
  if (unused >= kWorthALook && memory.resident > memory.used + memory.used * 2 / 5) {
    found.push_back(fmt::format(
        "{} bytes are resident beside the {} in use: free space between allocations, or what the "
        "allocator has not given back yet.",
        unused, memory.used));
  }
  return found;
}

void memory_doctor(SessionContext& ctx, Args) {
  const std::vector<std::string> found = memory_complaints(
      ctx.server.memory_figures(), ctx.clients.size(), ctx.scripts.figures().scripts);
  std::string report = found.empty() ? "Memory is used as it should be; nothing to complain of.\n"
                                     : "There is something to look at:\n";
  for (const std::string& complaint : found) report += " * " + complaint + "\n";
  ctx.reply.verbatim("txt", report);
}

void malloc_stats(SessionContext& ctx, Args) {
  ctx.reply.verbatim("txt", server::allocator_report());
}

void purge(SessionContext& ctx, Args) {
  server::return_memory_now();
  ctx.reply.ok();
}

void help(SessionContext& ctx, Args) {
  contract::reply_help(ctx.reply, "MEMORY",
                       {"DOCTOR", "    Return memory problems reports.", "MALLOC-STATS",
                        "    Return internal statistics report from the memory allocator.", "PURGE",
                        "    Attempt to purge dirty pages for reclamation by the allocator.",
                        "STATS", "    Return information about the memory usage of the server.",
                        "USAGE <key> [SAMPLES <count>]",
                        "    Return memory in bytes used by <key> and its value. Nested values are",
                        "    sampled up to <count> times (default: 5, 0 means sample all)."});
}

constexpr CommandRow kSubcommandTable[] = {
    {.name = "doctor",
     .arity = 2,
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "What is wrong with the use of memory, in words",
     .tips = "nondeterministic_output,request_policy:all_shards,response_policy:special",
     .handler = memory_doctor},
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "What the subcommands are for",
     .handler = help,
     .immediate = true},
    {.name = "malloc-stats",
     .arity = 2,
     .since = "4.0.0",
     .complexity = "O(N), N being the allocator's arenas and sizes",
     .summary = "What the allocator tells of itself",
     .tips = "nondeterministic_output,request_policy:all_shards,response_policy:special",
     .handler = malloc_stats,
     .offload = true},
    {.name = "purge",
     .arity = 2,
     .since = "4.0.0",
     .complexity = "O(N) with N the unused pages",
     .summary = "Give unused memory back to the system",
     .tips = "request_policy:all_shards,response_policy:all_succeeded",
     .handler = purge,
     .offload = true},
    {.name = "stats",
     .arity = 2,
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "What memory is used for, as figures",
     .tips = "nondeterministic_output,request_policy:all_shards,response_policy:special",
     .handler = memory_stats,
     .scans = true},
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
