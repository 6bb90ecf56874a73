// Several sets at once: SINTER, SUNION, SDIFF, their STORE forms, SINTERCARD.
#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>
#include <deque>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/command/args.h"
#include "src/command/context.h"
#include "src/commands/families.h"
#include "src/commands/set_key.h"

namespace ingot::commands {
namespace {

namespace acl = command::acl;
namespace flag = command::flag;
namespace key = command::key;
namespace notify = types::notify;
using command::Args;
using command::CommandRow;
using command::key_at;
using command::keys_between;
using command::ReadContext;
using command::WriteContext;
using types::Found;
using types::Record;
using types::SetReader;

// More members than this, in all sources together, are no longer a short command.
constexpr uint64_t kShortWork = 512;

// The sets of some keys; those that are not there are left out, but counted.
struct Sources {
  std::deque<Record> records;
  std::vector<SetReader> sets;
  size_t missing = 0;
  bool first_is_missing = false;
  uint64_t members = 0;  // of all together
};

// False when an error was answered, or the command must run elsewhere.
template <typename Context>
bool open_sources(Context& ctx, Args names, Sources* sources) {
  for (const std::string_view name : names) {
    Record& record = sources->records.emplace_back();
    Found found;
    auto set = read_set(ctx, name, &record, &found);
    if (found == Found::kWrongType) return false;
    if (!set) {
      sources->first_is_missing = sources->first_is_missing || sources->records.size() == 1;
      ++sources->missing;
      continue;
    }
    sources->members += set->size();
    sources->sets.push_back(*set);
  }
  return sources->members <= kShortWork || ctx.keys.data().begin_walk();
}

using Each = SetReader::Each;

// What is in all of them: a walk over the smallest, look-ups in the others.
void intersect(Sources& sources, const Each& each) {
  if (sources.missing != 0 || sources.sets.empty()) return;
  std::vector<SetReader*> by_size;
  for (SetReader& set : sources.sets) by_size.push_back(&set);
  std::ranges::stable_sort(by_size, {}, &SetReader::size);
  const std::span others(by_size.begin() + 1, by_size.end());
  by_size.front()->walk([&](std::string_view member) {
    const bool everywhere =
        std::ranges::all_of(others, [&](SetReader* other) { return other->contains(member); });
    return !everywhere || each(member);
  });
}

void unite(Sources& sources, const Each& each) {
  boost::unordered_flat_set<std::string> seen;
  for (SetReader& set : sources.sets) {
    set.walk([&](std::string_view member) { return !seen.emplace(member).second || each(member); });
  }
}

// What is in the first and in no other.
void subtract(Sources& sources, const Each& each) {
  if (sources.first_is_missing || sources.sets.empty()) return;
  const std::span others(sources.sets.begin() + 1, sources.sets.end());
  sources.sets.front().walk([&](std::string_view member) {
    const bool elsewhere =
        std::ranges::any_of(others, [&](SetReader& other) { return other.contains(member); });
    return elsewhere || each(member);
  });
}

using Operation = void (*)(Sources&, const Each&);

void reply_result(ReadContext& ctx, Args args, Operation operation) {
  Sources sources;
  if (!open_sources(ctx, args.subspan(1), &sources)) return;
  std::vector<std::string> members;
  operation(sources, [&](std::string_view member) {
    members.emplace_back(member);
    return true;
  });
  ctx.reply.set(members.size());
  for (const std::string& member : members) ctx.reply.bulk(member);
}

void sinter(ReadContext& ctx, Args args) {
  reply_result(ctx, args, intersect);
}
void sunion(ReadContext& ctx, Args args) {
  reply_result(ctx, args, unite);
}
void sdiff(ReadContext& ctx, Args args) {
  reply_result(ctx, args, subtract);
}

void store_result(WriteContext& ctx, Args args, Operation operation, std::string_view event) {
  Sources sources;
  if (!open_sources(ctx, args.subspan(2), &sources)) return;
  Record before;
  const bool exists = ctx.keys.peek(ctx.db, args[1], &before);
  types::SetWriter target(ctx.keys, ctx.db, args[1], exists ? &before : nullptr, set_limits(ctx),
                          types::SetWriter::Begin::kFresh);
  operation(sources, [&](std::string_view member) {
    target.add(member);
    return true;
  });
  if (target.finish()) {
    ctx.keys.notify(notify::kSet, event, ctx.db, args[1]);
  } else if (exists) {
    ctx.keys.notify(notify::kGeneric, "del", ctx.db, args[1]);
  }
  ctx.reply.integer(static_cast<int64_t>(target.size()));
}

void sinterstore(WriteContext& ctx, Args args) {
  store_result(ctx, args, intersect, "sinterstore");
}
void sunionstore(WriteContext& ctx, Args args) {
  store_result(ctx, args, unite, "sunionstore");
}
void sdiffstore(WriteContext& ctx, Args args) {
  store_result(ctx, args, subtract, "sdiffstore");
}

void sintercard(ReadContext& ctx, Args args) {
  const auto count = command::parse_integer(args[1]);
  if (!count || *count < 1) return ctx.reply.error("ERR numkeys should be greater than 0");
  if (*count > static_cast<int64_t>(args.size()) - 2) {
    return ctx.reply.error("ERR Number of keys can't be greater than number of args");
  }
  const auto keys = static_cast<size_t>(*count);
  int64_t limit = 0;
  command::ArgReader options(args, 2 + keys);
  while (options.more()) {
    if (options.left() < 2 || !options.word("limit")) {
      options.fail(command::error::kSyntax);
      break;
    }
    limit = options.integer_between(0, std::numeric_limits<int64_t>::max(),
                                    "ERR LIMIT can't be negative");
  }
  if (options.failed()) return ctx.reply.error(options.error());
  Sources sources;
  if (!open_sources(ctx, args.subspan(2, keys), &sources)) return;
  int64_t found = 0;
  intersect(sources, [&](std::string_view) { return ++found != limit; });
  ctx.reply.integer(found);
}

constexpr CommandRow kRows[] = {
    {.name = "sdiff",
     .arity = -2,
     .flags = flag::kReadonly,
     .acl = acl::kRead | acl::kSet | acl::kSlow,
     .keys = {keys_between(1, -1, 1, key::kRo | key::kAccess)},
     .group = "set",
     .since = "1.0.0",
     .complexity = "O(N) with N members of the first set, times the number of sets",
     .summary = "What is in one set and in no other",
     .tips = "nondeterministic_output_order",
     .arguments = "key:key#0*",
     .handler = sdiff},
    {.name = "sdiffstore",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom,
     .acl = acl::kWrite | acl::kSet | acl::kSlow,
     .keys = {key_at(1, key::kOw | key::kUpdate), keys_between(2, -1, 1, key::kRo | key::kAccess)},
     .group = "set",
     .since = "1.0.0",
     .complexity = "O(N) with N members of the first set, times the number of sets",
     .summary = "Keep what is in one set and in no other",
     .arguments = "destination:key#0 key:key#1*",
     .handler = sdiffstore},
    {.name = "sinter",
     .arity = -2,
     .flags = flag::kReadonly,
     .acl = acl::kRead | acl::kSet | acl::kSlow,
     .keys = {keys_between(1, -1, 1, key::kRo | key::kAccess)},
     .group = "set",
     .since = "1.0.0",
     .complexity = "O(N) with N members of the smallest set, times the number of sets",
     .summary = "What is in all of several sets",
     .tips = "nondeterministic_output_order",
     .arguments = "key:key#0*",
     .handler = sinter},
    {.name = "sintercard",
     .arity = -3,
     .flags = flag::kReadonly | flag::kMovableKeys,
     .acl = acl::kRead | acl::kSet | acl::kSlow,
     .keys = {{.flags = key::kRo | key::kAccess,
               .begin = 1,
               .find = command::KeySpec::Find::kKeyCount,
               .last = 0,
               .first_key = 1,
               .step = 1}},
     .group = "set",
     .since = "7.0.0",
     .complexity = "O(N) with N members of the smallest set, times the number of sets",
     .summary = "How many members are in all of several sets",
     .arguments = "numkeys:integer key:key#0* limit:integer=LIMIT?",
     .handler = sintercard},
    {.name = "sinterstore",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom,
     .acl = acl::kWrite | acl::kSet | acl::kSlow,
     .keys = {key_at(1, key::kRw | key::kUpdate), keys_between(2, -1, 1, key::kRo | key::kAccess)},
     .group = "set",
     .since = "1.0.0",
     .complexity = "O(N) with N members of the smallest set, times the number of sets",
     .summary = "Keep what is in all of several sets",
     .arguments = "destination:key#0 key:key#1*",
     .handler = sinterstore},
    {.name = "sunion",
     .arity = -2,
     .flags = flag::kReadonly,
     .acl = acl::kRead | acl::kSet | acl::kSlow,
     .keys = {keys_between(1, -1, 1, key::kRo | key::kAccess)},
     .group = "set",
     .since = "1.0.0",
     .complexity = "O(N) with N members of all sets",
     .summary = "What is in any of several sets",
     .tips = "nondeterministic_output_order",
     .arguments = "key:key#0*",
     .handler = sunion},
    {.name = "sunionstore",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom,
     .acl = acl::kWrite | acl::kSet | acl::kSlow,
     .keys = {key_at(1, key::kOw | key::kUpdate), keys_between(2, -1, 1, key::kRo | key::kAccess)},
     .group = "set",
     .since = "1.0.0",
     .complexity = "O(N) with N members of all sets",
     .summary = "Keep what is in any of several sets",
     .arguments = "destination:key#0 key:key#1*",
     .handler = sunionstore},
};

}  // namespace

std::span<const CommandRow> set_algebra_rows() {
  return kRows;
}

}  // namespace ingot::commands
