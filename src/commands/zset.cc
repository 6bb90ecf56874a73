// Members of sorted sets: ZADD, ZSCORE, ZRANK, ZREM and their relatives.
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/commands/families.h"
#include "src/commands/large_removal.h"
#include "src/commands/zset_addition.h"
#include "src/commands/zset_key.h"
#include "src/types/sorted_set_builder.h"

namespace ingot::commands {
namespace {

AddOptions read_add_options(ArgReader& reader) {
  AddOptions options;
  while (reader.flag({{"nx", &options.nx},
                      {"xx", &options.xx},
                      {"gt", &options.gt},
                      {"lt", &options.lt},
                      {"ch", &options.changed},
                      {"incr", &options.increment}})) {
  }
  return options;
}

std::string_view refusal(const AddOptions& options, size_t words) {
  if (words == 0 || words % 2 != 0) return contract::error::kSyntax;
  if (options.nx && options.xx) {
    return "ERR XX and NX options at the same time are not compatible";
  }
  if ((options.nx && (options.gt || options.lt)) || (options.gt && options.lt)) {
    return "ERR GT, LT, and/or NX options at the same time are not compatible";
  }
  if (options.increment && words > 2) {
    return "ERR INCR option supports a single increment-element pair";
  }
  return {};
}

void increment_score(WriteContext& ctx, std::string_view name, Args pair,
                     const AddOptions& options) {
  auto score = contract::parse_double(pair[0]);
  if (!score) return ctx.reply.error(contract::error::kNotFloat);
  auto set = open_zset(ctx, name);
  if (!set) return;
  const std::optional<double> old = set->score(pair[1]);
  const Added what = added(options, old, &*score);
  if (what == Added::kNotANumber) {
    return ctx.reply.error("ERR resulting score is not a number (NaN)");
  }
  if (what == Added::kNew || what == Added::kUpdated) {
    set->put(pair[1], *score, old);
    set->finish();
    ctx.keys.notify(notify::kZset, "zincr", ctx.db, name);
  }
  what == Added::kNothing ? ctx.reply.null() : ctx.reply.real(*score);
}

void add(WriteContext& ctx, std::string_view name, Args pairs, const AddOptions& options) {
  std::vector<double> scores;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const auto score = contract::parse_double(pairs[i]);
    if (!score) return ctx.reply.error(contract::error::kNotFloat);
    scores.push_back(*score);
  }
  auto set = open_zset(ctx, name);
  if (!set) return;
  const auto change = add_members(ctx, name, set, {pairs, 2}, std::move(scores), options);
  if (!change) return;
  ctx.changes = change->changes;
  ctx.reply.integer(change->answer);
}

void zadd(WriteContext& ctx, Args args) {
  ArgReader reader(args, 2);
  const AddOptions options = read_add_options(reader);
  const Args pairs = reader.rest();
  if (const auto error = refusal(options, pairs.size()); !error.empty()) {
    return ctx.reply.error(error);
  }
  (options.increment ? increment_score : add)(ctx, args[1], pairs, options);
}

void zincrby(WriteContext& ctx, Args args) {
  increment_score(ctx, args[1], args.subspan(2), {.increment = true});
}

void zrem(WriteContext& ctx, Args args) {
  auto set = open_zset(ctx, args[1]);
  if (!set) return;
  const auto removed = remove_named(
      ctx, args, set, contract::kRemovedSingly, zset_limits(ctx),
      [limits = zset_limits(ctx)](types::KeyReader& keys, const types::Record& record,
                                  const types::PutElement& put, const auto& is_gone) {
        return types::rest_of_sorted_set(
            keys.data(), record, limits, put,
            [&](uint64_t, std::string_view member, double) { return is_gone(member); });
      });
  if (!removed) return;
  if (removed->count != 0) tell_zset_removal(ctx, args[1], "zrem", removed->left);
  ctx.changes = removed->count;
  ctx.reply.integer(static_cast<int64_t>(removed->count));
}

void zcard(ReadContext& ctx, Args args) {
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  ctx.reply.integer(static_cast<int64_t>(set->size()));
}

void reply_score(ReadContext& ctx, std::optional<double> score) {
  score ? ctx.reply.real(*score) : ctx.reply.null();
}

void zscore(ReadContext& ctx, Args args) {
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  reply_score(ctx, set->score(args[2]));
}

void zmscore(ReadContext& ctx, Args args) {
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  ctx.reply.array(args.size() - 2);
  for (const std::string_view member : args.subspan(2)) reply_score(ctx, set->score(member));
}

void reply_rank(ReadContext& ctx, Args args, bool reverse) {
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  const auto rank = set->rank(args[2]);
  if (!rank) return ctx.reply.null();
  ctx.reply.integer(static_cast<int64_t>(reverse ? set->size() - 1 - *rank : *rank));
}

void zrank(ReadContext& ctx, Args args) {
  reply_rank(ctx, args, false);
}
void zrevrank(ReadContext& ctx, Args args) {
  reply_rank(ctx, args, true);
}

constexpr CommandRow kTable[] = {
    {.name = "zadd",
     .arity = -4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "1.2.0",
     .complexity = "O(N log M) with N members added to M",
     .summary = "Add members with scores, or change scores",
     .history = "2.4.0: Several members at once.; 3.0.2: `XX`, `NX`, `CH` and `INCR`.; 6.2.0: `GT` "
                "and `LT`.",
     .arguments =
         "key:key#0 condition:oneof@3.0.2?(nx:pure-token=NX xx:pure-token=XX) "
         "comparison:oneof@6.2.0?(gt:pure-token=GT lt:pure-token=LT) change:pure-token=CH@3.0.2? "
         "increment:pure-token=INCR@3.0.2? score_member:block*(score:double member:string)",
     .handler = zadd},
    {.name = "zcard",
     .arity = 2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo)},
     .since = "1.2.0",
     .complexity = "O(1)",
     .summary = "How many members a sorted set has",
     .arguments = "key:key#0",
     .handler = zcard},
    {.name = "zincrby",
     .arity = 4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kUpdate)},
     .since = "1.2.0",
     .complexity = "O(log N)",
     .summary = "Add to the score of a member",
     .arguments = "key:key#0 increment:integer member:string",
     .handler = zincrby},
    {.name = "zmscore",
     .arity = -3,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "6.2.0",
     .complexity = "O(N) with N members asked for",
     .summary = "The scores of members",
     .arguments = "key:key#0 member:string*",
     .handler = zmscore},
    {.name = "zrank",
     .arity = 3,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.0.0",
     .complexity = "O(log N)",
     .summary = "How many members have a lower place",
     .arguments = "key:key#0 member:string",
     .handler = zrank},
    {.name = "zrem",
     .arity = -3,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kDelete)},
     .since = "1.2.0",
     .complexity = "O(N log M) with N members removed from M",
     .summary = "Remove members from a sorted set",
     .history = "2.4.0: Several members at once.",
     .arguments = "key:key#0 member:string*",
     .handler = zrem},
    {.name = "zrevrank",
     .arity = 3,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.0.0",
     .complexity = "O(log N)",
     .summary = "How many members have a higher place",
     .arguments = "key:key#0 member:string",
     .handler = zrevrank},
    {.name = "zscore",
     .arity = 3,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "1.2.0",
     .complexity = "O(1)",
     .summary = "The score of a member",
     .arguments = "key:key#0 member:string",
     .handler = zscore},
};
constexpr auto kRows = contract::family(kSortedSetFamily, kTable);

}  // namespace

std::optional<types::ScoreBound> parse_score_bound(std::string_view text) {
  const bool exclusive = text.starts_with('(');
  if (exclusive) text.remove_prefix(1);
  // Redis reads these with strtod(): spaces before the number and an empty text are taken, and
  // what stands behind a zero byte is not seen.
  const std::string copy(text);
  char* end = nullptr;
  const double score = std::strtod(copy.c_str(), &end);
  if (*end != '\0' || std::isnan(score)) return std::nullopt;
  return types::ScoreBound{.score = score, .exclusive = exclusive};
}

std::optional<types::LexBound> parse_lex_bound(std::string_view text) {
  using Kind = types::LexBound::Kind;
  if (text == "-") return types::LexBound{.kind = Kind::kFirst};
  if (text == "+") return types::LexBound{.kind = Kind::kLast};
  if (!text.starts_with('(') && !text.starts_with('[')) return std::nullopt;
  return types::LexBound{.member = text.substr(1), .exclusive = text.front() == '('};
}

std::span<const CommandRow> zset_rows() {
  return kRows;
}

}  // namespace ingot::commands
