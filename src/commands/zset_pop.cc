// Taking from the ends of sorted sets: ZPOPMIN, ZPOPMAX, ZMPOP and the forms that wait.
#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/blocking.h"
#include "src/commands/families.h"
#include "src/commands/large_removal.h"
#include "src/commands/pop_count.h"
#include "src/commands/zset_key.h"
#include "src/types/sorted_set_builder.h"

namespace ingot::commands {
namespace {

using types::Record;
using types::ScoredMember;

using End = types::SortedSetWriter::End;

std::string_view pop_command(End end) {
  return end == End::kLowest ? "ZPOPMIN" : "ZPOPMAX";
}

// What was taken, in the order of the reply.
struct Taken {
  std::vector<ScoredMember> few;
  std::shared_ptr<data::SpillSort> many;  // or null
  uint64_t size() const { return many ? many->size() : few.size(); }
};

// The score's bytes (u64le) before the member.
std::string item_of(double score, std::string_view member) {
  std::string item;
  storage::append_le64(&item, std::bit_cast<uint64_t>(score));
  return item.append(member);
}

std::shared_ptr<data::SpillSort> take_many(WriteContext& ctx, std::string_view name,
                                           const Record& before, End end,
                                           const types::RankRange& ranks) {
  const auto take = [db = ctx.db, name, ranks, end, limits = zset_limits(ctx)](
                        const data::Taking& here) -> std::optional<data::TakenCount> {
    constexpr size_t kPiece = 256;
    types::SortedSetReader set(here.view.data(), here.before);
    types::SortedSetWriter writer(here.keys, db, name, &here.before, limits);
    std::vector<ScoredMember> piece;
    bool is_too_much = false;
    set.walk(ranks, end == End::kHighest, [&](std::string_view member, double score) {
      here.taken.add(next_place(here.taken), item_of(score, member));
      piece.push_back({.score = score, .member = std::string(member)});
      if (piece.size() < kPiece) return true;
      writer.remove(piece);
      piece.clear();
      is_too_much = here.is_too_much();
      return !is_too_much;
    });
    if (is_too_much) return std::nullopt;
    writer.remove(piece);
    return data::TakenCount{.count = here.taken.size(), .left = writer.finish()};
  };
  const auto rest =
      leave_rest(ctx, name, before, ranks.size(), take,
                 [ranks, end, limits = zset_limits(ctx)](
                     types::KeyReader& keys, const Record& record, const types::PutElement& put,
                     data::SpillSort& taken) {
                   return types::rest_of_sorted_set(
                       keys.data(), record, limits, put,
                       [&](uint64_t rank, std::string_view member, double score) {
                         if (rank < ranks.first || rank >= ranks.end) return false;
                         taken.add(next_place(taken, end == End::kHighest), item_of(score, member));
                         return true;
                       });
                 });
  return rest ? rest->taken : nullptr;
}

// The members of these ranks, in the order of the reply, or as many of them as the writer removes.
std::vector<ScoredMember> read_members(types::SortedSetReader& set, types::SortedSetWriter& writer,
                                       End end, const types::RankRange& ranks) {
  if (ranks.size() == 1) {
    if (auto only = writer.peek(end)) return {std::move(*only)};
  }
  if (end == End::kHighest && set.is_large()) {
    return writer.last(ranks.size(), contract::kMemberBytesByWriter);
  }
  std::vector<ScoredMember> found;
  uint64_t bytes = 0;
  set.walk(ranks, end == End::kHighest, [&](std::string_view member, double score) {
    found.push_back({.score = score, .member = std::string(member)});
    bytes += member.size();
    return bytes <= contract::kMemberBytesByWriter;
  });
  return found;
}

// Takes members from a sorted set and the record that it was read from. Nothing: return at once.
std::optional<Taken> take(WriteContext& ctx, std::string_view name, types::SortedSetReader& set,
                          const Record& before, End end, uint64_t count) {
  Taken taken;
  count = std::min(count, set.size());
  const types::RankRange ranks =
      end == End::kLowest ? types::RankRange{.first = 0, .end = count}
                          : types::RankRange{.first = set.size() - count, .end = set.size()};
  bool left = count < set.size();
  bool is_large = is_large_removal(ctx, before, count);
  if (!is_large) {
    types::SortedSetWriter writer = zset_writer(ctx, name, &before);
    taken.few = read_members(set, writer, end, ranks);
    if (ctx.keys.data().failed()) return std::nullopt;
    is_large = taken.few.size() < count;
    if (!is_large) {
      writer.remove(taken.few);
      left = writer.finish();
    }
  }
  if (is_large) {
    taken.few.clear();
    taken.many = take_many(ctx, name, before, end, ranks);
    if (!taken.many) return std::nullopt;
  }
  if (ctx.keys.data().failed()) return std::nullopt;
  tell_zset_removal(ctx, name, end == End::kLowest ? "zpopmin" : "zpopmax", left);
  return taken;
}

void write_member(ReplySink& reply, bool nested, std::string_view member, double score) {
  if (nested) reply.array(2);
  reply.bulk(member);
  reply.real(score);
}

// Behind the header.
void reply_members(WriteContext& ctx, const Taken& taken, bool nested) {
  for (const ScoredMember& each : taken.few) {
    write_member(ctx.reply, nested, each.member, each.score);
  }
  if (!taken.many) return;
  reply_taken(ctx, taken.many, [nested](std::string_view item, ReplySink& reply) {
    if (item.size() < sizeof(double)) return;
    write_member(reply, nested, item.substr(sizeof(double)),
                 std::bit_cast<double>(storage::read_le64(item)));
  });
}

void pop(WriteContext& ctx, Args args, End end) {
  if (args.size() > 3) return ctx.reply.error(contract::error::kSyntax);
  const bool counted = args.size() == 3;
  uint64_t count = 1;
  if (counted) {
    const auto given = pop_count(ctx.reply, args[2]);
    if (!given) return;
    count = *given;
  }
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  if (!set.exists() || count == 0) return ctx.reply.array(0);
  const auto taken = take(ctx, args[1], *set, set.record(), end, count);
  if (!taken) return;
  const bool nested = counted && ctx.reply.version() > 2;
  ctx.changes = taken->size();
  ctx.reply.array(nested ? taken->size() : 2 * taken->size());
  reply_members(ctx, *taken, nested);
}

void zpopmin(WriteContext& ctx, Args args) {
  pop(ctx, args, End::kLowest);
}
void zpopmax(WriteContext& ctx, Args args) {
  pop(ctx, args, End::kHighest);
}

void blocking_pop(WriteContext& ctx, Args args, End end) {
  const auto until_ms = wait_until(ctx, args.back());
  if (!until_ms) return;
  const Args keys = args.subspan(1, args.size() - 2);
  const Try tried = serve_first(ctx, keys, storage::ValueType::kSortedSet,
                                [&](std::string_view name, const Record& before) {
                                  types::SortedSetReader set(ctx.keys.data(), before);
                                  const auto taken = take(ctx, name, set, before, end, 1);
                                  if (!taken) return;
                                  ctx.changes = taken->size();
                                  ctx.tell({pop_command(end), name});
                                  ctx.reply.array(3);
                                  ctx.reply.bulk(name);
                                  reply_members(ctx, *taken, /*nested=*/false);
                                });
  if (tried == Try::kNothing) wait_for(ctx, keys, *until_ms);
}

void bzpopmin(WriteContext& ctx, Args args) {
  blocking_pop(ctx, args, End::kLowest);
}
void bzpopmax(WriteContext& ctx, Args args) {
  blocking_pop(ctx, args, End::kHighest);
}

Try pop_several(WriteContext& ctx, const PopSeveral& pop) {
  return serve_first(ctx, pop.keys, storage::ValueType::kSortedSet,
                     [&](std::string_view name, const Record& before) {
                       types::SortedSetReader set(ctx.keys.data(), before);
                       const End end = pop.from_second_end ? End::kHighest : End::kLowest;
                       const auto taken = take(ctx, name, set, before, end, pop.count);
                       if (!taken) return;
                       ctx.changes = taken->size();
                       if (ctx.tells()) {
                         ctx.tell({pop_command(end), name, std::to_string(taken->size())});
                       }
                       ctx.reply.array(2);
                       ctx.reply.bulk(name);
                       ctx.reply.array(taken->size());
                       reply_members(ctx, *taken, /*nested=*/true);
                     });
}

void zmpop(WriteContext& ctx, Args args) {
  const auto pop = read_pop_several(ctx, args.subspan(1), "min", "max");
  if (pop && pop_several(ctx, *pop) == Try::kNothing) ctx.reply.null_array();
}

void bzmpop(WriteContext& ctx, Args args) {
  const auto pop = read_pop_several(ctx, args.subspan(2), "min", "max");
  if (!pop) return;
  const auto until_ms = wait_until(ctx, args[1]);
  if (!until_ms || pop_several(ctx, *pop) == Try::kDone) return;
  wait_for(ctx, pop->keys, *until_ms);
}

constexpr CommandRow kTable[] = {
    {.name = "bzmpop",
     .arity = -5,
     .flags = flag::kWrite | flag::kBlocking | flag::kMovableKeys,
     .keys = {{.flags = key::kRw | key::kAccess | key::kDelete,
               .begin = 2,
               .find = contract::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .since = "7.0.0",
     .complexity = "O(K+N log M) with K keys and N members taken of M",
     .summary = "Take members from the first sorted set that has any, or wait",
     .arguments = "timeout:double numkeys:integer key:key#0* where:oneof(min:pure-token=MIN "
                  "max:pure-token=MAX) count:integer=COUNT?",
     .handler = bzmpop},
    {.name = "bzpopmax",
     .arity = -3,
     .flags = flag::kWrite | flag::kNoScript | flag::kBlocking | flag::kFast,
     .keys = {keys_between(1, -2, 1, key::kRw | key::kAccess | key::kDelete)},
     .since = "5.0.0",
     .complexity = "O(log N)",
     .summary = "Take the member with the highest score, or wait for one",
     .history = "6.0.0: Fractions of a second.",
     .arguments = "key:key#0* timeout:double",
     .handler = bzpopmax},
    {.name = "bzpopmin",
     .arity = -3,
     .flags = flag::kWrite | flag::kNoScript | flag::kBlocking | flag::kFast,
     .keys = {keys_between(1, -2, 1, key::kRw | key::kAccess | key::kDelete)},
     .since = "5.0.0",
     .complexity = "O(log N)",
     .summary = "Take the member with the lowest score, or wait for one",
     .history = "6.0.0: Fractions of a second.",
     .arguments = "key:key#0* timeout:double",
     .handler = bzpopmin},
    {.name = "zmpop",
     .arity = -4,
     .flags = flag::kWrite | flag::kMovableKeys,
     .keys = {{.flags = key::kRw | key::kAccess | key::kDelete,
               .begin = 1,
               .find = contract::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .since = "7.0.0",
     .complexity = "O(K+N log M) with K keys and N members taken of M",
     .summary = "Take members from the first sorted set that has any",
     .arguments = "numkeys:integer key:key#0* where:oneof(min:pure-token=MIN max:pure-token=MAX) "
                  "count:integer=COUNT?",
     .handler = zmpop},
    {.name = "zpopmax",
     .arity = -2,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kDelete)},
     .since = "5.0.0",
     .complexity = "O(N log M) with N members taken of M",
     .summary = "Take members with the highest scores",
     .arguments = "key:key#0 count:integer?",
     .handler = zpopmax},
    {.name = "zpopmin",
     .arity = -2,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kDelete)},
     .since = "5.0.0",
     .complexity = "O(N log M) with N members taken of M",
     .summary = "Take members with the lowest scores",
     .arguments = "key:key#0 count:integer?",
     .handler = zpopmin},
};
constexpr auto kRows = contract::family(kSortedSetFamily, kTable);

}  // namespace

std::span<const CommandRow> zset_pop_rows() {
  return kRows;
}

}  // namespace ingot::commands
