// Estimated cardinalities: PFADD, PFCOUNT, PFMERGE, PFDEBUG, PFSELFTEST. Their values are strings.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "src/commands/families.h"
#include "src/settings/config.h"
#include "src/types/hyperloglog_bytes.h"
#include "src/types/string_value.h"

namespace ingot::commands {
namespace {

using types::HllRegisters;
using types::HyperLogLog;
using types::Record;

constexpr std::string_view kCorrupt = "INVALIDOBJ Corrupted HLL object detected";
constexpr std::string_view kNotOne = "WRONGTYPE Key is not a valid HyperLogLog string value.";

// A key's HyperLogLog.
struct Loaded {
  bool found = false;
  Record record;
  HyperLogLog value;  // empty when there is none
};

// False when the key holds something else, which has been answered.
bool load(WriteContext& ctx, std::string_view key, bool counts_lookup, Loaded* loaded) {
  loaded->found = ctx.keys.peek(ctx.db, key, &loaded->record);
  if (counts_lookup) ctx.keys.tell_lookup(ctx.db, key, loaded->found);
  if (!loaded->found) return true;
  const Record& record = loaded->record;
  if (!types::is_string(record)) {
    ctx.reply.error(contract::error::kWrongType);
    return false;
  }
  const uint64_t length = types::string_length(record);
  std::string bytes;
  types::read_string(ctx.keys.data(), record, 0,
                     std::min<uint64_t>(length, HyperLogLog::kHeadBytes), &bytes);
  if (!HyperLogLog::looks_like(bytes, length)) {
    ctx.reply.error(kNotOne);
    return false;
  }
  if (length > HyperLogLog::kBytesMax) {
    ctx.reply.error(kCorrupt);
    return false;
  }
  types::read_string(ctx.keys.data(), record, bytes.size(), length - bytes.size(), &bytes);
  loaded->value = HyperLogLog(std::move(bytes));
  return true;
}

void store(WriteContext& ctx, std::string_view key, const Loaded& loaded) {
  const std::string& bytes = loaded.value.bytes();
  storage::Metadata after{.type = storage::ValueType::kString,
                          .limit_passed = true,
                          .expire_ms = loaded.found ? loaded.record.expire_ms() : 0};
  if (bytes.size() <= storage::kInlineStringMax) {
    after.payload = bytes;
  } else {
    after.collection = types::add_chunked_string(ctx.keys, bytes);
  }
  ctx.keys.store(ctx.db, key, loaded.found ? &loaded.record : nullptr, after);
}

uint64_t sparse_bytes_max(const WriteContext& ctx) {
  return ctx.config.settings()->hll_sparse_max_bytes;
}

void pfadd(WriteContext& ctx, Args args) {
  Loaded loaded;
  if (!load(ctx, args[1], false, &loaded)) return;
  uint64_t changes = loaded.found ? 0 : 1;
  for (std::string_view element : args.subspan(2)) {
    const HyperLogLog::Change change = loaded.value.add(element, sparse_bytes_max(ctx));
    if (change == HyperLogLog::Change::kCorrupt) return ctx.reply.error(kCorrupt);
    changes += change == HyperLogLog::Change::kDone ? 1 : 0;
  }
  ctx.changes = changes;
  if (changes != 0) {
    loaded.value.forget_estimate();
    store(ctx, args[1], loaded);
    ctx.keys.notify(types::notify::kString, "pfadd", ctx.db, args[1]);
  } else {
    ctx.tell_nothing();
    types::make_raw(ctx.keys, ctx.db, args[1], loaded.record);
  }
  ctx.reply.integer(changes != 0 ? 1 : 0);
}

// Adds the registers of every key there is. False: answered with an error.
bool merge_keys(WriteContext& ctx, Args keys, HllRegisters* registers, bool* any_dense) {
  for (std::string_view name : keys) {
    Loaded loaded;
    if (!load(ctx, name, true, &loaded)) return false;
    if (!loaded.found) continue;
    *any_dense |= loaded.value.is_dense();
    if (!loaded.value.merge_into(registers)) {
      ctx.reply.error(kCorrupt);
      return false;
    }
  }
  return true;
}

// A write, because the estimate is kept in the value.
void pfcount(WriteContext& ctx, Args args) {
  HllRegisters registers{};
  if (args.size() > 2) {
    bool any_dense = false;
    if (!merge_keys(ctx, args.subspan(1), &registers, &any_dense)) return;
    return ctx.reply.integer(static_cast<int64_t>(types::hll_estimate(registers)));
  }
  Loaded loaded;
  if (!load(ctx, args[1], true, &loaded)) return;
  if (!loaded.found) return ctx.reply.integer(0);
  std::optional<uint64_t> estimate = loaded.value.kept_estimate();
  if (!estimate) {
    if (!loaded.value.merge_into(&registers)) return ctx.reply.error(kCorrupt);
    estimate = types::hll_estimate(registers);
    // A replica has its master's bytes, and none of its own.
    if (!ctx.keys.keeps_expired()) {
      loaded.value.keep_estimate(*estimate);
      store(ctx, args[1], loaded);
    }
  }
  ctx.reply.integer(static_cast<int64_t>(*estimate));
}

void pfmerge(WriteContext& ctx, Args args) {
  HllRegisters registers{};
  bool dense = false;
  if (!merge_keys(ctx, args.subspan(1), &registers, &dense)) return;
  Loaded target;
  if (!load(ctx, args[1], false, &target)) return;
  if (dense && !target.value.make_dense()) return ctx.reply.error(kCorrupt);
  for (unsigned index = 0; index < types::kHllRegisters; ++index) {
    if (registers[index] == 0) continue;
    target.value.raise(index, registers[index], sparse_bytes_max(ctx));
  }
  target.value.forget_estimate();
  store(ctx, args[1], target);
  ctx.keys.notify(types::notify::kString, "pfadd", ctx.db, args[1]);
  ctx.reply.ok();
}

// --- PFDEBUG

// Makes the value dense and stores it. False: answered with an error.
bool store_dense(WriteContext& ctx, std::string_view key, Loaded* loaded) {
  if (!loaded->value.make_dense()) {
    ctx.reply.error(kCorrupt);
    return false;
  }
  store(ctx, key, *loaded);
  return true;
}

void reply_registers(WriteContext& ctx, std::string_view key, Loaded* loaded) {
  if (!loaded->value.is_dense() && !store_dense(ctx, key, loaded)) return;
  HllRegisters registers{};
  if (!loaded->value.merge_into(&registers)) return ctx.reply.error(kCorrupt);
  ctx.reply.array(registers.size());
  for (uint8_t value : registers) ctx.reply.integer(value);
}

void reply_runs(WriteContext& ctx, std::string_view, Loaded* loaded) {
  if (loaded->value.is_dense()) return ctx.reply.error("ERR HLL encoding is not sparse");
  ctx.reply.bulk(loaded->value.describe_runs());
}

void reply_encoding(WriteContext& ctx, std::string_view, Loaded* loaded) {
  ctx.reply.simple(loaded->value.is_dense() ? "dense" : "sparse");
}

void to_dense(WriteContext& ctx, std::string_view key, Loaded* loaded) {
  const bool was_sparse = !loaded->value.is_dense();
  if (was_sparse && !store_dense(ctx, key, loaded)) return;
  ctx.reply.integer(was_sparse ? 1 : 0);
}

void pfdebug(WriteContext& ctx, Args args) {
  struct Inspection {
    std::string_view name;
    void (*run)(WriteContext&, std::string_view key, Loaded*);
  };
  constexpr Inspection kInspections[] = {{"getreg", reply_registers},
                                         {"decode", reply_runs},
                                         {"encoding", reply_encoding},
                                         {"todense", to_dense}};
  Loaded loaded;
  if (!load(ctx, args[2], false, &loaded)) return;
  if (!loaded.found) return ctx.reply.error("ERR The specified key does not exist");
  for (const Inspection& subcommand : kInspections) {
    if (contract::equals_ignore_case(args[1], subcommand.name)) {
      return subcommand.run(ctx, args[2], &loaded);
    }
  }
  ctx.reply.error("ERR Unknown PFDEBUG subcommand '" + std::string(args[1]) + "'");
}

// --- PFSELFTEST

// Registers that were raised at random, sparse and dense, against an array.
bool registers_hold() {
  std::mt19937_64 random(1);
  constexpr uint64_t kStaysSparse = HyperLogLog::kBytesMax;
  HyperLogLog sparse;
  HyperLogLog dense;
  if (!dense.make_dense()) return false;
  HllRegisters expected{};
  for (int i = 0; i < 2000; ++i) {
    const auto index = static_cast<unsigned>(random() % types::kHllRegisters);
    const auto rank = static_cast<unsigned>(random() % 32 + 1);
    sparse.raise(index, rank, kStaysSparse);
    dense.raise(index, rank, kStaysSparse);
    expected[index] = std::max(expected[index], static_cast<uint8_t>(rank));
  }
  HllRegisters from_sparse{};
  HllRegisters from_dense{};
  return sparse.merge_into(&from_sparse) && dense.merge_into(&from_dense) &&
         from_sparse == expected && from_dense == expected && !sparse.is_dense();
}

// The estimate of 1 to 10^6 elements is off by less than six standard errors.
bool estimates_are_near() {
  const double error = 6 * 1.04 / std::sqrt(double{types::kHllRegisters});
  constexpr uint64_t kSparseBytesMax = 3000;
  HyperLogLog value;
  uint64_t added = 0;
  for (uint64_t checkpoint = 1; checkpoint <= 1'000'000; checkpoint *= 10) {
    for (; added < checkpoint; ++added) value.add(std::to_string(added), kSparseBytesMax);
    HllRegisters registers{};
    if (!value.merge_into(&registers)) return false;
    const double off = std::fabs(static_cast<double>(types::hll_estimate(registers)) -
                                 static_cast<double>(checkpoint));
    if (off > std::ceil(static_cast<double>(checkpoint) * error)) return false;
  }
  return true;
}

void pfselftest(SessionContext& ctx, Args) {
  if (!registers_hold()) return ctx.reply.error("TESTFAILED registers lose what was put in");
  if (!estimates_are_near()) return ctx.reply.error("TESTFAILED too big an error of the estimate");
  ctx.reply.ok();
}

constexpr CommandRow kTable[] = {
    {.name = "pfadd",
     .arity = -2,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kInsert)},
     .since = "2.8.9",
     .complexity = "O(1) for each element",
     .summary = "Add elements to a HyperLogLog",
     .arguments = "key:key#0 element:string?*",
     .handler = pfadd},
    {.name = "pfcount",
     .arity = -2,
     .flags = flag::kReadonly | flag::kMayReplicate,
     .keys = {{.flags = key::kRw | key::kAccess,
               .begin = 1,
               .last = -1,
               .step = 1,
               .limit = 0,
               .notes = "The estimate that the value keeps may change"}},
     .since = "2.8.9",
     .complexity = "O(N) with N keys; O(1) for one that has not changed",
     .summary = "Estimate how many different elements were added to one or more HyperLogLogs",
     .arguments = "key:key#0*",
     .handler = pfcount},
    {.name = "pfmerge",
     .arity = -2,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kInsert),
              keys_between(2, -1, 1, key::kRo | key::kAccess)},
     .since = "2.8.9",
     .complexity = "O(N) with N keys",
     .summary = "Merge HyperLogLogs into one",
     .arguments = "destkey:key#0 sourcekey:key#1*",
     .handler = pfmerge},
    {.name = "pfdebug",
     .arity = 3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kAdmin,
     .keys = {key_at(2, key::kRw | key::kAccess)},
     .since = "2.8.9",
     .complexity = "O(1)",
     .summary = "Show how a HyperLogLog is kept",
     .arguments = "subcommand:string key:key#0",
     .handler = pfdebug},
    {.name = "pfselftest",
     .arity = 1,
     .flags = flag::kAdmin,
     .since = "2.8.9",
     .complexity = "O(1)",
     .summary = "Check the HyperLogLogs of this server against known results",
     .handler = pfselftest,
     .offload = true},
};
constexpr auto kRows = contract::family(kHyperLogLogFamily, kTable);

}  // namespace

std::span<const CommandRow> hyperloglog_rows() {
  return kRows;
}

}  // namespace ingot::commands
