// Members of sets, one by one and all: SADD, SREM, SISMEMBER, SMEMBERS and their relatives.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/element_reply.h"
#include "src/commands/element_scan.h"
#include "src/commands/families.h"
#include "src/commands/large_addition.h"
#include "src/commands/large_removal.h"
#include "src/commands/set_key.h"
#include "src/contract/thresholds.h"
#include "src/types/member_table.h"
#include "src/types/set_builder.h"

namespace ingot::commands {
namespace {

constexpr uint64_t kScanStep = 64;  // members of SSCAN between two looks at their bytes

void sadd(WriteContext& ctx, Args args) {
  auto set = open_set(ctx, args[1]);
  if (!set) return;
  const Args members = args.subspan(2);
  const auto added = add_elements(
      ctx, args[1], set, members.size(), set_limits(ctx),
      [members](types::SetWriter& writer, const auto& pause) {
        uint64_t count = 0;
        for (const std::string_view member : members) {
          count += writer.add(member) ? 1 : 0;
          pause();
        }
        writer.finish();
        return data::Change{.changes = count, .answer = static_cast<int64_t>(count)};
      },
      [members](types::KeyReader& keys, const types::Record& record) {
        types::SetReader there(keys.data(), record);
        return std::ranges::any_of(
            members, [&](std::string_view member) { return !there.contains(member); });
      });
  if (!added) return;
  if (added->changes != 0) ctx.keys.notify(notify::kSet, "sadd", ctx.db, args[1]);
  ctx.changes = added->changes;
  ctx.reply.integer(added->answer);
}

void srem(WriteContext& ctx, Args args) {
  auto set = open_set(ctx, args[1]);
  if (!set) return;
  const auto removed = remove_named(
      ctx, args, set, contract::kRemovedByWriter, set_limits(ctx),
      [limits = set_limits(ctx)](types::KeyReader& keys, const types::Record& record,
                                 const types::PutElement& put, const auto& is_gone) {
        types::BuiltValue built = types::rest_of_set(keys.data(), record, limits, put, is_gone);
        built.metadata.limit_passed = record.limit_passed();
        return built;
      });
  if (!removed) return;
  if (removed->count != 0) {
    ctx.keys.notify(notify::kSet, "srem", ctx.db, args[1]);
    if (!removed->left) ctx.keys.notify(notify::kGeneric, "del", ctx.db, args[1]);
  }
  ctx.changes = removed->count;
  ctx.reply.integer(static_cast<int64_t>(removed->count));
}

void smove(WriteContext& ctx, Args args) {
  const std::string_view member = args[3];
  auto source = open_set(ctx, args[1]);
  if (!source) return;
  if (!source.exists()) return ctx.reply.integer(0);
  auto target = open_set(ctx, args[2]);
  if (!target) return;
  if (args[1] == args[2]) {
    return ctx.reply.integer(types::SetReader(ctx.keys.data(), source.record()).contains(member));
  }
  if (!source->remove(member)) return ctx.reply.integer(0);
  const bool left = source->finish();
  ctx.keys.notify(notify::kSet, "srem", ctx.db, args[1]);
  if (!left) ctx.keys.notify(notify::kGeneric, "del", ctx.db, args[1]);
  if (target->add(member)) {
    target->finish();
    ctx.keys.notify(notify::kSet, "sadd", ctx.db, args[2]);
  }
  ctx.reply.integer(1);
}

void scard(ReadContext& ctx, Args args) {
  auto set = read_set(ctx, args[1]);
  if (!set) return;
  ctx.reply.integer(static_cast<int64_t>(set->size()));
}

void sismember(ReadContext& ctx, Args args) {
  auto set = read_set(ctx, args[1]);
  if (!set) return;
  ctx.reply.integer(set->contains(args[2]));
}

void smismember(ReadContext& ctx, Args args) {
  auto set = read_set(ctx, args[1]);
  if (!set) return;
  ctx.reply.array(args.size() - 2);
  for (const std::string_view member : args.subspan(2)) {
    ctx.reply.integer(set->contains(member));
  }
}

void smembers(ReadContext& ctx, Args args) {
  auto set = read_set(ctx, args[1]);
  if (!set) return;
  ctx.reply.set(set->size());
  if (set->is_large() && set.record().limit_passed()) {
    const storage::CollectionId id = set.record().collection()->id;
    return reply_elements(ctx,
                          {.space = storage::Space::kData,
                           .lower = storage::collection_begin(id),
                           .upper = storage::collection_end(id)},
                          set->size(),
                          [](std::string_view element, std::string_view, ReplySink& reply) {
                            reply.bulk(types::member_of(element));
                            return 1;
                          });
  }
  set->walk([&](std::string_view member) {
    ctx.reply.bulk(member);
    return true;
  });
}

void reply_scan(ReplySink& reply, uint64_t cursor, const std::vector<std::string>& members) {
  reply.array(2);
  reply.bulk(std::to_string(cursor));
  reply.array(members.size());
  for (const std::string& member : members) reply.bulk(member);
}

void sscan(ReadContext& ctx, Args args) {
  auto cursor = parse_cursor(args[2]);
  if (!cursor) return ctx.reply.error(kInvalidCursor);
  auto set = read_set(ctx, args[1]);
  if (!set) return;
  std::vector<std::string> members;
  if (!set.exists()) return reply_scan(ctx.reply, 0, members);
  const auto scan = read_scan_options(ctx.reply, args, ScanOf::kElements);
  if (!scan) return;
  size_t bytes = 0;
  auto take = [&](std::string_view member) {
    if (!scan->matches(member)) return true;
    bytes += member.size();
    members.emplace_back(member);
    return true;
  };
  // What Redis keeps as an intset it answers whole; so is what stands in one record.
  if (!set->is_large() || !set.record().limit_passed()) {
    set->walk(take);
    return reply_scan(ctx.reply, 0, members);
  }
  if (scan->count > contract::kScannedOnIoThread && !ctx.keys.data().begin_walk(scan->count))
    return;
  types::MemberTable table(ctx.keys.data(), set.record().collection()->id);
  uint64_t left = scan->count;
  do {
    const uint64_t step = std::min(left, kScanStep);
    cursor =
        table.scan(*cursor, step, [&](std::string_view member, std::string_view) { take(member); });
    left -= step;
  } while (left > 0 && *cursor != 0 && bytes < contract::kScanBytesMax);
  reply_scan(ctx.reply, *cursor, members);
}

constexpr CommandRow kTable[] = {
    {.name = "sadd",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kInsert)},
     .since = "1.0.0",
     .complexity = "O(N) with N members",
     .summary = "Add members to a set",
     .history = "2.4.0: Several members at once.",
     .arguments = "key:key#0 member:string*",
     .handler = sadd,
     .members = {.first = 2}},
    {.name = "scard",
     .arity = 2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "How many members a set has",
     .arguments = "key:key#0",
     .handler = scard},
    {.name = "sismember",
     .arity = 3,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Whether a set has a member",
     .arguments = "key:key#0 member:string",
     .handler = sismember},
    {.name = "smembers",
     .arity = 2,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(N) with N members of the set",
     .summary = "The members of a set",
     .tips = "nondeterministic_output_order",
     .arguments = "key:key#0",
     .handler = smembers},
    {.name = "smismember",
     .arity = -3,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "6.2.0",
     .complexity = "O(N) with N members asked for",
     .summary = "Whether a set has each of some members",
     .arguments = "key:key#0 member:string*",
     .handler = smismember},
    {.name = "smove",
     .arity = 4,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kDelete),
              key_at(2, key::kRw | key::kInsert)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Move a member from one set to another",
     .arguments = "source:key#0 destination:key#1 member:string",
     .handler = smove},
    {.name = "srem",
     .arity = -3,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kDelete)},
     .since = "1.0.0",
     .complexity = "O(N) with N members given",
     .summary = "Remove members from a set",
     .history = "2.4.0: Several members at once.",
     .arguments = "key:key#0 member:string*",
     .handler = srem,
     .members = {.first = 2}},
    {.name = "sscan",
     .arity = -3,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.8.0",
     .complexity = "O(1) for a call, O(N) for all of the set",
     .summary = "Walk the members of a set",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0 cursor:integer pattern:pattern=MATCH? count:integer=COUNT?",
     .handler = sscan},
};
constexpr auto kRows = contract::family(kSetFamily, kTable);

}  // namespace

std::span<const CommandRow> set_rows() {
  return kRows;
}

}  // namespace ingot::commands
