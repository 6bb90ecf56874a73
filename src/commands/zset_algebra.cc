// Several sorted sets, or sets, at once: ZUNION, ZINTER, ZDIFF, their STORE forms, ZINTERCARD.
#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/families.h"
#include "src/commands/sorted_reply.h"
#include "src/commands/store_result.h"
#include "src/commands/zset_key.h"
#include "src/contract/thresholds.h"
#include "src/data/spill_sort.h"
#include "src/types/combination.h"
#include "src/types/member_table.h"
#include "src/types/sorted_set_builder.h"
#include "src/types/sorted_set_bytes.h"

namespace ingot::commands {
namespace {

using types::Combination;
using types::Record;

using Aggregate = Combination::Aggregate;
using Operation = Combination::Operation;

struct Query {
  std::vector<types::CombinedSource> sources;
  Aggregate aggregate = Aggregate::kSum;
  bool with_scores = false;
  int64_t limit = 0;
};

struct Form {
  std::string_view command;
  Operation operation;
  bool stores = false;
  bool counts = false;  // ZINTERCARD
};

void read_weights(ArgReader& options, Query* query) {
  for (types::CombinedSource& source : query->sources) {
    source.weight = options.real("ERR weight value is not a float");
  }
}

// Options behind the keys; latches errors.
void read_options(ArgReader& options, const Form& form, Query* query) {
  const bool aggregates = form.operation != Operation::kDifference && !form.counts;
  while (options.more()) {
    if (aggregates && options.word("weights", query->sources.size())) {
      read_weights(options, query);
    } else if (aggregates && options.word("aggregate", 1)) {
      const auto aggregate = options.choice<Aggregate>(
          {{"sum", Aggregate::kSum}, {"min", Aggregate::kMin}, {"max", Aggregate::kMax}});
      if (!aggregate) options.fail(contract::error::kSyntax);
      query->aggregate = aggregate.value_or(Aggregate::kSum);
    } else if (!form.stores && !form.counts && options.word("withscores")) {
      query->with_scores = true;
    } else if (form.counts && options.word("limit", 1)) {
      query->limit = options.integer_between(0, std::numeric_limits<int64_t>::max(),
                                             "ERR LIMIT can't be negative");
    } else {
      options.fail(contract::error::kSyntax);
    }
  }
}

// The sets and sorted sets of these keys.
std::vector<types::CombinedSource> find_sources(types::KeyReader& keys, int db, Args names,
                                                bool* wrong_type) {
  std::vector<types::CombinedSource> sources;
  for (const std::string_view name : names) {
    Record record;
    sources.emplace_back();
    if (!keys.find(db, name, &record)) continue;
    *wrong_type = *wrong_type || (record.type() != storage::ValueType::kSortedSet &&
                                  record.type() != storage::ValueType::kSet);
    sources.back().record = std::move(record);
  }
  return sources;
}

// `args` begin with the number of keys. False when an error was answered.
template <typename Context>
bool read_query(Context& ctx, Args args, const Form& form, Query* query) {
  const std::string none =
      "ERR at least 1 input key is needed for '" + std::string(form.command) + "' command";
  ArgReader reader(args, 0);
  const Args names = reader.counted({.not_number = contract::error::kNotInteger, .too_few = none});
  bool wrong_type = false;
  query->sources = find_sources(ctx.keys, ctx.db, names, &wrong_type);
  if (wrong_type) reader.fail(contract::error::kWrongType);
  read_options(reader, form, query);
  if (reader.failed()) ctx.reply.error(reader.error());
  return !reader.failed();
}

// The result in the order of the scores: the items of a sorted set, "-" where the score is -0.
std::shared_ptr<data::SpillSort> sort_result(data::Services& services, storage::Reader& data,
                                             const Combination& combination, size_t* longest) {
  auto sorted = std::make_shared<data::SpillSort>(services);
  combination.walk(data, {}, [&](std::string_view element, double score) {
    const std::string_view member = types::member_of_element(element);
    *longest = std::max(*longest, member.size());
    sorted->add(types::item_of(score, member), types::needs_mark(score) ? "-" : "");
    return true;
  });
  const storage::Status status = sorted->finish();
  if (!status.ok()) data.latch_error(status);
  return sorted;
}

void write_item(ReplySink& reply, bool with_score, std::string_view item, std::string_view mark) {
  if (with_score && reply.version() > 2) reply.array(2);
  reply.bulk(item.substr(types::kScoreBytes));
  if (with_score) reply.real(types::score_of(item, !mark.empty()));
}

void reply_result(ReadContext& ctx, Args args, const Form& form) {
  Query query;
  if (!read_query(ctx, args.subspan(1), form, &query)) return;
  storage::Reader& data = ctx.keys.data();
  const Combination combination(data, form.operation, std::move(query.sources), query.aggregate);
  if (combination.members() > contract::kVisitedOnIoThread &&
      !data.begin_walk(combination.members()))
    return;
  if (form.counts) {
    int64_t found = 0;
    combination.walk(data, {}, [&](std::string_view, double) { return ++found != query.limit; });
    return ctx.reply.integer(found);
  }
  size_t longest = 0;
  const auto sorted = sort_result(ctx.data, data, combination, &longest);
  const bool scores = query.with_scores;
  const uint64_t size = sorted->size();
  ctx.reply.array(scores && ctx.reply.version() == 2 ? 2 * size : size);
  reply_sorted(ctx, sorted, {.count = size},
               [scores](storage::Reader&, std::string_view item, std::string_view mark,
                        ReplySink& reply) { write_item(reply, scores, item, mark); });
}

void zunion(ReadContext& ctx, Args args) {
  reply_result(ctx, args, {.command = "zunion", .operation = Operation::kUnion});
}
void zinter(ReadContext& ctx, Args args) {
  reply_result(ctx, args, {.command = "zinter", .operation = Operation::kIntersection});
}
void zdiff(ReadContext& ctx, Args args) {
  reply_result(ctx, args, {.command = "zdiff", .operation = Operation::kDifference});
}
void zintercard(ReadContext& ctx, Args args) {
  reply_result(ctx, args,
               {.command = "zintercard", .operation = Operation::kIntersection, .counts = true});
}

types::BuiltValue build_result(data::Services& services, storage::Reader& data,
                               const Combination& combination, const types::SortedSetLimits& limits,
                               const types::PutElement& put) {
  size_t longest = 0;
  const auto sorted = sort_result(services, data, combination, &longest);
  types::SortedSetBuilder set(limits, put);
  set.expect(sorted->size(), longest);
  const storage::Status status =
      sorted->walk({}, [&](std::string_view item, std::string_view mark) {
        set.add(item.substr(types::kScoreBytes), types::score_of(item, !mark.empty()));
        return true;
      });
  if (!status.ok()) data.latch_error(status);
  return set.finish();
}

void store_combination(WriteContext& ctx, Args args, const Form& form) {
  Query query;
  if (!read_query(ctx, args.subspan(2), form, &query)) return;
  const Args names = args.subspan(3, query.sources.size());
  std::vector<double> weights;
  weights.reserve(query.sources.size());
  for (const types::CombinedSource& source : query.sources) weights.push_back(source.weight);
  const Combination combination(ctx.keys.data(), form.operation, std::move(query.sources));
  store_result(
      ctx,
      {.target = args[1],
       .recipe = {.sources = names, .is_large = combination.members() > contract::kMadeByWriter},
       .kind = notify::kZset,
       .event = form.command},
      [&services = ctx.data, db = ctx.db, operation = form.operation, aggregate = query.aggregate,
       weights = std::move(weights), limits = zset_limits(ctx),
       keys_of = std::vector<std::string>(names.begin(), names.end())](
          types::KeyReader& keys, const types::PutElement& put) {
        const std::vector<std::string_view> views(keys_of.begin(), keys_of.end());
        bool wrong_type = false;
        auto sources = find_sources(keys, db, views, &wrong_type);
        // Then the keys have changed since, and the command runs again.
        if (wrong_type) return types::BuiltValue{};
        for (size_t i = 0; i < sources.size(); ++i) sources[i].weight = weights[i];
        const Combination result(keys.data(), operation, std::move(sources), aggregate);
        return build_result(services, keys.data(), result, limits, put);
      });
}

void zunionstore(WriteContext& ctx, Args args) {
  store_combination(ctx, args,
                    {.command = "zunionstore", .operation = Operation::kUnion, .stores = true});
}
void zinterstore(WriteContext& ctx, Args args) {
  store_combination(
      ctx, args, {.command = "zinterstore", .operation = Operation::kIntersection, .stores = true});
}
void zdiffstore(WriteContext& ctx, Args args) {
  store_combination(ctx, args,
                    {.command = "zdiffstore", .operation = Operation::kDifference, .stores = true});
}

constexpr CommandRow kTable[] = {
    {.name = "zdiff",
     .arity = -3,
     .flags = flag::kReadonly | flag::kMovableKeys,
     .keys = {{.flags = key::kRo | key::kAccess,
               .begin = 1,
               .find = contract::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .since = "6.2.0",
     .complexity = "O(N) with N members of the first set, times the number of sets",
     .summary = "What is in one sorted set and in no other",
     .arguments = "numkeys:integer key:key#0* withscores:pure-token=WITHSCORES?",
     .handler = zdiff},
    {.name = "zdiffstore",
     .arity = -4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kMovableKeys,
     .keys = {key_at(1, key::kOw | key::kUpdate),
              {.flags = key::kRo | key::kAccess,
               .begin = 2,
               .find = contract::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .since = "6.2.0",
     .complexity = "O(N) with N members of the first set, times the number of sets",
     .summary = "Keep what is in one sorted set and in no other",
     .arguments = "destination:key#0 numkeys:integer key:key#1*",
     .handler = zdiffstore},
    {.name = "zinter",
     .arity = -3,
     .flags = flag::kReadonly | flag::kMovableKeys,
     .keys = {{.flags = key::kRo | key::kAccess,
               .begin = 1,
               .find = contract::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .since = "6.2.0",
     .complexity = "O(N) with N members of the smallest set, times the number of sets",
     .summary = "What is in all of several sorted sets",
     .arguments = "numkeys:integer key:key#0* weight:integer=WEIGHTS?* "
                  "aggregate:oneof=AGGREGATE?(sum:pure-token=SUM min:pure-token=MIN "
                  "max:pure-token=MAX) withscores:pure-token=WITHSCORES?",
     .handler = zinter},
    {.name = "zintercard",
     .arity = -3,
     .flags = flag::kReadonly | flag::kMovableKeys,
     .keys = {{.flags = key::kRo | key::kAccess,
               .begin = 1,
               .find = contract::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .since = "7.0.0",
     .complexity = "O(N) with N members of the smallest set, times the number of sets",
     .summary = "How many members are in all of several sorted sets",
     .arguments = "numkeys:integer key:key#0* limit:integer=LIMIT?",
     .handler = zintercard},
    {.name = "zinterstore",
     .arity = -4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kMovableKeys,
     .keys = {key_at(1, key::kOw | key::kUpdate),
              {.flags = key::kRo | key::kAccess,
               .begin = 2,
               .find = contract::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .since = "2.0.0",
     .complexity = "O(N) with N members of the smallest set, times the number of sets",
     .summary = "Keep what is in all of several sorted sets",
     .arguments =
         "destination:key#0 numkeys:integer key:key#1* weight:integer=WEIGHTS?* "
         "aggregate:oneof=AGGREGATE?(sum:pure-token=SUM min:pure-token=MIN max:pure-token=MAX)",
     .handler = zinterstore},
    {.name = "zunion",
     .arity = -3,
     .flags = flag::kReadonly | flag::kMovableKeys,
     .keys = {{.flags = key::kRo | key::kAccess,
               .begin = 1,
               .find = contract::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .since = "6.2.0",
     .complexity = "O(N log N) with N members of all sets",
     .summary = "What is in any of several sorted sets",
     .arguments = "numkeys:integer key:key#0* weight:integer=WEIGHTS?* "
                  "aggregate:oneof=AGGREGATE?(sum:pure-token=SUM min:pure-token=MIN "
                  "max:pure-token=MAX) withscores:pure-token=WITHSCORES?",
     .handler = zunion},
    {.name = "zunionstore",
     .arity = -4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kMovableKeys,
     .keys = {key_at(1, key::kOw | key::kUpdate),
              {.flags = key::kRo | key::kAccess,
               .begin = 2,
               .find = contract::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .since = "2.0.0",
     .complexity = "O(N log N) with N members of all sets",
     .summary = "Keep what is in any of several sorted sets",
     .arguments =
         "destination:key#0 numkeys:integer key:key#1* weight:integer=WEIGHTS?* "
         "aggregate:oneof=AGGREGATE?(sum:pure-token=SUM min:pure-token=MIN max:pure-token=MAX)",
     .handler = zunionstore},
};
constexpr auto kRows = contract::family(kSortedSetFamily, kTable);

}  // namespace

std::span<const CommandRow> zset_algebra_rows() {
  return kRows;
}

}  // namespace ingot::commands
