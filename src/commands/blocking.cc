// Turning time-outs into deadlines, and popping from the first of several keys that has something.
#include "src/commands/blocking.h"

#include <cmath>
#include <limits>
#include <utility>

#include "src/contract/args.h"

namespace ingot::commands {
namespace {

// What lies beyond all time is for ever.
int64_t time_after(const contract::WriteContext& ctx, int64_t wait_ms) {
  const bool endless = wait_ms > std::numeric_limits<int64_t>::max() - ctx.now_ms();
  return wait_ms == 0 || endless ? 0 : ctx.now_ms() + wait_ms;
}

}  // namespace

std::optional<int64_t> wait_until(contract::WriteContext& ctx, std::string_view seconds) {
  const auto given = contract::parse_long_double(seconds);
  if (!given) {
    ctx.reply.error("ERR timeout is not a float or out of range");
    return std::nullopt;
  }
  const long double wait_ms = std::ceil(*given * 1000);
  // As in Redis, what no number holds counts as negative.
  if (wait_ms < 0 || wait_ms > static_cast<long double>(std::numeric_limits<int64_t>::max())) {
    ctx.reply.error("ERR timeout is negative");
    return std::nullopt;
  }
  return time_after(ctx, static_cast<int64_t>(wait_ms));
}

std::optional<int64_t> wait_until_ms(contract::WriteContext& ctx, std::string_view milliseconds) {
  const auto wait_ms = contract::parse_integer(milliseconds);
  if (!wait_ms) {
    ctx.reply.error("ERR timeout is not an integer or out of range");
  } else if (*wait_ms < 0) {
    ctx.reply.error("ERR timeout is negative");
  }
  if (ctx.reply.erred()) return std::nullopt;
  return time_after(ctx, *wait_ms);
}

void wait_for(contract::WriteContext& ctx, contract::Args keys, int64_t until_ms,
              std::string memory, bool for_removal) {
  if (!ctx.may_block) return ctx.reply.null_array();
  if (ctx.fed) return ctx.block({});
  ctx.block({.keys = {keys.begin(), keys.end()},
             .until_ms = until_ms,
             .memory = std::move(memory),
             .for_removal = for_removal});
}

std::optional<PopSeveral> read_pop_several(contract::WriteContext& ctx, contract::Args args,
                                           std::string_view first_end,
                                           std::string_view second_end) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr std::string_view kNoKeys = "ERR numkeys should be greater than 0";
  contract::ArgReader reader(args, 0);
  PopSeveral pop{.keys = reader.counted({.not_number = kNoKeys, .too_few = kNoKeys})};
  const auto second = reader.choice<bool>({{first_end, false}, {second_end, true}});
  if (!second) reader.fail(contract::error::kSyntax);
  pop.from_second_end = second.value_or(false);
  if (reader.word("count", 1)) {
    pop.count = static_cast<uint64_t>(
        reader.integer_between(1, kMax, "ERR count should be greater than 0"));
  }
  if (reader.done()) return pop;
  ctx.reply.error(reader.error());
  return std::nullopt;
}

}  // namespace ingot::commands
