// Parts of sorted sets by rank, score or member: ZRANGE and its older forms, ZRANGESTORE, ZCOUNT,
// ZLEXCOUNT, ZREMRANGEBY...
//
// Every range becomes a range of ranks first, which the counted order finds without a walk.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/element_reply.h"
#include "src/commands/families.h"
#include "src/commands/large_removal.h"
#include "src/commands/store_result.h"
#include "src/commands/zset_key.h"
#include "src/contract/thresholds.h"
#include "src/types/sorted_set_builder.h"

namespace ingot::commands {
namespace {

using types::RankRange;
using types::Record;
using types::ScoredMember;
using types::SortedSetReader;

enum class By : uint8_t { kUnset, kRank, kScore, kLex };
enum class Direction : uint8_t { kUnset, kForward, kReverse };

struct Query {
  By by = By::kUnset;
  Direction direction = Direction::kUnset;
  bool with_scores = false;
  int64_t offset = 0;
  int64_t limit = -1;
  int64_t start = 0;  // by rank
  int64_t end = 0;
  types::ScoreBound min_score, max_score;
  types::LexBound min_lex, max_lex;

  bool is_reverse() const { return direction == Direction::kReverse; }
};

// The options behind start and end. What the command's name says already is not an option.
std::string read_options(Args options, bool stores, Query* query) {
  ArgReader reader(options, 0);
  while (reader.more()) {
    if (!stores && reader.word("withscores")) {
      query->with_scores = true;
    } else if (reader.word("limit", 2)) {
      query->offset = reader.integer();
      query->limit = reader.integer();
    } else if (query->direction == Direction::kUnset && reader.word("rev")) {
      query->direction = Direction::kReverse;
    } else if (query->by == By::kUnset && reader.word("bylex")) {
      query->by = By::kLex;
    } else if (query->by == By::kUnset && reader.word("byscore")) {
      query->by = By::kScore;
    } else {
      reader.fail(contract::error::kSyntax);
    }
  }
  if (reader.failed()) return reader.error();
  if (query->by == By::kUnset) query->by = By::kRank;
  if (query->limit != -1 && query->by == By::kRank) {
    return "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
  }
  if (query->with_scores && query->by == By::kLex) {
    return "ERR syntax error, WITHSCORES not supported in combination with BYLEX";
  }
  return {};
}

std::string read_bounds(std::string_view min, std::string_view max, Query* query) {
  if (query->by == By::kRank) {
    const auto start = contract::parse_integer(min);
    const auto end = contract::parse_integer(max);
    if (!start || !end) return std::string(contract::error::kNotInteger);
    query->start = *start;
    query->end = *end;
    return {};
  }
  if (query->is_reverse()) std::swap(min, max);
  if (query->by == By::kScore) {
    const auto low = parse_score_bound(min);
    const auto high = parse_score_bound(max);
    if (!low || !high) return std::string(kBadScoreBound);
    query->min_score = *low;
    query->max_score = *high;
    return {};
  }
  const auto low = parse_lex_bound(min);
  const auto high = parse_lex_bound(max);
  if (!low || !high) return std::string(kBadLexBound);
  query->min_lex = *low;
  query->max_lex = *high;
  return {};
}

RankRange by_rank(int64_t start, int64_t end, uint64_t size, bool reverse) {
  const auto length = static_cast<int64_t>(size);
  if (start < 0) start = std::max<int64_t>(0, start + length);
  if (end < 0) end += length;
  if (start > end || start >= length) return {};
  end = std::min(end, length - 1);
  if (reverse) std::tie(start, end) = std::pair(length - 1 - end, length - 1 - start);
  return {.first = static_cast<uint64_t>(start), .end = static_cast<uint64_t>(end) + 1};
}

// Cuts offset and limit off, from the side where the reply begins.
RankRange apply_limit(RankRange ranks, const Query& query) {
  if (query.offset < 0 || static_cast<uint64_t>(query.offset) >= ranks.size()) return {};
  const auto skipped = static_cast<uint64_t>(query.offset);
  (query.is_reverse() ? ranks.end : ranks.first) += query.is_reverse() ? -skipped : skipped;
  if (query.limit >= 0 && static_cast<uint64_t>(query.limit) < ranks.size()) {
    const auto limit = static_cast<uint64_t>(query.limit);
    query.is_reverse() ? ranks.first = ranks.end - limit : ranks.end = ranks.first + limit;
  }
  return ranks;
}

RankRange find_ranks(SortedSetReader& set, const Query& query) {
  switch (query.by) {
    case By::kScore:
      return apply_limit(set.between(query.min_score, query.max_score), query);
    case By::kLex:
      return apply_limit(set.between(query.min_lex, query.max_lex), query);
    default:
      return by_rank(query.start, query.end, set.size(), query.is_reverse());
  }
}

void write_member(ReplySink& reply, bool with_score, std::string_view member, double score) {
  if (with_score && reply.version() > 2) reply.array(2);
  reply.bulk(member);
  if (with_score) reply.real(score);
}

struct RankedReply {
  bool scores, reverse;
  std::string first, last;  // items
};

// Writes the members in a record of the order space, of those from `first` to `last`; how many.
uint64_t write_leaf(ReplySink& reply, std::string_view record, const RankedReply& form) {
  std::vector<std::pair<std::string_view, double>> members;
  (void)types::read_order(record, form.first, form.last,
                          [&](std::string_view member, double score) {
                            members.emplace_back(member, score);
                            return true;
                          });
  if (form.reverse) std::ranges::reverse(members);
  for (const auto& [member, score] : members) write_member(reply, form.scores, member, score);
  return members.size();
}

void reply_ranks(ReadContext& ctx, SortedSetReader& set, const Query& query,
                 const RankRange& ranks) {
  const bool scores = query.with_scores;
  if (ranks.size() >= contract::kVisitedOnIoThread && !ctx.keys.data().begin_walk(ranks.size()))
    return;
  ctx.reply.array(scores && ctx.reply.version() == 2 ? 2 * ranks.size() : ranks.size());
  if (set.is_large() && ranks.size() >= contract::kHeldElements) {
    auto leaves = set.leaves(ranks);
    RankedReply form{.scores = scores,
                     .reverse = query.is_reverse(),
                     .first = std::move(leaves.first),
                     .last = std::move(leaves.last)};
    return reply_elements(
        ctx,
        {.space = storage::Space::kOrder,
         .lower = std::move(leaves.lower),
         .upper = std::move(leaves.upper),
         .reverse = query.is_reverse()},
        ranks.size(),
        [form = std::move(form)](std::string_view, std::string_view record, ReplySink& reply) {
          return write_leaf(reply, record, form);
        });
  }
  set.walk(ranks, query.is_reverse(), [&](std::string_view member, double score) {
    write_member(ctx.reply, scores, member, score);
    return true;
  });
}

void range(ReadContext& ctx, Args args, Query query) {
  std::string error = read_options(args.subspan(4), false, &query);
  if (error.empty()) error = read_bounds(args[2], args[3], &query);
  if (!error.empty()) return ctx.reply.error(error);
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  reply_ranks(ctx, *set, query, find_ranks(*set, query));
}

void zrange(ReadContext& ctx, Args args) {
  range(ctx, args, {});
}
void zrevrange(ReadContext& ctx, Args args) {
  range(ctx, args, {.by = By::kRank, .direction = Direction::kReverse});
}
void zrangebyscore(ReadContext& ctx, Args args) {
  range(ctx, args, {.by = By::kScore, .direction = Direction::kForward});
}
void zrevrangebyscore(ReadContext& ctx, Args args) {
  range(ctx, args, {.by = By::kScore, .direction = Direction::kReverse});
}
void zrangebylex(ReadContext& ctx, Args args) {
  range(ctx, args, {.by = By::kLex, .direction = Direction::kForward});
}
void zrevrangebylex(ReadContext& ctx, Args args) {
  range(ctx, args, {.by = By::kLex, .direction = Direction::kReverse});
}

types::BuiltValue build_range(SortedSetReader& set, const Query& query,
                              const types::SortedSetLimits& limits, const types::PutElement& put) {
  types::SortedSetBuilder target(limits, put);
  const RankRange ranks = find_ranks(set, query);
  // By rank, Redis knows how many there will be before it begins. Otherwise it begins with its
  // packed form, which has no -0: where it goes backward, for the members that come last here.
  const bool backward = query.is_reverse() && query.by != By::kRank;
  if (query.by == By::kRank || backward) target.expect(ranks.size(), 0);
  uint64_t left = ranks.size();
  set.walk(ranks, false, [&](std::string_view member, double score) {
    const bool packed = backward && left-- <= limits.listpack_entries_max;
    target.add(member, packed && score == 0 ? 0 : score);
    return true;
  });
  return target.finish();
}

void zrangestore(WriteContext& ctx, Args args) {
  Query query;
  std::string error = read_options(args.subspan(5), /*stores=*/true, &query);
  if (error.empty()) error = read_bounds(args[3], args[4], &query);
  if (!error.empty()) return ctx.reply.error(error);
  auto set = read_zset(ctx, args[2]);
  if (!set) return;
  store_result(ctx,
               {.target = args[1],
                .recipe = {.sources = args.subspan(2, 1),
                           .is_large = find_ranks(*set, query).size() > contract::kMadeByWriter},
                .kind = notify::kZset,
                .event = "zrangestore"},
               [db = ctx.db, limits = zset_limits(ctx), source = args[2], query](
                   types::KeyReader& keys, const types::PutElement& put) -> types::BuiltValue {
                 Record record;
                 if (types::find_as(keys, db, source, storage::ValueType::kSortedSet, &record) !=
                     types::Found::kYes) {
                   return {};
                 }
                 SortedSetReader from(keys.data(), record);
                 return build_range(from, query, limits, put);
               });
}

void count(ReadContext& ctx, Args args, By by) {
  Query query{.by = by, .direction = Direction::kForward};
  const std::string error = read_bounds(args[2], args[3], &query);
  if (!error.empty()) return ctx.reply.error(error);
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  ctx.reply.integer(static_cast<int64_t>(find_ranks(*set, query).size()));
}

void zcount(ReadContext& ctx, Args args) {
  count(ctx, args, By::kScore);
}
void zlexcount(ReadContext& ctx, Args args) {
  count(ctx, args, By::kLex);
}

// Whether the writer does not remove these members itself.
bool is_large_range(const WriteContext& ctx, types::SortedSetReader& set, const Record& record,
                    const RankRange& ranks) {
  if (is_large_removal(ctx, record, ranks.size())) return true;
  if (ranks.size() == 1 || !set.is_large()) return false;
  uint64_t bytes = 0;
  set.walk(ranks, /*reverse=*/false, [&](std::string_view member, double) {
    bytes += member.size();
    return bytes <= contract::kMemberBytesByWriter;
  });
  return bytes > contract::kMemberBytesByWriter;
}

// False: return at once.
bool remove_ranks(WriteContext& ctx, std::string_view key, types::SortedSetReader& set,
                  const Record& record, const RankRange& ranks) {
  if (!is_large_range(ctx, set, record, ranks)) {
    types::SortedSetWriter writer = zset_writer(ctx, key, &record);
    writer.remove(ranks);
    return writer.finish();
  }
  const auto take = [db = ctx.db, key, ranks, limits = zset_limits(ctx)](
                        const data::Taking& here) -> std::optional<data::TakenCount> {
    constexpr uint64_t kPiece = 256;
    types::SortedSetWriter writer(here.keys, db, key, &here.before, limits);
    for (uint64_t end = ranks.end; end > ranks.first;) {
      const uint64_t begin = std::max(ranks.first, end - std::min(end, kPiece));
      writer.remove(RankRange{.first = begin, .end = end});
      end = begin;
      if (here.is_too_much()) return std::nullopt;
    }
    return data::TakenCount{.count = ranks.size(), .left = writer.finish()};
  };
  const auto rest = leave_rest(
      ctx, key, record, ranks.size(), take,
      [ranks, limits = zset_limits(ctx)](types::KeyReader& keys, const Record& from,
                                         const types::PutElement& put, data::SpillSort&) {
        return types::rest_of_sorted_set(keys.data(), from, limits, put,
                                         [&](uint64_t rank, std::string_view, double) {
                                           return rank >= ranks.first && rank < ranks.end;
                                         });
      });
  return rest.has_value();
}

void remove_range(WriteContext& ctx, Args args, By by, std::string_view event) {
  Query query{.by = by, .direction = Direction::kForward};
  const std::string error = read_bounds(args[2], args[3], &query);
  if (!error.empty()) return ctx.reply.error(error);
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  if (!set.exists()) return ctx.reply.integer(0);
  const RankRange ranks = find_ranks(*set, query);
  if (ranks.size() == set->size()) {
    ctx.keys.remove(ctx.db, args[1], set.record());
    ctx.keys.notify(notify::kZset, event, ctx.db, args[1]);
    ctx.keys.notify(notify::kGeneric, "del", ctx.db, args[1]);
  } else if (ranks.size() != 0) {
    if (!remove_ranks(ctx, args[1], *set, set.record(), ranks)) return;
    ctx.keys.notify(notify::kZset, event, ctx.db, args[1]);
  }
  ctx.changes = ranks.size();
  ctx.reply.integer(static_cast<int64_t>(ranks.size()));
}

void zremrangebyrank(WriteContext& ctx, Args args) {
  remove_range(ctx, args, By::kRank, "zremrangebyrank");
}
void zremrangebyscore(WriteContext& ctx, Args args) {
  remove_range(ctx, args, By::kScore, "zremrangebyscore");
}
void zremrangebylex(WriteContext& ctx, Args args) {
  remove_range(ctx, args, By::kLex, "zremrangebylex");
}

constexpr CommandRow kTable[] = {
    {.name = "zcount",
     .arity = 4,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.0.0",
     .complexity = "O(log N)",
     .summary = "How many members have a score in a range",
     .arguments = "key:key#0 min:double max:double",
     .handler = zcount},
    {.name = "zlexcount",
     .arity = 4,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.8.9",
     .complexity = "O(log N)",
     .summary = "How many members lie between two",
     .arguments = "key:key#0 min:string max:string",
     .handler = zlexcount},
    {.name = "zrange",
     .arity = -4,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "1.2.0",
     .complexity = "O(log N+M) with M members answered",
     .summary = "A part of a sorted set",
     .history = "6.2.0: `REV`, `BYSCORE`, `BYLEX` and `LIMIT`.",
     .arguments = "key:key#0 start:string stop:string "
                  "sortby:oneof@6.2.0?(byscore:pure-token=BYSCORE bylex:pure-token=BYLEX) "
                  "rev:pure-token=REV@6.2.0? offset_count:block=LIMIT@6.2.0?(offset:integer "
                  "count:integer) withscores:pure-token=WITHSCORES?",
     .handler = zrange},
    {.name = "zrangebylex",
     .arity = -4,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.8.9",
     .complexity = "O(log N+M) with M members answered",
     .summary = "Members between two",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `BYLEX` argument",
     .arguments =
         "key:key#0 min:string max:string offset_count:block=LIMIT?(offset:integer count:integer)",
     .handler = zrangebylex},
    {.name = "zrangebyscore",
     .arity = -4,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "1.0.5",
     .complexity = "O(log N+M) with M members answered",
     .summary = "Members with a score in a range",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `BYSCORE` argument",
     .history = "2.0.0: `WITHSCORES`.",
     .arguments = "key:key#0 min:double max:double withscores:pure-token=WITHSCORES@2.0.0? "
                  "offset_count:block=LIMIT?(offset:integer count:integer)",
     .handler = zrangebyscore},
    {.name = "zrangestore",
     .arity = -5,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(1, key::kOw | key::kUpdate), key_at(2, key::kRo | key::kAccess)},
     .since = "6.2.0",
     .complexity = "O(log N+M) with M members kept",
     .summary = "Keep a part of a sorted set",
     .arguments = "dst:key#0 src:key#1 min:string max:string "
                  "sortby:oneof?(byscore:pure-token=BYSCORE bylex:pure-token=BYLEX) "
                  "rev:pure-token=REV? offset_count:block=LIMIT?(offset:integer count:integer)",
     .handler = zrangestore},
    {.name = "zremrangebylex",
     .arity = 4,
     .flags = flag::kWrite,
     .keys = {key_at(1, key::kRw | key::kDelete)},
     .since = "2.8.9",
     .complexity = "O(log N+M) with M members removed",
     .summary = "Remove members between two",
     .arguments = "key:key#0 min:string max:string",
     .handler = zremrangebylex},
    {.name = "zremrangebyrank",
     .arity = 4,
     .flags = flag::kWrite,
     .keys = {key_at(1, key::kRw | key::kDelete)},
     .since = "2.0.0",
     .complexity = "O(log N+M) with M members removed",
     .summary = "Remove members by their ranks",
     .arguments = "key:key#0 start:integer stop:integer",
     .handler = zremrangebyrank},
    {.name = "zremrangebyscore",
     .arity = 4,
     .flags = flag::kWrite,
     .keys = {key_at(1, key::kRw | key::kDelete)},
     .since = "1.2.0",
     .complexity = "O(log N+M) with M members removed",
     .summary = "Remove members with a score in a range",
     .arguments = "key:key#0 min:double max:double",
     .handler = zremrangebyscore},
    {.name = "zrevrange",
     .arity = -4,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "1.2.0",
     .complexity = "O(log N+M) with M members answered",
     .summary = "A part of a sorted set, from its end",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `REV` argument",
     .arguments = "key:key#0 start:integer stop:integer withscores:pure-token=WITHSCORES?",
     .handler = zrevrange},
    {.name = "zrevrangebylex",
     .arity = -4,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.8.9",
     .complexity = "O(log N+M) with M members answered",
     .summary = "Members between two, from the last",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `REV` and `BYLEX` arguments",
     .arguments =
         "key:key#0 max:string min:string offset_count:block=LIMIT?(offset:integer count:integer)",
     .handler = zrevrangebylex},
    {.name = "zrevrangebyscore",
     .arity = -4,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.2.0",
     .complexity = "O(log N+M) with M members answered",
     .summary = "Members with a score in a range, from the highest",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `REV` and `BYSCORE` arguments",
     .history = "2.1.6: Exclusive bounds.",
     .arguments = "key:key#0 max:double min:double withscores:pure-token=WITHSCORES? "
                  "offset_count:block=LIMIT?(offset:integer count:integer)",
     .handler = zrevrangebyscore},
};
constexpr auto kRows = contract::family(kSortedSetFamily, kTable);

}  // namespace

std::span<const CommandRow> zset_range_rows() {
  return kRows;
}

}  // namespace ingot::commands
