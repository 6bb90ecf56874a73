// Several sorted sets, or sets, at once: ZUNION, ZINTER, ZDIFF, their STORE forms, ZINTERCARD.
#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/command/args.h"
#include "src/command/context.h"
#include "src/commands/families.h"
#include "src/commands/zset_key.h"
#include "src/types/set.h"

namespace ingot::commands {
namespace {

namespace acl = command::acl;
namespace flag = command::flag;
namespace key = command::key;
namespace notify = types::notify;
using command::ArgReader;
using command::Args;
using command::CommandRow;
using command::key_at;
using command::ReadContext;
using command::WriteContext;
using types::Record;
using types::ScoredMember;

// More members than this, in all sources together, are no longer a short command.
constexpr uint64_t kShortWork = 512;

// A sorted set, or a set whose members all have the score 1, with the weight of its scores.
class Source {
 public:
  Source(storage::Reader& data, const Record& record) {
    if (record.type() == storage::ValueType::kSet) {
      set_.emplace(data, record);
    } else {
      zset_.emplace(data, record);
    }
  }

  double weight = 1;

  uint64_t size() const { return set_ ? set_->size() : zset_->size(); }
  // With its weight.
  std::optional<double> score(std::string_view member) {
    if (!set_) {
      const auto score = zset_->score(member);
      return score ? std::optional(weighted(*score)) : std::nullopt;
    }
    return set_->contains(member) ? std::optional(weighted(1)) : std::nullopt;
  }
  void walk(const types::SortedSetReader::Each& each) {
    if (set_) {
      set_->walk([&](std::string_view member) { return each(member, weighted(1)); });
    } else {
      zset_->walk(
          [&](std::string_view member, double score) { return each(member, weighted(score)); });
    }
  }

 private:
  double weighted(double score) const {
    const double value = weight * score;
    return std::isnan(value) ? 0 : value;  // infinity times zero
  }

