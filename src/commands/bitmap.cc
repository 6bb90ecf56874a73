// Bits of strings: SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/bit_args.h"
#include "src/commands/families.h"
#include "src/commands/store_result.h"
#include "src/contract/thresholds.h"
#include "src/types/bit_combine.h"
#include "src/types/bits.h"
#include "src/types/string_value.h"
#include "src/types/string_walk.h"

namespace ingot::commands {
namespace {

using contract::parse_integer;
using types::BitOperation;
using types::is_string;
using types::Record;
using types::string_length;

// The byte that a bit stands in; zero behind the end.
unsigned byte_of_bit(storage::Reader& data, const Record& record, uint64_t bit) {
  std::string byte;
  if (bit / 8 < string_length(record)) types::read_string(data, record, bit / 8, 1, &byte);
  return byte.empty() ? 0 : static_cast<unsigned char>(byte[0]);
}

void setbit(WriteContext& ctx, Args args) {
  const std::optional<uint64_t> bit = bit_position(ctx, args[2]);
  if (!bit) return;
  const std::optional<int64_t> value = parse_integer(args[3]);
  if (!value || (*value & ~int64_t{1}) != 0) {
    return ctx.reply.error("ERR bit is not an integer or out of range");
  }
  Record old;
  const bool found = ctx.keys.peek(ctx.db, args[1], &old);
  if (found && !is_string(old)) return ctx.reply.error(contract::error::kWrongType);
  const unsigned byte = found ? byte_of_bit(ctx.keys.data(), old, *bit) : 0;
  const unsigned mask = 0x80u >> (*bit % 8);
  const bool was_set = (byte & mask) != 0;
  if (found && *bit / 8 < string_length(old) && was_set == (*value != 0)) {
    types::make_raw(ctx.keys, ctx.db, args[1], old);
  } else {
    const char changed = static_cast<char>(*value != 0 ? byte | mask : byte & ~mask);
    types::write_string(ctx.keys, ctx.db, args[1], found ? &old : nullptr, *bit / 8, {&changed, 1});
    ctx.keys.notify(notify::kString, "setbit", ctx.db, args[1]);
  }
  ctx.reply.integer(was_set ? 1 : 0);
}

void getbit(ReadContext& ctx, Args args) {
  const std::optional<uint64_t> bit = bit_position(ctx, args[2]);
  if (!bit) return;
  Record record;
  if (!ctx.keys.find(ctx.db, args[1], &record)) return ctx.reply.integer(0);
  if (!is_string(record)) return ctx.reply.error(contract::error::kWrongType);
  const unsigned byte = byte_of_bit(ctx.keys.data(), record, *bit);
  ctx.reply.integer((byte & (0x80u >> (*bit % 8))) != 0 ? 1 : 0);
}

// A stretch of bits as BITCOUNT and BITPOS are told it.
struct BitRange {
  int64_t first = 0;
  int64_t last = -1;  // before first: empty
  bool ends_where_told = false;

