// Sorted sets by chance and by cursor: ZRANDMEMBER, ZSCAN.
#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/commands/chance.h"
#include "src/commands/element_scan.h"
#include "src/commands/families.h"
#include "src/commands/zset_key.h"
#include "src/contract/thresholds.h"
#include "src/types/member_table.h"

namespace ingot::commands {
namespace {

using types::Record;
using types::ScoredMember;
using types::SortedSetReader;

void write_member(ReplySink& reply, bool with_score, const ScoredMember& member) {
  if (with_score && reply.version() > 2) reply.array(2);
  reply.bulk(member.member);
  if (with_score) reply.real(member.score);
}

void announce(ReplySink& reply, bool with_scores, uint64_t members) {
  reply.array(with_scores && reply.version() == 2 ? 2 * members : members);
}

WriteDrawn write_drawn(bool scores) {
  return [scores](std::string_view member, std::string_view stored, ReplySink& reply) {
    ScoredMember drawn{.member = std::string(member)};
    (void)types::decode_score(stored, &drawn.score);
    write_member(reply, scores, drawn);
  };
}

Draw repeated_draw(SortedSetReader& set, const Record& record, bool scores) {
  if (set.is_large()) {
    return draw_from_table(record.collection()->id, set.size(), /*repeats=*/true,
                           write_drawn(scores));
  }
  std::vector<ScoredMember> members;
  set.walk([&](std::string_view member, double score) {
    members.push_back({.score = score, .member = std::string(member)});
    return true;
  });
  return draw_from_held(std::move(members), [scores](const ScoredMember& member, ReplySink& reply) {
    write_member(reply, scores, member);
    return member.member.size();
  });
}

void reply_repeated(ReadContext& ctx, SortedSetReader& set, const Record& record, uint64_t count,
                    bool scores) {
  const auto begin = [&](uint64_t draws) { announce(ctx.reply, scores, draws); };
  if (set.is_large()) {
    const WalkedDraws draws{.id = record.collection()->id, .of = set.size(), .count = count};
    if (reply_walked(ctx, draws, begin, write_drawn(scores))) return;
  }
  reply_draws(
      ctx, count, count > contract::kDrawnOnIoThread && set.is_large(),
      [&] { return repeated_draw(set, record, scores); }, begin);
}

// `wanted` different members, each set of them with equal chance.
void reply_distinct(ReadContext& ctx, SortedSetReader& set, const Record& record, uint64_t wanted,
                    bool scores) {
  announce(ctx.reply, scores, wanted);
  if (!set.is_large()) {
    Sample sample(wanted, set.size());
    return set.walk([&](std::string_view member, double score) {
      if (sample.takes()) {
        write_member(ctx.reply, scores, {.score = score, .member = std::string(member)});
      }
      return true;
    });
  }
  const storage::CollectionId id = record.collection()->id;
  if (is_sampled(wanted, set.size())) {
    return reply_sample(ctx, id, wanted, set.size(),
                        [write = write_drawn(scores)](std::string_view key, std::string_view stored,
                                                      ReplySink& reply) {
                          write(types::member_of(key), stored, reply);
                        });
  }
  if (wanted > contract::kDrawnOnIoThread && !ctx.keys.data().begin_walk(wanted)) return;
  reply_drawn(ctx, wanted, draw_from_table(id, set.size(), /*repeats=*/false, write_drawn(scores)));
}

void zrandmember(ReadContext& ctx, Args args) {
  const auto request = read_draw_request(ctx.reply, args, "withscores");
  if (!request) return;
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  if (!set.exists()) return request->one ? ctx.reply.null() : ctx.reply.array(0);
  if (request->one) {
    ScoredMember member;
    if (set->random(dice(), &member)) ctx.reply.bulk(member.member);
    return;
  }
  const bool scores = request->with_values;
  if (request->repeats()) return reply_repeated(ctx, *set, set.record(), request->size(), scores);
  reply_distinct(ctx, *set, set.record(), std::min(request->size(), set->size()), scores);
}

void reply_scan(ReplySink& reply, uint64_t cursor, const std::vector<ScoredMember>& members,
                std::string (*score_text)(double) = types::score_text) {
  reply.array(2);
  reply.bulk(std::to_string(cursor));
  reply.array(2 * members.size());
  for (const ScoredMember& each : members) {
    reply.bulk(each.member);
    reply.bulk(score_text(each.score));
  }
}

void zscan(ReadContext& ctx, Args args) {
  auto cursor = parse_cursor(args[2]);
  if (!cursor) return ctx.reply.error(kInvalidCursor);
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  std::vector<ScoredMember> members;
  if (!set.exists()) return reply_scan(ctx.reply, 0, members);
  const auto scan = read_scan_options(ctx.reply, args, ScanOf::kElements);
  if (!scan) return;
  auto take = [&](std::string_view member, double score) {
    if (scan->matches(member)) members.push_back({.score = score, .member = std::string(member)});
    return true;
  };
  // What is compact in Redis is answered whole.
  if (!set->is_large() || !set.record().limit_passed()) {
    set->walk(take);
    const bool is_packed = !set.record().limit_passed();
    return reply_scan(ctx.reply, 0, members,
                      is_packed ? types::packed_score_text : types::score_text);
  }
  if (scan->count > contract::kScannedOnIoThread && !ctx.keys.data().begin_walk(scan->count))
    return;
  types::MemberTable table(ctx.keys.data(), set.record().collection()->id);
  cursor = table.scan(*cursor, std::min<uint64_t>(scan->count, 1 << 16),
                      [&](std::string_view member, std::string_view stored) {
                        double score = 0;
                        (void)types::decode_score(stored, &score);
                        take(member, score);
                      });
  reply_scan(ctx.reply, *cursor, members);
}

constexpr CommandRow kTable[] = {
    {.name = "zrandmember",
     .arity = -2,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "6.2.0",
     .complexity = "O(N) with N members asked for",
     .summary = "Members of a sorted set by chance",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0 options:block?(count:integer withscores:pure-token=WITHSCORES?)",
     .handler = zrandmember},
    {.name = "zscan",
     .arity = -3,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.8.0",
     .complexity = "O(1) for a call, O(N) for all of the set",
     .summary = "Walk the members of a sorted set",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0 cursor:integer pattern:pattern=MATCH? count:integer=COUNT?",
     .handler = zscan},
};
constexpr auto kRows = contract::family(kSortedSetFamily, kTable);

}  // namespace

std::span<const CommandRow> zset_walk_rows() {
  return kRows;
}

}  // namespace ingot::commands
