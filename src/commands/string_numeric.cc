// Strings as numbers: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/commands/decimal.h"
#include "src/commands/families.h"
#include "src/types/string_value.h"

namespace ingot::commands {
namespace {

using types::Record;

// The number's text becomes the string; its expiry stays.
void store_number(WriteContext& ctx, std::string_view key, const Record* before,
                  std::string_view digits, bool text) {
  types::store_string(ctx.keys, ctx.db, key, before, digits,
                      before != nullptr ? before->expire_ms() : 0, text);
}

void increment(WriteContext& ctx, std::string_view key, int64_t by) {
  Record old;
  const bool found = ctx.keys.peek(ctx.db, key, &old);
  int64_t value = 0;
  if (found) {
    if (!types::is_string(old)) return ctx.reply.error(contract::error::kWrongType);
    const auto number = old.collection() ? std::nullopt : contract::parse_integer(old.payload());
    if (!number) return ctx.reply.error(contract::error::kNotInteger);
    value = *number;
  }
  if (__builtin_add_overflow(value, by, &value)) {
    return ctx.reply.error("ERR increment or decrement would overflow");
  }
  char digits[24];
  const auto end = std::to_chars(digits, std::end(digits), value).ptr;
  store_number(ctx, key, found ? &old : nullptr, {digits, static_cast<size_t>(end - digits)},
               /*text=*/false);
  ctx.keys.notify(notify::kString, "incrby", ctx.db, key);
  ctx.reply.integer(value);
}

void incr(WriteContext& ctx, Args args) {
  increment(ctx, args[1], 1);
}
void decr(WriteContext& ctx, Args args) {
  increment(ctx, args[1], -1);
}

void incrby(WriteContext& ctx, Args args) {
  ArgReader reader(args, 2);
  const int64_t by = reader.integer();
  if (!reader.done()) return ctx.reply.error(reader.error());
  increment(ctx, args[1], by);
}

void decrby(WriteContext& ctx, Args args) {
  ArgReader reader(args, 2);
  const int64_t by = reader.integer();
  if (!reader.done()) return ctx.reply.error(reader.error());
  if (by == std::numeric_limits<int64_t>::min()) {
    return ctx.reply.error("ERR decrement would overflow");
  }
  increment(ctx, args[1], -by);
}

void incrbyfloat(WriteContext& ctx, Args args) {
  Record old;
  const bool found = ctx.keys.peek(ctx.db, args[1], &old);
  long double value = 0;
  if (found) {
    if (!types::is_string(old)) return ctx.reply.error(contract::error::kWrongType);
    const auto number =
        old.collection() ? std::nullopt : contract::parse_long_double(old.payload());
    if (!number) return ctx.reply.error(contract::error::kNotFloat);
    value = *number;
  }
  const auto by = contract::parse_long_double(args[2]);
  if (!by) return ctx.reply.error(contract::error::kNotFloat);
  value += *by;
  if (!std::isfinite(value)) {
    return ctx.reply.error("ERR increment would produce NaN or Infinity");
  }
  const std::string digits = print_decimal(value);
  store_number(ctx, args[1], found ? &old : nullptr, digits, /*text=*/true);
  ctx.keys.notify(notify::kString, "incrbyfloat", ctx.db, args[1]);
  ctx.tell({"SET", args[1], digits, "KEEPTTL"});
  ctx.reply.bulk(digits);
}

constexpr CommandRow kTable[] = {
    {.name = "incr",
     .arity = 2,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {contract::key_at(1, key::kRw | key::kAccess | key::kUpdate)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Add one to the integer in a string",
     .arguments = "key:key#0",
     .handler = incr},
    {.name = "decr",
     .arity = 2,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {contract::key_at(1, key::kRw | key::kAccess | key::kUpdate)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Subtract one from the integer in a string",
     .arguments = "key:key#0",
     .handler = decr},
    {.name = "incrby",
     .arity = 3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {contract::key_at(1, key::kRw | key::kAccess | key::kUpdate)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Add to the integer in a string",
     .arguments = "key:key#0 increment:integer",
     .handler = incrby},
    {.name = "decrby",
     .arity = 3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {contract::key_at(1, key::kRw | key::kAccess | key::kUpdate)},
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Subtract from the integer in a string",
     .arguments = "key:key#0 decrement:integer",
     .handler = decrby},
    {.name = "incrbyfloat",
     .arity = 3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {contract::key_at(1, key::kRw | key::kAccess | key::kUpdate)},
     .since = "2.6.0",
     .complexity = "O(1)",
     .summary = "Add to the decimal number in a string",
     .arguments = "key:key#0 increment:double",
     .handler = incrbyfloat},
};
constexpr auto kRows = contract::family(kStringFamily, kTable);

}  // namespace

std::span<const CommandRow> string_numeric_rows() {
  return kRows;
}

}  // namespace ingot::commands
