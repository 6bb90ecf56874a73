// Elements of lists: LPUSH, LPOP, LRANGE, LINSERT, LREM and their relatives.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/element_reply.h"
#include "src/commands/families.h"
#include "src/commands/large_addition.h"
#include "src/commands/list_key.h"
#include "src/commands/list_removal.h"
#include "src/commands/pop_count.h"
#include "src/contract/thresholds.h"
#include "src/types/list_records.h"

namespace ingot::commands {
namespace {

using types::ListEnd;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

void push(WriteContext& ctx, Args args, ListEnd end, bool only_existing) {
  auto list = open_list(ctx, args[1]);
  if (!list) return;
  if (!list.exists() && only_existing) return ctx.reply.integer(0);
  const Args elements = args.subspan(2);
  const auto pushed =
      add_elements(ctx, args[1], list, elements.size(), ctx.config.settings()->inline_max_bytes,
                   [elements, end](types::ListWriter& writer, const auto& pause) {
                     for (const std::string_view element : elements) {
                       writer.push(end, element);
                       pause();
                     }
                     writer.finish();
                     return data::Change{.changes = elements.size(),
                                         .answer = static_cast<int64_t>(writer.length())};
                   });
  if (!pushed) return;
  ctx.keys.notify(notify::kList, push_event(end), ctx.db, args[1]);
  ctx.changes = pushed->changes;
  ctx.reply.integer(pushed->answer);
}

void lpush(WriteContext& ctx, Args args) {
  push(ctx, args, ListEnd::kLeft, false);
}
void rpush(WriteContext& ctx, Args args) {
  push(ctx, args, ListEnd::kRight, false);
}
void lpushx(WriteContext& ctx, Args args) {
  push(ctx, args, ListEnd::kLeft, true);
}
void rpushx(WriteContext& ctx, Args args) {
  push(ctx, args, ListEnd::kRight, true);
}

void reply_many(WriteContext& ctx, std::string_view key, const types::Record& record, ListEnd end,
                uint64_t count) {
  const auto taken = take_elements(ctx, key, record, end, count);
  if (!taken) return;
  tell_list_removal(ctx, key, pop_event(end), count < record.collection()->count);
  ctx.reply.array(count);
  reply_taken(ctx, taken, [](std::string_view element, ReplySink& reply) { reply.bulk(element); });
}

void pop(WriteContext& ctx, Args args, ListEnd end, std::string_view name) {
  if (args.size() > 3) return ctx.reply.error(contract::wrong_arity_error(name));
  const bool counted = args.size() == 3;
  uint64_t count = 1;
  if (counted) {
    const auto given = pop_count(ctx.reply, args[2]);
    if (!given) return;
    count = *given;
  }
  auto list = open_list(ctx, args[1]);
  if (!list) return;
  if (!list.exists()) return counted ? ctx.reply.null_array() : ctx.reply.null();
  if (count == 0) return ctx.reply.array(0);
  std::string element;
  count = std::min(count, list->length());
  ctx.changes = count;
  if (is_large_pop(ctx, list.record(), end, count)) {
    return reply_many(ctx, args[1], list.record(), end, count);
  }
  if (counted) ctx.reply.array(count);
  for (uint64_t i = 0; i < count && !ctx.keys.data().failed(); ++i) {
    list->pop(end, &element);
    ctx.reply.bulk(element);
  }
  finish_removal(ctx, *list, args[1], pop_event(end));
}

void lpop(WriteContext& ctx, Args args) {
  pop(ctx, args, ListEnd::kLeft, "lpop");
}
void rpop(WriteContext& ctx, Args args) {
  pop(ctx, args, ListEnd::kRight, "rpop");
}

void llen(ReadContext& ctx, Args args) {
  auto list = read_list(ctx, args[1]);
  if (!list) return;
  ctx.reply.integer(static_cast<int64_t>(list->length()));
}

void lindex(ReadContext& ctx, Args args) {
  auto list = read_list(ctx, args[1]);
  if (!list) return;
  if (!list.exists()) return ctx.reply.null();
  const auto given = contract::parse_integer(args[2]);
  if (!given) return ctx.reply.error(contract::error::kNotInteger);
  const auto index = list_index(*given, list->length());
  std::string element;
  if (!index) return ctx.reply.null();
  if (list->get(*index, &element)) ctx.reply.bulk(element);
}

void lset(WriteContext& ctx, Args args) {
  auto list = open_list(ctx, args[1]);
  if (!list) return;
  if (!list.exists()) return ctx.reply.error(contract::error::kNoSuchKey);
  const auto given = contract::parse_integer(args[2]);
  if (!given) return ctx.reply.error(contract::error::kNotInteger);
  const auto index = list_index(*given, list->length());
  if (!index) return ctx.reply.error(contract::error::kOutOfRange);
  list->set(*index, args[3]);
  list->finish();
  ctx.keys.notify(notify::kList, "lset", ctx.db, args[1]);
  ctx.reply.ok();
}

// Too long for a change in its middle to be made by the writer.
bool is_long(const types::ListWriter& list) {
  return list.length() >
         (list.has_nodes() ? contract::kPutApartByWriter : contract::kSearchedByWriter);
}

void linsert(WriteContext& ctx, Args args) {
  const auto before_it = ArgReader(args, 2).choice<bool>({{"before", true}, {"after", false}});
  if (!before_it) return ctx.reply.error(contract::error::kSyntax);
  auto list = open_list(ctx, args[1]);
  if (!list) return;
  if (!list.exists()) return ctx.reply.integer(0);
  uint64_t length = 0;
  if (is_long(*list)) {
    const auto long_one = insert_element(
        ctx, args[1], list.record(), {.before = *before_it, .pivot = args[3], .element = args[4]});
    if (!long_one) return;
    length = *long_one;
  } else if (list->insert(*before_it, args[3], args[4])) {
    list->finish();
    length = list->length();
  }
  if (length == 0) return ctx.reply.integer(-1);
  ctx.keys.notify(notify::kList, "linsert", ctx.db, args[1]);
  ctx.reply.integer(static_cast<int64_t>(length));
}

void lrem(WriteContext& ctx, Args args) {
  ArgReader reader(args, 2);
  const int64_t count = reader.integer();
  if (reader.failed()) return ctx.reply.error(reader.error());
  auto list = open_list(ctx, args[1]);
  if (!list) return;
  if (!list.exists()) return ctx.reply.integer(0);
  Removed removed;
  if (is_long(*list)) {
    const auto long_one = remove_matches(ctx, args[1], list.record(), count, args[3]);
    if (!long_one) return;
    removed = *long_one;
  } else {
    removed.count = list->remove(count, args[3]);
    if (removed.count != 0) removed.left = list->finish();
  }
  if (removed.count != 0) tell_list_removal(ctx, args[1], "lrem", removed.left);
  ctx.changes = removed.count;
  ctx.reply.integer(static_cast<int64_t>(removed.count));
}

// What a start and an end that count from both sides select, as [first, end).
struct Selection {
  uint64_t first = 0;
  uint64_t end = 0;
};

Selection select(int64_t start, int64_t end, uint64_t length) {
  const auto size = static_cast<int64_t>(length);
  if (start < 0) start = std::max<int64_t>(0, start + size);
  if (end < 0) end += size;
  if (start > end || start >= size) return {};
  return {.first = static_cast<uint64_t>(start),
          .end = static_cast<uint64_t>(std::min(end, size - 1)) + 1};
}

void ltrim(WriteContext& ctx, Args args) {
  ArgReader reader(args, 2);
  const int64_t start = reader.integer();
  const int64_t end = reader.integer();
  if (reader.failed()) return ctx.reply.error(reader.error());
  auto list = open_list(ctx, args[1]);
  if (!list) return;
  if (!list.exists()) return ctx.reply.ok();
  const Selection kept = select(start, end, list->length());
  ctx.changes = list->length() - (kept.end - kept.first);
  if (*ctx.changes == 0) ctx.tell_nothing();
  bool left = true;
  if (kept.first == kept.end) {
    ctx.keys.remove(ctx.db, args[1], list.record());
    left = false;
  } else if (is_large_removal(ctx, list.record(), *ctx.changes)) {
    if (!leave_elements(ctx, args[1], list.record(), kept.first, kept.end)) return;
  } else {
    // In Redis the key counts as modified even when nothing goes.
    if (kept.first == 0 && kept.end == list->length()) ctx.keys.touch(ctx.db, args[1]);
    for (uint64_t i = list->length(); i > kept.end; --i) list->pop(ListEnd::kRight, nullptr);
    for (uint64_t i = 0; i < kept.first; ++i) list->pop(ListEnd::kLeft, nullptr);
    list->finish();
  }
  ctx.keys.notify(notify::kList, "ltrim", ctx.db, args[1]);
  if (!left) ctx.keys.notify(notify::kGeneric, "del", ctx.db, args[1]);
  ctx.reply.ok();
}

// The elements of a record that have these labels. How many; of an unreadable record none, and then
// too few have come.
uint64_t reply_inside(std::string_view key, std::string_view stored, types::Labels labels,
                      ReplySink& reply) {
  types::ListElements record;
  if (!types::read_elements(types::label_of(key), stored, &record)) return 0;
  uint64_t inside = 0;
  for (size_t i = 0; i < record.size; ++i) {
    if (!labels.contains(record.label(i))) continue;
    reply.bulk(record.elements[i]);
    ++inside;
  }
  return inside;
}

void lrange(ReadContext& ctx, Args args) {
  ArgReader reader(args, 2);
  const int64_t start = reader.integer();
  const int64_t end = reader.integer();
  if (reader.failed()) return ctx.reply.error(reader.error());
  auto list = read_list(ctx, args[1]);
  if (!list) return;
  const Selection selected = select(start, end, list->length());
  uint64_t count = selected.end - selected.first;
  ctx.reply.array(count);
  if (count == 0) return;
  if (list->is_large()) {
    types::ListReader::Stretch stretch = list->stretch(selected.first, selected.end);
    return reply_elements(ctx,
                          {.space = storage::Space::kData,
                           .lower = std::move(stretch.lower),
                           .upper = std::move(stretch.upper)},
                          count,
                          [labels = types::Labels{.first = stretch.first, .last = stretch.last}](
                              std::string_view key, std::string_view stored, ReplySink& reply) {
                            return reply_inside(key, stored, labels, reply);
                          });
  }
  list->walk(selected.first, [&](std::string_view element) {
    ctx.reply.bulk(element);
    return --count != 0;
  });
}

struct PositionOptions {
  int64_t rank = 1;
  std::optional<int64_t> count;
  int64_t most = 0;  // elements to compare; 0: all
};

bool read_position_options(ReadContext& ctx, Args args, PositionOptions* options) {
  ArgReader reader(args, 3);
  while (reader.more()) {
    if (reader.word("rank", 1)) {
      options->rank = reader.integer();
      if (options->rank == 0) {
        reader.fail(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
            "or use negative to start from the end of the list");
      }
    } else if (reader.word("count", 1)) {
      options->count = reader.integer_between(0, kMax, "ERR COUNT can't be negative");
    } else if (reader.word("maxlen", 1)) {
      options->most = reader.integer_between(0, kMax, "ERR MAXLEN can't be negative");
    } else {
      break;
    }
  }
  if (!reader.done()) ctx.reply.error(reader.error());
  return !reader.failed();
}

void lpos(ReadContext& ctx, Args args) {
  PositionOptions options;
  if (!read_position_options(ctx, args, &options)) return;
  auto list = read_list(ctx, args[1]);
  if (!list) return;
  if (!list.exists()) return options.count ? ctx.reply.array(0) : ctx.reply.null();
  const uint64_t length = list->length();
  const uint64_t visited =
      options.most == 0 ? length : std::min(length, static_cast<uint64_t>(options.most));
  if (visited > contract::kVisitedOnIoThread && !ctx.keys.data().begin_walk(visited)) return;
  const bool back = options.rank < 0;
  // Redis takes the smallest number, which has no opposite, for the first match from the end.
  int64_t skip = options.rank < -kMax ? 0 : std::abs(options.rank) - 1;
  const int64_t wanted = options.count.value_or(1);
  int64_t seen = 0;
  std::vector<int64_t> positions;
  auto compare = [&](std::string_view element) {
    const int64_t at = seen++;
    if (element == args[2] && --skip < 0) {
      positions.push_back(back ? static_cast<int64_t>(list->length()) - 1 - at : at);
    }
    const bool enough = wanted != 0 && static_cast<int64_t>(positions.size()) == wanted;
    return !enough && seen != options.most;
  };
  back ? list->walk_back(compare) : list->walk(0, compare);
  if (!options.count) {
    return positions.empty() ? ctx.reply.null() : ctx.reply.integer(positions.front());
  }
  ctx.reply.array(positions.size());
  for (const int64_t position : positions) ctx.reply.integer(position);
}

constexpr CommandRow kTable[] = {
    {.name = "lindex",
     .arity = 3,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(1) at the ends and while dense, else O(log N)",
     .summary = "An element of a list by its index",
     .arguments = "key:key#0 index:integer",
     .handler = lindex},
    {.name = "linsert",
     .arity = 5,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(1, key::kRw | key::kInsert)},
     .since = "2.2.0",
     .complexity = "O(N) with N elements before the pivot",
     .summary = "Insert an element beside another",
     .arguments = "key:key#0 where:oneof(before:pure-token=BEFORE after:pure-token=AFTER) "
                  "pivot:string element:string",
     .handler = linsert},
    {.name = "llen",
     .arity = 2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "How long a list is",
     .arguments = "key:key#0",
     .handler = llen},
    {.name = "lpop",
     .arity = -2,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kDelete)},
     .since = "1.0.0",
     .complexity = "O(N) with N elements taken",
     .summary = "Take elements from the beginning of a list",
     .history = "6.2.0: Several at once.",
     .arguments = "key:key#0 count:integer@6.2.0?",
     .handler = lpop},
    {.name = "lpos",
     .arity = -3,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "6.0.6",
     .complexity = "O(N) with N elements of the list",
     .summary = "Where an element stands in a list",
     .arguments = "key:key#0 element:string rank:integer=RANK? num-matches:integer=COUNT? "
                  "len:integer=MAXLEN?",
     .handler = lpos},
    {.name = "lpush",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kInsert)},
     .since = "1.0.0",
     .complexity = "O(N) with N elements added",
     .summary = "Add elements at the beginning of a list",
     .history = "2.4.0: Several at once.",
     .arguments = "key:key#0 element:string*",
     .handler = lpush},
    {.name = "lpushx",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kInsert)},
     .since = "2.2.0",
     .complexity = "O(N) with N elements added",
     .summary = "Add elements at the beginning of a list that exists",
     .history = "4.0.0: Several at once.",
     .arguments = "key:key#0 element:string*",
     .handler = lpushx},
    {.name = "lrange",
     .arity = 4,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(N) with N elements answered",
     .summary = "A part of a list",
     .arguments = "key:key#0 start:integer stop:integer",
     .handler = lrange},
    {.name = "lrem",
     .arity = 4,
     .flags = flag::kWrite,
     .keys = {key_at(1, key::kRw | key::kDelete)},
     .since = "1.0.0",
     .complexity = "O(N) with N elements of the list",
     .summary = "Remove elements that equal one",
     .arguments = "key:key#0 count:integer element:string",
     .handler = lrem},
    {.name = "lset",
     .arity = 4,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "1.0.0",
     .complexity = "O(1) at the ends and while dense, else O(log N)",
     .summary = "Replace an element of a list",
     .arguments = "key:key#0 index:integer element:string",
     .handler = lset},
    {.name = "ltrim",
     .arity = 4,
     .flags = flag::kWrite,
     .keys = {key_at(1, key::kRw | key::kDelete)},
     .since = "1.0.0",
     .complexity = "O(N) with N elements removed",
     .summary = "Keep only a part of a list",
     .arguments = "key:key#0 start:integer stop:integer",
     .handler = ltrim},
    {.name = "rpop",
     .arity = -2,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kDelete)},
     .since = "1.0.0",
     .complexity = "O(N) with N elements taken",
     .summary = "Take elements from the end of a list",
     .history = "6.2.0: Several at once.",
     .arguments = "key:key#0 count:integer@6.2.0?",
     .handler = rpop},
    {.name = "rpush",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kInsert)},
     .since = "1.0.0",
     .complexity = "O(N) with N elements added",
     .summary = "Add elements at the end of a list",
     .history = "2.4.0: Several at once.",
     .arguments = "key:key#0 element:string*",
     .handler = rpush},
    {.name = "rpushx",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kInsert)},
     .since = "2.2.0",
     .complexity = "O(N) with N elements added",
     .summary = "Add elements at the end of a list that exists",
     .history = "4.0.0: Several at once.",
     .arguments = "key:key#0 element:string*",
     .handler = rpushx},
};
constexpr auto kRows = contract::family(kListFamily, kTable);

}  // namespace

std::span<const CommandRow> list_rows() {
  return kRows;
}

}  // namespace ingot::commands
