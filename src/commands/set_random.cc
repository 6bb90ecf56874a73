// Members of sets by chance: SRANDMEMBER, SPOP.
#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/commands/chance.h"
#include "src/commands/families.h"
#include "src/commands/large_removal.h"
#include "src/commands/pop_count.h"
#include "src/commands/set_key.h"
#include "src/contract/thresholds.h"
#include "src/data/built_value.h"
#include "src/types/member_table.h"
#include "src/types/set_builder.h"

namespace ingot::commands {
namespace {

using types::Record;
using types::SetReader;

// `wanted` different members, each set of them with equal chance; fewer only after a failure.
std::vector<std::string> draw_distinct(storage::Reader& data, SetReader& set, uint64_t wanted) {
  std::vector<std::string> members;
  const uint64_t size = set.size();
  if (!set.is_large() || wanted > size / 3) {
    Sample sample(wanted, size);
    set.walk([&](std::string_view member) {
      if (sample.takes()) members.emplace_back(member);
      return members.size() < wanted;
    });
    return members;
  }
  draw_few(
      data, wanted, [&](std::string* member) { return set.random(dice(), member); },
      [&](const std::string& member) { members.push_back(member); });
  return members;
}

void write_drawn_member(std::string_view member, std::string_view, ReplySink& reply) {
  reply.bulk(member);
}

Draw repeated_draw(SetReader& set, const Record& record) {
  if (set.is_large()) {
    return draw_from_table(record.collection()->id, set.size(), /*repeats=*/true,
                           write_drawn_member);
  }
  std::vector<std::string> members;
  set.walk([&](std::string_view member) {
    members.emplace_back(member);
    return true;
  });
  return draw_from_held(std::move(members), [](const std::string& member, ReplySink& reply) {
    reply.bulk(member);
    return member.size();
  });
}

void reply_repeated(ReadContext& ctx, SetReader& set, const Record& record, uint64_t count) {
  const auto announce = [&](uint64_t draws) { ctx.reply.array(draws); };
  if (set.is_large()) {
    const WalkedDraws draws{.id = record.collection()->id, .of = set.size(), .count = count};
    if (reply_walked(ctx, draws, announce, write_drawn_member)) return;
  }
  reply_draws(
      ctx, count, count > contract::kDrawnOnIoThread && set.is_large(),
      [&] { return repeated_draw(set, record); }, announce);
}

void reply_of_large(ReadContext& ctx, SetReader& set, const Record& record, uint64_t wanted) {
  const storage::CollectionId id = record.collection()->id;
  const bool sampled = is_sampled(wanted, set.size());
  if (!sampled && wanted > contract::kDrawnOnIoThread && !ctx.keys.data().begin_walk(wanted)) {
    return;
  }
  ctx.reply.array(wanted);
  if (!sampled) {
    return reply_drawn(ctx, wanted,
                       draw_from_table(id, set.size(), /*repeats=*/false, write_drawn_member));
  }
  reply_sample(ctx, id, wanted, set.size(),
               [](std::string_view key, std::string_view stored, ReplySink& reply) {
                 write_drawn_member(types::member_of(key), stored, reply);
               });
}

void srandmember(ReadContext& ctx, Args args) {
  if (args.size() > 3) return ctx.reply.error(contract::error::kSyntax);
  const auto request = read_draw_request(ctx.reply, args, {});
  if (!request) return;
  auto set = read_set(ctx, args[1]);
  if (!set) return;
  if (!set.exists()) return request->one ? ctx.reply.null() : ctx.reply.array(0);
  if (request->one) {
    std::string member;
    if (set->random(dice(), &member)) ctx.reply.bulk(member);
    return;
  }
  if (request->repeats()) return reply_repeated(ctx, *set, set.record(), request->size());
  const uint64_t wanted = std::min(request->size(), set->size());
  if (set->is_large()) return reply_of_large(ctx, *set, set.record(), wanted);
  const std::vector<std::string> members = draw_distinct(ctx.keys.data(), *set, wanted);
  ctx.reply.array(members.size());
  for (const std::string& member : members) ctx.reply.bulk(member);
}

// Members that were taken beside the writer, as the commands that remove them.
class TakenMembers : public types::ToldBytes {
 public:
  TakenMembers(std::string_view key, std::shared_ptr<data::SpillSort> taken)
      : key_(key), taken_(std::move(taken)) {}