  bool empty() const { return first > last; }
  uint64_t begin() const { return static_cast<uint64_t>(first); }
  uint64_t end() const { return static_cast<uint64_t>(last) + 1; }
  uint64_t first_byte() const { return begin() / 8; }
  uint64_t bytes() const { return (end() + 7) / 8 - first_byte(); }
};

// BYTE, which may be left out, or BIT.
bool read_in_bits(ArgReader& reader) {
  if (!reader.more()) return false;
  const auto in_bits = reader.choice<bool>({{"bit", true}, {"byte", false}});
  if (!in_bits) reader.fail(contract::error::kSyntax);
  return in_bits.value_or(false);
}

// Start and end, where negative ones count from the end, within a string of so many bytes.
BitRange resolve(int64_t start, int64_t end, bool in_bits, uint64_t length) {
  const auto total = static_cast<int64_t>(in_bits ? length * 8 : length);
  if (start < 0) start = std::max<int64_t>(start + total, 0);
  if (end < 0) end = std::max<int64_t>(end + total, 0);
  end = std::min(end, total - 1);
  if (start > end) return {};
  if (in_bits) return {.first = start, .last = end};
  return {.first = start * 8, .last = end * 8 + 7};
}

// Of BITCOUNT; nothing when the error has been answered.
std::optional<BitRange> count_range(ReadContext& ctx, Args args, uint64_t length) {
  if (args.size() == 2) return resolve(0, -1, false, length);
  if (args.size() != 4 && args.size() != 5) {
    ctx.reply.error(contract::error::kSyntax);
    return std::nullopt;
  }
  ArgReader reader(args, 2);
  const int64_t start = reader.integer();
  const int64_t end = reader.integer();
  // Redis decides this before it looks at the unit.
  if (!reader.failed() && start < 0 && end < 0 && start > end) return BitRange{};
  const bool in_bits = read_in_bits(reader);
  if (!reader.failed()) return resolve(start, end, in_bits, length);
  ctx.reply.error(reader.error());
  return std::nullopt;
}

void bitcount(ReadContext& ctx, Args args) {
  Record record;
  if (!ctx.keys.find(ctx.db, args[1], &record)) return ctx.reply.integer(0);
  if (!is_string(record)) return ctx.reply.error(contract::error::kWrongType);
  const std::optional<BitRange> range = count_range(ctx, args, string_length(record));
  if (!range) return;
  uint64_t ones = 0;
  if (!range->empty()) {
    types::walk_string(ctx.keys.data(), record, range->first_byte(), range->bytes(),
                       [&](uint64_t offset, std::string_view piece) {
                         const uint64_t begin = offset * 8;
                         const uint64_t end = begin + piece.size() * 8;
                         ones += types::count_ones(piece, std::max(range->begin(), begin) - begin,
                                                   std::min(range->end(), end) - begin);
                         return true;
                       });
  }
  ctx.reply.integer(static_cast<int64_t>(ones));
}

std::optional<BitRange> position_range(ReadContext& ctx, Args args, uint64_t length) {
  if (args.size() == 3) return resolve(0, -1, false, length);
  if (args.size() > 6) {
    ctx.reply.error(contract::error::kSyntax);
    return std::nullopt;
  }
  ArgReader reader(args, 3);
  const int64_t start = reader.integer();
  ArgReader unit(args, 5);  // Redis looks at it before the end
  const bool in_bits = read_in_bits(unit);
  if (unit.failed()) reader.fail(unit.error());
  const bool has_end = reader.more();
  const int64_t end = has_end ? reader.integer() : -1;
  if (reader.failed()) {
    ctx.reply.error(reader.error());
    return std::nullopt;
  }
  BitRange range = resolve(start, end, in_bits, length);
  range.ends_where_told = has_end;
  return range;
}

// The first bit of the range that is `bit`; holes of the string are zero bits.
std::optional<uint64_t> first_bit(storage::Reader& data, const Record& record, bool bit,
                                  const BitRange& range) {
  uint64_t at = range.begin();
  std::optional<uint64_t> found;
  types::walk_string(data, record, range.first_byte(), range.bytes(),
                     [&](uint64_t offset, std::string_view piece) {
                       const uint64_t begin = offset * 8;
                       if (!bit && at < begin) {
                         found = at;
                         return false;
                       }
                       at = std::max(at, begin);
                       const uint64_t end = std::min(range.end(), begin + piece.size() * 8);
                       if (auto in_piece = types::find_bit(piece, bit, at - begin, end - begin)) {
                         found = begin + *in_piece;
                         return false;
                       }
                       at = end;
                       return true;
                     });
  if (!found && !bit && at < range.end()) found = at;
  return found;
}

void bitpos(ReadContext& ctx, Args args) {
  const std::optional<int64_t> bit = parse_integer(args[2]);
  if (!bit) return ctx.reply.error(contract::error::kNotInteger);
  if (*bit != 0 && *bit != 1) return ctx.reply.error("ERR The bit argument must be 1 or 0.");
  Record record;
  if (!ctx.keys.find(ctx.db, args[1], &record)) return ctx.reply.integer(*bit == 1 ? -1 : 0);
  if (!is_string(record)) return ctx.reply.error(contract::error::kWrongType);
  const std::optional<BitRange> range = position_range(ctx, args, string_length(record));
  if (!range) return;
  if (range->empty()) return ctx.reply.integer(-1);
  const auto found = first_bit(ctx.keys.data(), record, *bit == 1, *range);
  if (found) return ctx.reply.integer(static_cast<int64_t>(*found));
  // Without an end the string goes on with zero bits.
  const bool goes_on = *bit == 0 && !range->ends_where_told;
  ctx.reply.integer(goes_on ? range->last + 1 : -1);
}

// False: one of them is no string.
bool find_operands(types::KeyReader& keys, int db, Args names,
                   std::vector<types::BitOperand>* operands) {
  for (const std::string_view name : names) {
    Record record;
    const bool found = keys.find(db, name, &record);
    if (found && !is_string(record)) return false;
    operands->push_back(found ? types::BitOperand(record) : types::BitOperand());
  }
  return true;
}

void bitop(WriteContext& ctx, Args args) {
  const auto operation = ArgReader(args).choice<BitOperation>({{"and", BitOperation::kAnd},
                                                               {"or", BitOperation::kOr},
                                                               {"xor", BitOperation::kXor},
                                                               {"not", BitOperation::kNot}});
  if (!operation) return ctx.reply.error(contract::error::kSyntax);
  const Args sources = args.subspan(3);
  if (*operation == BitOperation::kNot && sources.size() != 1) {
    return ctx.reply.error("ERR BITOP NOT must be called with a single source key.");
  }
  std::vector<types::BitOperand> operands;
  if (!find_operands(ctx.keys, ctx.db, sources, &operands)) {
    return ctx.reply.error(contract::error::kWrongType);
  }
  const types::BitCombination combination(*operation, std::move(operands));
  store_result(
      ctx,
      {.target = args[2],
       .recipe = {.sources = sources,
                  .is_large = combination.bytes_to_read() > contract::kStringByWriterBytes},
       .kind = notify::kString,
       .event = "set"},
      [operation = *operation, db = ctx.db,
       names = std::vector<std::string>(sources.begin(), sources.end())](
          types::KeyReader& keys, const types::PutElement& put) {
        const std::vector<std::string_view> views(names.begin(), names.end());
        std::vector<types::BitOperand> found;
        // Where one is no string by now, the command runs again and says so.
        if (!find_operands(keys, db, views, &found)) return types::BuiltValue{};
        return types::build_combination(keys.data(),
                                        types::BitCombination(operation, std::move(found)), put);
      });
}

constexpr CommandRow kTable[] = {
    {.name = "setbit",
     .arity = 4,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(1, key::kRw | key::kAccess | key::kUpdate)},
     .since = "2.2.0",
     .complexity = "O(1)",
     .summary = "Set or clear one bit of a string",
     .arguments = "key:key#0 offset:integer value:integer",
     .handler = setbit},
    {.name = "getbit",
     .arity = 3,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.2.0",
     .complexity = "O(1)",
     .summary = "Answer one bit of a string",
     .arguments = "key:key#0 offset:integer",
     .handler = getbit},
    {.name = "bitcount",
     .arity = -2,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.6.0",
     .complexity = "O(N) with N bytes to look at",
     .summary = "Count the bits that are set in a string or a part of it",
     .history = "7.0.0: Added the `BYTE|BIT` option.",
     .arguments = "key:key#0 index:block?(start:integer end:integer "
                  "index_unit:oneof@7.0.0?(byte:pure-token=BYTE bit:pure-token=BIT))",
     .handler = bitcount},
    {.name = "bitpos",
     .arity = -3,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.8.7",
     .complexity = "O(N) with N bytes to look at",
     .summary = "Answer where the first bit that is set, or clear, stands",
     .history = "7.0.0: Added the `BYTE|BIT` option.",
     .arguments = "key:key#0 bit:integer index:block?(start:integer end_index:block?(end:integer "
                  "index_unit:oneof@7.0.0?(byte:pure-token=BYTE bit:pure-token=BIT)))",
     .handler = bitpos},
    {.name = "bitop",
     .arity = -4,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(2, key::kOw | key::kUpdate), keys_between(3, -1, 1, key::kRo | key::kAccess)},
     .since = "2.6.0",
     .complexity = "O(N) with N the bytes of all sources",
     .summary = "Combine strings bit by bit and store the result",
     .arguments = "operation:string destkey:key#0 key:key#1*",
     .handler = bitop},
};
constexpr auto kRows = contract::family(kBitmapFamily, kTable);

}  // namespace

std::span<const CommandRow> bitmap_rows() {
  return kRows;
}

}  // namespace ingot::commands
