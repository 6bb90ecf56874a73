// Several sets at once: SINTER, SUNION, SDIFF, their STORE forms, SINTERCARD.
#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/families.h"
#include "src/commands/set_key.h"
#include "src/commands/store_result.h"
#include "src/contract/thresholds.h"
#include "src/data/piece_source.h"
#include "src/types/combination.h"
#include "src/types/member_table.h"
#include "src/types/set_builder.h"

namespace ingot::commands {
namespace {

using types::Combination;
using types::Record;
using Operation = Combination::Operation;

std::vector<types::CombinedSource> find_sources(types::KeyReader& keys, int db, Args names,
                                                bool* wrong_type) {
  std::vector<types::CombinedSource> sources;
  for (const std::string_view name : names) {
    Record record;
    const auto found = types::find_as(keys, db, name, storage::ValueType::kSet, &record);
    *wrong_type = *wrong_type || found == types::Found::kWrongType;
    sources.emplace_back();
    if (found == types::Found::kYes) sources.back().record = std::move(record);
  }
  return sources;
}

// Null when an error was answered, or the command must run elsewhere.
template <typename Context>
std::shared_ptr<Combination> open_sources(Context& ctx, Args names, Operation operation) {
  bool wrong_type = false;
  auto sources = find_sources(ctx.keys, ctx.db, names, &wrong_type);
  if (wrong_type) {
    ctx.reply.error(contract::error::kWrongType);
    return nullptr;
  }
  auto combination = std::make_shared<Combination>(ctx.keys.data(), operation, std::move(sources));
  const bool is_short = combination->members() <= contract::kVisitedOnIoThread;
  return is_short || ctx.keys.data().begin_walk(combination->members()) ? combination : nullptr;
}

// The members of a result once more, from the view, while the client takes them.
void stream_members(ReadContext& ctx, std::shared_ptr<Combination> combination) {
  const bool is_long = combination->members() > contract::kWalkedAtOnce;
  auto read = [combination = std::move(combination), from = std::string()](
                  storage::Reader& data, std::string* piece) mutable {
    bool more = false;
    combination->walk(data, from, [&](std::string_view element, double) {
      more = piece->size() >= data::kPieceBytes;
      if (more) {
        from = element;
      } else {
        net::RespWriter(*piece, 2).bulk(types::member_of_element(element));
      }
      return !more;
    });
    return more;
  };
  ctx.reply.elements(std::make_unique<data::PieceSource>(
      ctx.data, ctx.view, std::move(read),
      data::PieceSource::Use{.work = is_long ? data::Work::kLong : data::Work::kShort}));
}

void reply_result(ReadContext& ctx, Args args, Operation operation) {
  const auto combination = open_sources(ctx, args.subspan(1), operation);
  if (!combination) return;
  std::vector<std::string> members;
  size_t bytes = 0;  // of the members
  uint64_t count = 0;
  combination->walk(ctx.keys.data(), {}, [&](std::string_view element, double) {
    ++count;
    const size_t held = bytes + members.size() * sizeof(std::string);
    if (ctx.view && held > contract::kHeldToCountBytes) {  // only counted, for the header
      return true;
    }
    members.emplace_back(types::member_of_element(element));
    bytes += members.back().size();
    return ctx.reply.may_hold(bytes);
  });
  ctx.reply.set(count);
  if (count > members.size()) return stream_members(ctx, combination);
  if (combination->may_be_intset()) std::ranges::sort(members, {}, types::intset_number);
  for (const std::string& member : members) ctx.reply.bulk(member);
}

void sinter(ReadContext& ctx, Args args) {
  reply_result(ctx, args, Operation::kIntersection);
}
void sunion(ReadContext& ctx, Args args) {
  reply_result(ctx, args, Operation::kUnion);
}
void sdiff(ReadContext& ctx, Args args) {
  reply_result(ctx, args, Operation::kDifference);
}

void store_combination(WriteContext& ctx, Args args, Operation operation, std::string_view event) {
  const Args sources = args.subspan(2);
  const auto combination = open_sources(ctx, sources, operation);
  if (!combination) return;
  store_result(
      ctx,
      {.target = args[1],
       .recipe = {.sources = sources, .is_large = combination->members() > contract::kMadeByWriter},
       .kind = notify::kSet,
       .event = event},
      [operation, db = ctx.db, limits = set_limits(ctx),
       names = std::vector<std::string>(sources.begin(), sources.end())](
          types::KeyReader& keys, const types::PutElement& put) {
        const std::vector<std::string_view> views(names.begin(), names.end());
        bool wrong_type = false;  // then the keys have changed, and the command runs again
        const Combination result(keys.data(), operation,
                                 find_sources(keys, db, views, &wrong_type));
        types::SetBuilder set(limits, put);
        result.walk(keys.data(), {}, [&](std::string_view element, double) {
          set.add(types::member_of_element(element));
          return true;
        });
        return set.finish();
      });
}

void sinterstore(WriteContext& ctx, Args args) {
  store_combination(ctx, args, Operation::kIntersection, "sinterstore");
}
void sunionstore(WriteContext& ctx, Args args) {
  store_combination(ctx, args, Operation::kUnion, "sunionstore");
}
void sdiffstore(WriteContext& ctx, Args args) {
  store_combination(ctx, args, Operation::kDifference, "sdiffstore");
}

void sintercard(ReadContext& ctx, Args args) {
  constexpr std::string_view kNoKeys = "ERR numkeys should be greater than 0";
  contract::ArgReader options(args);
  const Args names =
      options.counted({.not_number = kNoKeys,
                       .too_few = kNoKeys,
                       .too_many = "ERR Number of keys can't be greater than number of args"});
  int64_t limit = 0;
  while (options.more()) {
    if (!options.word("limit", 1)) {
      options.fail(contract::error::kSyntax);
      break;
    }
    limit = options.integer_between(0, std::numeric_limits<int64_t>::max(),
                                    "ERR LIMIT can't be negative");
  }
  if (options.failed()) return ctx.reply.error(options.error());
  const auto combination = open_sources(ctx, names, Operation::kIntersection);
  if (!combination) return;
  int64_t found = 0;
  combination->walk(ctx.keys.data(), {},
                    [&](std::string_view, double) { return ++found != limit; });
  ctx.reply.integer(found);
}

constexpr CommandRow kTable[] = {
    {.name = "sdiff",
     .arity = -2,
     .flags = flag::kReadonly,
     .keys = {keys_between(1, -1, 1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(N) with N members of the first set, times the number of sets",
     .summary = "What is in one set and in no other",
     .tips = "nondeterministic_output_order",
     .arguments = "key:key#0*",
     .handler = sdiff},
    {.name = "sdiffstore",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(1, key::kOw | key::kUpdate), keys_between(2, -1, 1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(N) with N members of the first set, times the number of sets",
     .summary = "Keep what is in one set and in no other",
     .arguments = "destination:key#0 key:key#1*",
     .handler = sdiffstore},
    {.name = "sinter",
     .arity = -2,
     .flags = flag::kReadonly,
     .keys = {keys_between(1, -1, 1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(N) with N members of the smallest set, times the number of sets",
     .summary = "What is in all of several sets",
     .tips = "nondeterministic_output_order",
     .arguments = "key:key#0*",
     .handler = sinter},
    {.name = "sintercard",
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
     .summary = "How many members are in all of several sets",
     .arguments = "numkeys:integer key:key#0* limit:integer=LIMIT?",
     .handler = sintercard},
    {.name = "sinterstore",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(1, key::kRw | key::kUpdate), keys_between(2, -1, 1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(N) with N members of the smallest set, times the number of sets",
     .summary = "Keep what is in all of several sets",
     .arguments = "destination:key#0 key:key#1*",
     .handler = sinterstore},
    {.name = "sunion",
     .arity = -2,
     .flags = flag::kReadonly,
     .keys = {keys_between(1, -1, 1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(N) with N members of all sets",
     .summary = "What is in any of several sets",
     .tips = "nondeterministic_output_order",
     .arguments = "key:key#0*",
     .handler = sunion},
    {.name = "sunionstore",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(1, key::kOw | key::kUpdate), keys_between(2, -1, 1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(N) with N members of all sets",
     .summary = "Keep what is in any of several sets",
     .arguments = "destination:key#0 key:key#1*",
     .handler = sunionstore},
};
constexpr auto kRows = contract::family(kSetFamily, kTable);

}  // namespace

std::span<const CommandRow> set_algebra_rows() {
  return kRows;
}

}  // namespace ingot::commands
