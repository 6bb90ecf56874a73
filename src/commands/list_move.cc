// Lists that feed lists and clients: LMOVE, LMPOP and the blocking commands.
#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "src/commands/blocking.h"
#include "src/commands/families.h"
#include "src/commands/list_key.h"
#include "src/commands/list_removal.h"

namespace ingot::commands {
namespace {

using types::ListEnd;
using types::Record;

ListEnd read_end(ArgReader& reader) {
  const auto end = reader.choice<ListEnd>({{"left", ListEnd::kLeft}, {"right", ListEnd::kRight}});
  if (!end) reader.fail(contract::error::kSyntax);
  return end.value_or(ListEnd::kLeft);
}

struct Move {
  std::string_view source;
  std::string_view target;
  ListEnd from = ListEnd::kRight;
  ListEnd to = ListEnd::kLeft;
};

std::string_view pop_command(ListEnd end) {
  return end == ListEnd::kLeft ? "LPOP" : "RPOP";
}

// False when the source is not there.
bool move_element(WriteContext& ctx, const Move& move) {
  auto source = open_list(ctx, move.source);
  if (!source) return true;
  if (!source.exists()) return false;
  std::string element;
  if (move.source == move.target) {
    source->pop(move.from, &element);
    source->push(move.to, element);
    source->finish();
  } else {
    auto target = open_list(ctx, move.target);
    if (!target) return true;
    source->pop(move.from, &element);
    target->push(move.to, element);
    target->finish();
  }
  ctx.keys.notify(notify::kList, push_event(move.to), ctx.db, move.target);
  if (move.source == move.target) {
    ctx.keys.notify(notify::kList, pop_event(move.from), ctx.db, move.source);
  } else {
    finish_removal(ctx, *source, move.source, pop_event(move.from));
  }
  ctx.changes = ctx.fed ? 0 : 1;  // as in Redis, whoever fed it has been counted
  ctx.reply.bulk(element);
  return true;
}

std::optional<Move> read_move(WriteContext& ctx, Args args) {
  ArgReader reader(args, 3);
  const ListEnd from = read_end(reader);
  const ListEnd to = read_end(reader);
  if (!reader.failed()) return Move{.source = args[1], .target = args[2], .from = from, .to = to};
  ctx.reply.error(reader.error());
  return std::nullopt;
}

void lmove(WriteContext& ctx, Args args) {
  const auto move = read_move(ctx, args);
  if (move && !move_element(ctx, *move)) ctx.reply.null();
}

void rpoplpush(WriteContext& ctx, Args args) {
  if (!move_element(ctx, {.source = args[1], .target = args[2]})) ctx.reply.null();
}

// `plain`: the words of the form that does not wait.
void move_or_wait(WriteContext& ctx, Args args, const Move& move, Args plain) {
  const auto until_ms = wait_until(ctx, args.back());
  if (!until_ms) return;
  Record source;
  // Something else that came into being under the name feeds nobody.
  const bool other =
      ctx.fed && types::find_as(ctx.keys, ctx.db, move.source, storage::ValueType::kList,
                                &source) != types::Found::kYes;
  if (!other && move_element(ctx, move)) return ctx.tell(plain);
  if (!ctx.may_block) return ctx.reply.null();
  wait_for(ctx, args.subspan(1, 1), *until_ms);
}

void blmove(WriteContext& ctx, Args args) {
  const std::string_view plain[] = {"LMOVE", args[1], args[2], args[3], args[4]};
  if (const auto move = read_move(ctx, args)) move_or_wait(ctx, args, *move, plain);
}

void brpoplpush(WriteContext& ctx, Args args) {
  const std::string_view plain[] = {"RPOPLPUSH", args[1], args[2]};
  move_or_wait(ctx, args, {.source = args[1], .target = args[2]}, plain);
}

void blocking_pop(WriteContext& ctx, Args args, ListEnd end) {
  const auto until_ms = wait_until(ctx, args.back());
  if (!until_ms) return;
  const Args keys = args.subspan(1, args.size() - 2);
  const Try tried = serve_first(ctx, keys, storage::ValueType::kList,
                                [&](std::string_view name, const Record& before) {
                                  types::ListWriter list = list_writer(ctx, name, &before);
                                  std::string element;
                                  list.pop(end, &element);
                                  finish_removal(ctx, list, name, pop_event(end));
                                  if (ctx.fed) ctx.changes = 0;  // the push was counted
                                  ctx.tell({pop_command(end), name});
                                  ctx.reply.array(2);
                                  ctx.reply.bulk(name);
                                  ctx.reply.bulk(element);
                                });
  if (tried == Try::kNothing) wait_for(ctx, keys, *until_ms);
}

void blpop(WriteContext& ctx, Args args) {
  blocking_pop(ctx, args, ListEnd::kLeft);
}
void brpop(WriteContext& ctx, Args args) {
  blocking_pop(ctx, args, ListEnd::kRight);
}

void reply_many(WriteContext& ctx, std::string_view name, const Record& before, ListEnd end,
                uint64_t count) {
  const auto taken = take_elements(ctx, name, before, end, count);
  if (!taken) return;
  tell_list_removal(ctx, name, pop_event(end), count < before.collection()->count);
  ctx.reply.array(2);
  ctx.reply.bulk(name);
  ctx.reply.array(count);
  reply_taken(ctx, taken, [](std::string_view element, ReplySink& reply) { reply.bulk(element); });
}

Try pop_several(WriteContext& ctx, const PopSeveral& pop) {
  const ListEnd end = pop.from_second_end ? ListEnd::kRight : ListEnd::kLeft;
  return serve_first(ctx, pop.keys, storage::ValueType::kList,
                     [&](std::string_view name, const Record& before) {
                       types::ListWriter list = list_writer(ctx, name, &before);
                       const uint64_t count = std::min(pop.count, list.length());
                       ctx.changes = count;
                       if (ctx.tells()) ctx.tell({pop_command(end), name, std::to_string(count)});
                       if (is_large_pop(ctx, before, end, count)) {
                         return reply_many(ctx, name, before, end, count);
                       }
                       ctx.reply.array(2);
                       ctx.reply.bulk(name);
                       ctx.reply.array(count);
                       std::string element;
                       for (uint64_t i = 0; i < count && !ctx.keys.data().failed(); ++i) {
                         list.pop(end, &element);
                         ctx.reply.bulk(element);
                       }
                       finish_removal(ctx, list, name, pop_event(end));
                     });
}

void lmpop(WriteContext& ctx, Args args) {
  const auto pop = read_pop_several(ctx, args.subspan(1), "left", "right");
  if (pop && pop_several(ctx, *pop) == Try::kNothing) ctx.reply.null_array();
}

void blmpop(WriteContext& ctx, Args args) {
  const auto pop = read_pop_several(ctx, args.subspan(2), "left", "right");
  if (!pop) return;
  const auto until_ms = wait_until(ctx, args[1]);
  if (!until_ms || pop_several(ctx, *pop) == Try::kDone) return;
  wait_for(ctx, pop->keys, *until_ms);
}

constexpr CommandRow kTable[] = {
    {.name = "blmove",
     .arity = 6,
     .flags = flag::kWrite | flag::kDenyOom | flag::kNoScript | flag::kBlocking,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kDelete),
              key_at(2, key::kRw | key::kInsert)},
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "Move an element from one list to another, or wait for one",
     .arguments = "source:key#0 destination:key#1 wherefrom:oneof(left:pure-token=LEFT "
                  "right:pure-token=RIGHT) whereto:oneof(left:pure-token=LEFT "
                  "right:pure-token=RIGHT) timeout:double",
     .handler = blmove},
    {.name = "blmpop",
     .arity = -5,
     .flags = flag::kWrite | flag::kBlocking | flag::kMovableKeys,
     .keys = {{.flags = key::kRw | key::kAccess | key::kDelete,
               .begin = 2,
               .find = contract::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .since = "7.0.0",
     .complexity = "O(N+M) with N keys and M elements",
     .summary = "Take elements from the first list that has any, or wait",
     .arguments = "timeout:double numkeys:integer key:key#0* where:oneof(left:pure-token=LEFT "
                  "right:pure-token=RIGHT) count:integer=COUNT?",
     .handler = blmpop},
    {.name = "blpop",
     .arity = -3,
     .flags = flag::kWrite | flag::kNoScript | flag::kBlocking,
     .keys = {keys_between(1, -2, 1, key::kRw | key::kAccess | key::kDelete)},
     .since = "2.0.0",
     .complexity = "O(N) with N keys",
     .summary = "Take the first element of a list, or wait for one",
     .history = "6.0.0: Fractions of a second.",
     .arguments = "key:key#0* timeout:double",
     .handler = blpop},
    {.name = "brpop",
     .arity = -3,
     .flags = flag::kWrite | flag::kNoScript | flag::kBlocking,
     .keys = {keys_between(1, -2, 1, key::kRw | key::kAccess | key::kDelete)},
     .since = "2.0.0",
     .complexity = "O(N) with N keys",
     .summary = "Take the last element of a list, or wait for one",
     .history = "6.0.0: Fractions of a second.",
     .arguments = "key:key#0* timeout:double",
     .handler = brpop},
    {.name = "brpoplpush",
     .arity = 4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kNoScript | flag::kBlocking,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kDelete),
              key_at(2, key::kRw | key::kInsert)},
     .since = "2.2.0",
     .complexity = "O(1)",
     .summary = "Move the last element of a list to the beginning of another, or wait",
     .deprecated_since = "6.2.0",
     .replaced_by = "`BLMOVE` with the `RIGHT` and `LEFT` arguments",
     .history = "6.0.0: Fractions of a second.",
     .arguments = "source:key#0 destination:key#1 timeout:double",
     .handler = brpoplpush},
    {.name = "lmove",
     .arity = 5,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kDelete),
              key_at(2, key::kRw | key::kInsert)},
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "Move an element from one list to another",
     .arguments =
         "source:key#0 destination:key#1 wherefrom:oneof(left:pure-token=LEFT "
         "right:pure-token=RIGHT) whereto:oneof(left:pure-token=LEFT right:pure-token=RIGHT)",
     .handler = lmove},
    {.name = "lmpop",
     .arity = -4,
     .flags = flag::kWrite | flag::kMovableKeys,
     .keys = {{.flags = key::kRw | key::kAccess | key::kDelete,
               .begin = 1,
               .find = contract::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .since = "7.0.0",
     .complexity = "O(N+M) with N keys and M elements",
     .summary = "Take elements from the first list that has any",
     .arguments = "numkeys:integer key:key#0* where:oneof(left:pure-token=LEFT "
                  "right:pure-token=RIGHT) count:integer=COUNT?",
     .handler = lmpop},
    {.name = "rpoplpush",
     .arity = 3,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kDelete),
              key_at(2, key::kRw | key::kInsert)},
     .since = "1.2.0",
     .complexity = "O(1)",
     .summary = "Move the last element of a list to the beginning of another",
     .deprecated_since = "6.2.0",
     .replaced_by = "`LMOVE` with the `RIGHT` and `LEFT` arguments",
     .arguments = "source:key#0 destination:key#1",
     .handler = rpoplpush},
};
constexpr auto kRows = contract::family(kListFamily, kTable);

}  // namespace

std::span<const CommandRow> list_move_rows() {
  return kRows;
}

}  // namespace ingot::commands