  storage::Status read(const Piece& piece) const override {
    std::string command;
    return taken_->walk({}, [&](std::string_view, std::string_view member) {
      command.clear();
      const std::string_view words[] = {"SREM", key_, member};
      types::append_command(&command, words);
      piece(command);
      return true;
    });
  }

 private:
  const std::string key_;
  const std::shared_ptr<data::SpillSort> taken_;
};

void tell_pop(WriteContext& ctx, std::string_view name, bool left) {
  ctx.keys.notify(notify::kSet, "spop", ctx.db, name);
  if (!left) ctx.keys.notify(notify::kGeneric, "del", ctx.db, name);
}

// Removes the members from a set that had them; `most_go` when few are left: then Redis builds the
// rest anew, which may be an intset again.
void take_away(WriteContext& ctx, std::string_view name, const Record& record,
               const std::vector<std::string>& members, bool most_go) {
  if (most_go) {
    const std::unordered_set<std::string_view> gone(members.begin(), members.end());
    types::BuiltValue rest =
        data::build_in_group(ctx.keys, [&](types::KeyReader& keys, const types::PutElement& put) {
          types::SetBuilder set(set_limits(ctx), put);
          SetReader(keys.data(), record).walk([&](std::string_view member) {
            if (!gone.contains(member)) set.add(member);
            return true;
          });
          return set.finish();
        });
    rest.metadata.expire_ms = record.expire_ms();
    return ctx.keys.store(ctx.db, name, &record, rest.record());
  }
  types::SetWriter set = set_writer(ctx, name, &record);
  for (const std::string& member : members) set.remove_drawn(member);
  set.finish();
}

// The same of a large set, beside the writer. Some members are drawn there and removed here, very
// many are drawn while the rest is made.
void pop_many(WriteContext& ctx, std::string_view name, const Record& record, uint64_t count,
              bool most_go) {
  const auto rest_of = [count, most_go, limits = set_limits(ctx)](
                           types::KeyReader& keys, const Record& from, const types::PutElement& put,
                           data::SpillSort& taken) {
    SetReader set(keys.data(), from);
    if (count <= contract::kRemovedByWriter && !most_go) {
      for (const std::string& member : draw_distinct(keys.data(), set, count)) {
        taken.add(next_place(taken), member);
      }
      return types::BuiltValue{};
    }
    Sample sample(count, set.size());
    types::BuiltValue built =
        types::rest_of_set(keys.data(), from, limits, put, [&](std::string_view member) {
          if (!sample.takes()) return false;
          taken.add(next_place(taken), member);
          return true;
        });
    if (!most_go) built.metadata.limit_passed = from.limit_passed();
    return built;
  };
  const auto take = [db = ctx.db, name, count, limits = set_limits(ctx)](
                        const data::Taking& here) -> std::optional<data::TakenCount> {
    SetReader set(here.view.data(), here.before);
    types::SetWriter writer(here.keys, db, name, &here.before, limits);
    for (const std::string& member : draw_distinct(here.view.data(), set, count)) {
      here.taken.add(next_place(here.taken), member);
      writer.remove_drawn(member);
      if (here.is_too_much()) return std::nullopt;
    }
    return data::TakenCount{.count = here.taken.size(), .left = writer.finish()};
  };
  const bool is_drawn =
      !most_go && count > contract::kRemovedByWriter && count <= contract::kRepeatedByWriter;
  const auto rest = is_drawn ? leave_rest(ctx, name, record, count, take, rest_of)
                             : leave_rest(ctx, name, record, rest_of);
  if (!rest) return;
  bool is_left = rest->value.size != 0;
  if (rest->value.changes == 0) {
    types::SetWriter set = set_writer(ctx, name, &record);
    const storage::Status status = rest->taken->walk(
        {}, [&](std::string_view, std::string_view member) { return set.remove(member); });
    if (!status.ok()) return ctx.keys.data().latch_error(status);
    is_left = set.finish();
  }
  tell_pop(ctx, name, is_left);
  if (is_left) {
    if (ctx.tells()) {
      ctx.tell(rest->taken->size(), std::make_shared<TakenMembers>(name, rest->taken));
    }
  } else {
    ctx.tell({"DEL", name});
  }
  ctx.reply.set(rest->taken->size());
  reply_taken(ctx, rest->taken,
              [](std::string_view member, ReplySink& reply) { reply.bulk(member); });
}

// `count` different members that are to go, of a large set from what was drawn ahead.
std::vector<std::string> draw_to_pop(WriteContext& ctx, SetReader& set, const Record& record,
                                     uint64_t count) {
  const bool is_drawn_ahead = set.is_large() && (count == 1 || count <= set.size() / 3);
  if (!is_drawn_ahead) return draw_distinct(ctx.keys.data(), set, count);
  std::vector<std::string> members;
  draw_few(
      ctx.keys.data(), count,
      [&](std::string* member) {
        const uint64_t left = set.size() - members.size();
        auto ahead = ctx.keys.drawn().next(ctx.keys.overlay(), record.collection()->id, left,
                                           left <= contract::kDrawnFromAll, dice());
        if (!ahead) return set.random(dice(), member);
        *member = std::move(*ahead);
        return true;
      },
      [&](const std::string& member) { members.push_back(member); });
  return members;
}

void spop(WriteContext& ctx, Args args) {
  const bool one = args.size() == 2;
  uint64_t count = 1;
  if (!one) {
    if (args.size() > 3) return ctx.reply.error(contract::error::kSyntax);
    const auto given = pop_count(ctx.reply, args[2]);
    if (!given) return;
    count = *given;
  }
  auto set = read_set(ctx, args[1]);
  if (!set) return;
  if (!set.exists()) return one ? ctx.reply.null() : ctx.reply.set(0);
  if (count == 0) return ctx.reply.set(0);
  const uint64_t size = set->size();
  count = std::min(count, size);
  ctx.changes = count;
  const bool most_go = !one && (size - count) * 5 <= count;
  if (is_large_removal(ctx, set.record(), count, contract::kDrawnByWriter)) {
    return pop_many(ctx, args[1], set.record(), count, most_go);
  }
  const std::vector<std::string> members = draw_to_pop(ctx, *set, set.record(), count);
  if (ctx.keys.data().failed()) return;
  if (count == size) {
    ctx.keys.remove(ctx.db, args[1], set.record());
  } else {
    take_away(ctx, args[1], set.record(), members, most_go);
  }
  tell_pop(ctx, args[1], count != size);
  if (count == size && !one) {
    ctx.tell({"DEL", args[1]});
  } else {
    for (const std::string& member : members) ctx.tell({"SREM", args[1], member});
  }
  if (one) return ctx.reply.bulk(members.front());
  ctx.reply.set(members.size());
  for (const std::string& member : members) ctx.reply.bulk(member);
}

constexpr CommandRow kTable[] = {
    {.name = "srandmember",
     .arity = -2,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(N) with N members asked for",
     .summary = "Members of a set by chance",
     .history = "2.6.0: Several at once.",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0 count:integer@2.6.0?",
     .handler = srandmember},
    {.name = "spop",
     .arity = -2,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kDelete)},
     .since = "1.0.0",
     .complexity = "O(N) with N members asked for",
     .summary = "Take members by chance out of a set",
     .history = "3.2.0: Several at once.",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0 count:integer@3.2.0?",
     .handler = spop},
};
constexpr auto kRows = contract::family(kSetFamily, kTable);

}  // namespace

std::span<const CommandRow> set_random_rows() {
  return kRows;
}

}  // namespace ingot::commands
