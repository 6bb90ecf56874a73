// Fields of hashes as numbers: HINCRBY, HINCRBYFLOAT.
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/commands/decimal.h"
#include "src/commands/families.h"
#include "src/commands/hash_key.h"

namespace ingot::commands {
namespace {

using types::FieldValue;

// The field's expiry stays.
void store_number(WriteContext& ctx, Args args, types::HashWriter& hash, std::string_view digits,
                  int64_t expire_ms, std::string_view event) {
  hash.set(args[2], {.bytes = digits, .expire_ms = expire_ms});
  hash.finish();
  ctx.keys.notify(notify::kHash, event, ctx.db, args[1]);
}

void hincrby(WriteContext& ctx, Args args) {
  const std::optional<int64_t> by = contract::parse_integer(args[3]);
  if (!by) return ctx.reply.error(contract::error::kNotInteger);
  auto hash = open_hash(ctx, args[1]);
  if (!hash) return;
  std::string held;
  FieldValue old;
  int64_t value = 0;
  if (hash->get(args[2], &held, &old)) {
    const std::optional<int64_t> number = contract::parse_integer(old.bytes);
    if (!number) return ctx.reply.error("ERR hash value is not an integer");
    value = *number;
  } else {
    old = {};
  }
  if (__builtin_add_overflow(value, *by, &value)) {
    return ctx.reply.error("ERR increment or decrement would overflow");
  }
  store_number(ctx, args, *hash, std::to_string(value), old.expire_ms, "hincrby");
  ctx.reply.integer(value);
}

void hincrbyfloat(WriteContext& ctx, Args args) {
  const std::optional<long double> by = contract::parse_long_double(args[3]);
  if (!by) return ctx.reply.error(contract::error::kNotFloat);
  if (!std::isfinite(*by)) return ctx.reply.error("ERR value is NaN or Infinity");
  auto hash = open_hash(ctx, args[1]);
  if (!hash) return;
  std::string held;
  FieldValue old;
  long double value = 0;
  if (hash->get(args[2], &held, &old)) {
    const std::optional<long double> number = contract::parse_long_double(old.bytes);
    if (!number) return ctx.reply.error("ERR hash value is not a float");
    value = *number;
  } else {
    old = {};
  }
  value += *by;
  if (!std::isfinite(value)) {
    return ctx.reply.error("ERR increment would produce NaN or Infinity");
  }
  const std::string digits = print_decimal(value);
  store_number(ctx, args, *hash, digits, old.expire_ms, "hincrbyfloat");
  ctx.tell({"HSET", args[1], args[2], digits});
  if (old.expire_ms != 0 && ctx.tells()) {
    ctx.tell({"HPEXPIREAT", args[1], std::to_string(old.expire_ms), "FIELDS", "1", args[2]});
  }
  ctx.reply.bulk(digits);
}

constexpr CommandRow kTable[] = {
    {.name = "hincrby",
     .arity = 4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kUpdate)},
     .since = "2.0.0",
     .complexity = "O(1)",
     .summary = "Add to the integer in a field",
     .arguments = "key:key#0 field:string increment:integer",
     .handler = hincrby,
     .members = {.first = 2, .step = 2}},
    {.name = "hincrbyfloat",
     .arity = 4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kUpdate)},
     .since = "2.6.0",
     .complexity = "O(1)",
     .summary = "Add to the number in a field, which may have a fraction",
     .arguments = "key:key#0 field:string increment:double",
     .handler = hincrbyfloat,
     .members = {.first = 2, .step = 2}},
};
constexpr auto kRows = contract::family(kHashFamily, kTable);

}  // namespace

std::span<const CommandRow> hash_numeric_rows() {
  return kRows;
}

}  // namespace ingot::commands