  std::optional<types::SetReader> set_;
  std::optional<types::SortedSetReader> zset_;
};

enum class Aggregate : uint8_t { kSum, kMin, kMax };

enum class Operation : uint8_t { kUnion, kIntersection, kDifference };

struct Query {
  std::deque<Record> records;
  std::vector<std::unique_ptr<Source>> sources;  // null: no such key
  Aggregate aggregate = Aggregate::kSum;
  bool with_scores = false;
  int64_t limit = 0;
};

double combine(Aggregate aggregate, double a, double b) {
  switch (aggregate) {
    case Aggregate::kSum:
      return std::isnan(a + b) ? 0 : a + b;  // infinity minus infinity
    case Aggregate::kMin:
      return std::min(a, b);
    case Aggregate::kMax:
      return std::max(a, b);
  }
  return a;
}

struct Form {
  std::string_view command;
  Operation operation;
  bool stores = false;
  bool counts = false;  // ZINTERCARD
};

void read_weights(ArgReader& options, Query* query) {
  for (auto& source : query->sources) {
    const double weight = options.real("ERR weight value is not a float");
    if (source) source->weight = weight;
  }
}

// Options behind the keys; latches errors.
void read_options(ArgReader& options, const Form& form, Query* query) {
  const bool aggregates = form.operation != Operation::kDifference && !form.counts;
  while (options.more()) {
    if (aggregates && options.left() > query->sources.size() && options.word("weights")) {
      read_weights(options, query);
    } else if (aggregates && options.left() >= 2 && options.word("aggregate")) {
      if (options.word("sum")) {
        query->aggregate = Aggregate::kSum;
      } else if (options.word("min")) {
        query->aggregate = Aggregate::kMin;
      } else if (options.word("max")) {
        query->aggregate = Aggregate::kMax;
      } else {
        options.fail(command::error::kSyntax);
      }
    } else if (!form.stores && !form.counts && options.word("withscores")) {
      query->with_scores = true;
    } else if (form.counts && options.left() >= 2 && options.word("limit")) {
      query->limit = options.integer_between(0, std::numeric_limits<int64_t>::max(),
                                             "ERR LIMIT can't be negative");
    } else {
      options.fail(command::error::kSyntax);
    }
  }
}

// `args` begin with the number of keys. False when an error was answered, or the command must run
// elsewhere.
template <typename Context>
bool read_query(Context& ctx, Args args, const Form& form, Query* query) {
  const auto count = command::parse_integer(args[0]);
  if (!count) {
    ctx.reply.error(command::error::kNotInteger);
    return false;
  }
  if (*count < 1) {
    ctx.reply.error("ERR at least 1 input key is needed for '" + std::string(form.command) +
                    "' command");
    return false;
  }
  if (static_cast<uint64_t>(*count) > args.size() - 1) {
    ctx.reply.error(command::error::kSyntax);
    return false;
  }
  const auto keys = static_cast<size_t>(*count);
  uint64_t members = 0;
  for (const std::string_view name : args.subspan(1, keys)) {
    Record& record = query->records.emplace_back();
    if (!ctx.keys.find(ctx.db, name, &record)) {
      query->sources.push_back(nullptr);
      continue;
    }
    if (record.type() != storage::ValueType::kSet &&
        record.type() != storage::ValueType::kSortedSet) {
      ctx.reply.error(command::error::kWrongType);
      return false;
    }
    query->sources.push_back(std::make_unique<Source>(ctx.keys.data(), record));
    members += query->sources.back()->size();
  }
  ArgReader options(args, 1 + keys);
  read_options(options, form, query);
  if (options.failed()) {
    ctx.reply.error(options.error());
    return false;
  }
  return members <= kShortWork || ctx.keys.data().begin_walk();
}

std::vector<Source*> by_size(const Query& query) {
  std::vector<Source*> sources;
  for (const auto& source : query.sources) {
    if (source) sources.push_back(source.get());
  }
  std::ranges::stable_sort(sources, {}, &Source::size);
  return sources;
}

using Scores = std::vector<ScoredMember>;

Scores unite(const Query& query) {
  boost::unordered_flat_map<std::string, double> scores;
  for (Source* source : by_size(query)) {
    source->walk([&](std::string_view member, double score) {
      const auto [at, is_new] = scores.try_emplace(std::string(member), score);
      if (!is_new) at->second = combine(query.aggregate, at->second, score);
      return true;
    });
  }
  Scores result;
  for (auto& [member, score] : scores) result.push_back({.score = score, .member = member});
  return result;
}

Scores intersect(const Query& query) {
  const std::vector<Source*> sources = by_size(query);
  Scores result;
  if (sources.size() != query.sources.size()) return result;
  sources.front()->walk([&](std::string_view member, double score) {
    for (Source* other : std::span(sources).subspan(1)) {
      const auto there = other->score(member);
      if (!there) return true;
      score = combine(query.aggregate, score, *there);
    }
    result.push_back({.score = score, .member = std::string(member)});
    return query.limit == 0 || static_cast<int64_t>(result.size()) < query.limit;
  });
  return result;
}

Scores subtract(const Query& query) {
  Scores result;
  if (!query.sources.front()) return result;
  query.sources.front()->walk([&](std::string_view member, double score) {
    for (const auto& other : std::span(query.sources).subspan(1)) {
      if (other && other->score(member)) return true;
    }
    result.push_back({.score = score, .member = std::string(member)});
    return true;
  });
  return result;
}

Scores evaluate(const Query& query, Operation operation) {
  Scores result = operation == Operation::kUnion          ? unite(query)
                  : operation == Operation::kIntersection ? intersect(query)
                                                          : subtract(query);
  std::ranges::sort(result, [](const ScoredMember& a, const ScoredMember& b) {
    return a.score != b.score ? a.score < b.score : a.member < b.member;
  });
  return result;
}

void reply_result(ReadContext& ctx, Args args, const Form& form) {
  Query query;
  if (!read_query(ctx, args.subspan(1), form, &query)) return;
  const Scores result = evaluate(query, form.operation);
  if (form.counts) return ctx.reply.integer(static_cast<int64_t>(result.size()));
  const bool nested = query.with_scores && ctx.reply.version() > 2;
  ctx.reply.array(query.with_scores && !nested ? 2 * result.size() : result.size());
  for (const ScoredMember& each : result) {
    if (nested) ctx.reply.array(2);
    ctx.reply.bulk(each.member);
    if (query.with_scores) ctx.reply.real(each.score);
  }
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

void store_result(WriteContext& ctx, Args args, const Form& form) {
  Query query;
  if (!read_query(ctx, args.subspan(2), form, &query)) return;
  const Scores result = evaluate(query, form.operation);
  Record before;
  const bool exists = ctx.keys.peek(ctx.db, args[1], &before);
  types::SortedSetWriter target(ctx.keys, ctx.db, args[1], exists ? &before : nullptr,
                                zset_limits(ctx), /*fresh=*/true);
  size_t longest = 0;
  for (const ScoredMember& each : result) longest = std::max(longest, each.member.size());
  target.expect(result.size(), longest);
  for (const ScoredMember& each : result) target.put(each.member, each.score);
  if (target.finish()) {
    ctx.keys.notify(notify::kZset, form.command, ctx.db, args[1]);
  } else if (exists) {
    ctx.keys.notify(notify::kGeneric, "del", ctx.db, args[1]);
  }
  ctx.reply.integer(static_cast<int64_t>(target.size()));
}

void zunionstore(WriteContext& ctx, Args args) {
  store_result(ctx, args,
               {.command = "zunionstore", .operation = Operation::kUnion, .stores = true});
}
void zinterstore(WriteContext& ctx, Args args) {
  store_result(ctx, args,
               {.command = "zinterstore", .operation = Operation::kIntersection, .stores = true});
}
void zdiffstore(WriteContext& ctx, Args args) {
  store_result(ctx, args,
               {.command = "zdiffstore", .operation = Operation::kDifference, .stores = true});
}

constexpr CommandRow kRows[] = {
    {.name = "zdiff",
     .arity = -3,
     .flags = flag::kReadonly | flag::kMovableKeys,
     .acl = acl::kRead | acl::kSortedSet | acl::kSlow,
     .keys = {{.flags = key::kRo | key::kAccess,
               .begin = 1,
               .find = command::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .group = "sorted-set",
     .since = "6.2.0",
     .complexity = "O(N) with N members of the first set, times the number of sets",
     .summary = "What is in one sorted set and in no other",
     .arguments = "numkeys:integer key:key#0* withscores:pure-token=WITHSCORES?",
     .handler = zdiff},
    {.name = "zdiffstore",
     .arity = -4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kMovableKeys,
     .acl = acl::kWrite | acl::kSortedSet | acl::kSlow,
     .keys = {key_at(1, key::kOw | key::kUpdate),
              {.flags = key::kRo | key::kAccess,
               .begin = 2,
               .find = command::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .group = "sorted-set",
     .since = "6.2.0",
     .complexity = "O(N) with N members of the first set, times the number of sets",
     .summary = "Keep what is in one sorted set and in no other",
     .arguments = "destination:key#0 numkeys:integer key:key#1*",
     .handler = zdiffstore},
    {.name = "zinter",
     .arity = -3,
     .flags = flag::kReadonly | flag::kMovableKeys,
     .acl = acl::kRead | acl::kSortedSet | acl::kSlow,
     .keys = {{.flags = key::kRo | key::kAccess,
               .begin = 1,
               .find = command::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .group = "sorted-set",
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
     .acl = acl::kRead | acl::kSortedSet | acl::kSlow,
     .keys = {{.flags = key::kRo | key::kAccess,
               .begin = 1,
               .find = command::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .group = "sorted-set",
     .since = "7.0.0",
     .complexity = "O(N) with N members of the smallest set, times the number of sets",
     .summary = "How many members are in all of several sorted sets",
     .arguments = "numkeys:integer key:key#0* limit:integer=LIMIT?",
     .handler = zintercard},
    {.name = "zinterstore",
     .arity = -4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kMovableKeys,
     .acl = acl::kWrite | acl::kSortedSet | acl::kSlow,
     .keys = {key_at(1, key::kOw | key::kUpdate),
              {.flags = key::kRo | key::kAccess,
               .begin = 2,
               .find = command::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .group = "sorted-set",
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
     .acl = acl::kRead | acl::kSortedSet | acl::kSlow,
     .keys = {{.flags = key::kRo | key::kAccess,
               .begin = 1,
               .find = command::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .group = "sorted-set",
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
     .acl = acl::kWrite | acl::kSortedSet | acl::kSlow,
     .keys = {key_at(1, key::kOw | key::kUpdate),
              {.flags = key::kRo | key::kAccess,
               .begin = 2,
               .find = command::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .group = "sorted-set",
     .since = "2.0.0",
     .complexity = "O(N log N) with N members of all sets",
     .summary = "Keep what is in any of several sorted sets",
     .arguments =
         "destination:key#0 numkeys:integer key:key#1* weight:integer=WEIGHTS?* "
         "aggregate:oneof=AGGREGATE?(sum:pure-token=SUM min:pure-token=MIN max:pure-token=MAX)",
     .handler = zunionstore},
};

}  // namespace

std::span<const CommandRow> zset_algebra_rows() {
  return kRows;
}

}  // namespace ingot::commands
