// Parts of strings: APPEND, STRLEN, GETRANGE, SUBSTR, SETRANGE.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "src/commands/families.h"
#include "src/commands/long_string.h"
#include "src/types/string_value.h"

namespace ingot::commands {
namespace {

using types::is_string;
using types::Record;
using types::string_length;

void strlen_command(ReadContext& ctx, Args args) {
  Record record;
  if (!ctx.keys.find(ctx.db, args[1], &record)) return ctx.reply.integer(0);
  if (!is_string(record)) return ctx.reply.error(contract::error::kWrongType);
  ctx.reply.integer(static_cast<int64_t>(string_length(record)));
}

void getrange(ReadContext& ctx, Args args) {
  ArgReader reader(args, 2);
  int64_t start = reader.integer();
  int64_t end = reader.integer();
  if (!reader.done()) return ctx.reply.error(reader.error());
  Record record;
  if (!ctx.keys.find(ctx.db, args[1], &record)) return ctx.reply.bulk("");
  if (!is_string(record)) return ctx.reply.error(contract::error::kWrongType);
  const auto length = static_cast<int64_t>(string_length(record));
  // Two indexes before the beginning both come to mean the first byte, unless in the wrong order.
  if (length == 0 || (start < 0 && end < 0 && start > end)) return ctx.reply.bulk("");
  if (start < 0) start = std::max<int64_t>(start + length, 0);
  if (end < 0) end = std::max<int64_t>(end + length, 0);
  end = std::min(end, length - 1);
  if (start > end) return ctx.reply.bulk("");
  reply_string(ctx, record, static_cast<uint64_t>(start), static_cast<uint64_t>(end - start + 1));
}

void append(WriteContext& ctx, Args args) {
  Record old;
  if (!ctx.keys.peek(ctx.db, args[1], &old)) {
    store_value(ctx, args[1], nullptr, args[2], 0);
    ctx.keys.notify(notify::kString, "append", ctx.db, args[1]);
    return ctx.reply.integer(static_cast<int64_t>(value_length(ctx, args[2])));
  }
  if (!is_string(old)) return ctx.reply.error(contract::error::kWrongType);
  const uint64_t length = string_length(old);
  const uint64_t added = value_length(ctx, args[2]);
  if (!length_allowed(ctx, length, added)) return;
  if (!splice_value(ctx, args[1], &old, length, args[2])) return;
  ctx.keys.notify(notify::kString, "append", ctx.db, args[1]);
  ctx.reply.integer(static_cast<int64_t>(length + added));
}

void setrange(WriteContext& ctx, Args args) {
  ArgReader reader(args, 2);
  const int64_t offset = reader.integer();
  if (reader.failed()) return ctx.reply.error(reader.error());
  if (offset < 0) return ctx.reply.error("ERR offset is out of range");
  Record old;
  const bool found = ctx.keys.peek(ctx.db, args[1], &old);
  if (found && !is_string(old)) return ctx.reply.error(contract::error::kWrongType);
  const uint64_t length = found ? string_length(old) : 0;
  const uint64_t added = value_length(ctx, args[3]);
  if (added == 0) return ctx.reply.integer(static_cast<int64_t>(length));
  const auto begin = static_cast<uint64_t>(offset);
  if (!length_allowed(ctx, begin, added)) return;
  if (!splice_value(ctx, args[1], found ? &old : nullptr, begin, args[3])) return;
  ctx.keys.notify(notify::kString, "setrange", ctx.db, args[1]);
  ctx.reply.integer(static_cast<int64_t>(std::max(length, begin + added)));
}

constexpr CommandRow kTable[] = {
    {.name = "append",
     .arity = 3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {contract::key_at(1, key::kRw | key::kInsert)},
     .since = "2.0.0",
     .complexity = "O(N) with N the length of the value",
     .summary = "Add to the end of a string",
     .arguments = "key:key#0 value:string",
     .handler = append,
     .value_index = 2},
    {.name = "strlen",
     .arity = 2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {contract::key_at(1, key::kRo)},
     .since = "2.2.0",
     .complexity = "O(1)",
     .summary = "Answer the length of a string",
     .arguments = "key:key#0",
     .handler = strlen_command},
    {.name = "getrange",
     .arity = 4,
     .flags = flag::kReadonly,
     .keys = {contract::key_at(1, key::kRo | key::kAccess)},
     .since = "2.4.0",
     .complexity = "O(N) with N the length of the part",
     .summary = "Answer a part of a string",
     .arguments = "key:key#0 start:integer end:integer",
     .handler = getrange},
    {.name = "substr",
     .arity = 4,
     .flags = flag::kReadonly,
     .keys = {contract::key_at(1, key::kRo | key::kAccess)},
     .since = "1.0.0",
     .complexity = "O(N) with N the length of the part",
     .summary = "Answer a part of a string",
     .deprecated_since = "2.0.0",
     .replaced_by = "`GETRANGE`",
     .arguments = "key:key#0 start:integer end:integer",
     .handler = getrange},
    {.name = "setrange",
     .arity = 4,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {contract::key_at(1, key::kRw | key::kUpdate)},
     .since = "2.2.0",
     .complexity = "O(N) with N the length of the value",
     .summary = "Write over a part of a string from an offset on",
     .arguments = "key:key#0 offset:integer value:string",
     .handler = setrange,
     .value_index = 3},
};
constexpr auto kRows = contract::family(kStringFamily, kTable);

}  // namespace

std::span<const CommandRow> string_range_rows() {
  return kRows;
}

}  // namespace ingot::commands
