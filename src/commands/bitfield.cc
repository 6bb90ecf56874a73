// Integers of any width in strings: BITFIELD, BITFIELD_RO.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/bit_args.h"
#include "src/commands/families.h"
#include "src/types/bits.h"
#include "src/types/string_value.h"

namespace ingot::commands {
namespace {

using types::FieldType;
using types::is_string;
using types::Overflow;
using types::Record;

struct Operation {
  enum class Kind : uint8_t { kGet, kSet, kIncrby } kind = Kind::kGet;
  FieldType type;
  uint64_t offset = 0;  // in bits
  int64_t value = 0;
  Overflow overflow = Overflow::kWrap;

  uint64_t first_byte() const { return offset / 8; }
  uint64_t end_byte() const { return (offset + type.bits + 7) / 8; }
  unsigned first_bit() const { return static_cast<unsigned>(offset % 8); }
};

// Nothing: no operation of that name with enough arguments behind it.
std::optional<Operation::Kind> read_kind(ArgReader& reader) {
  if (reader.word("get", 2)) return Operation::Kind::kGet;
  if (reader.word("set", 3)) return Operation::Kind::kSet;
  if (reader.word("incrby", 3)) return Operation::Kind::kIncrby;
  return std::nullopt;
}

// "u8", "i64"; nothing for anything else.
std::optional<FieldType> field_type(std::string_view text) {
  text = text.substr(0, text.find('\0'));
  if (text.empty() || (text[0] != 'i' && text[0] != 'u')) return std::nullopt;
  const bool is_signed = text[0] == 'i';
  const std::optional<int64_t> bits = contract::parse_integer(text.substr(1));
  if (!bits || *bits < 1 || *bits > (is_signed ? 64 : 63)) return std::nullopt;
  return FieldType{.is_signed = is_signed, .bits = static_cast<unsigned>(*bits)};
}

// All operations; nothing when an error has been answered.
template <typename Context>
std::optional<std::vector<Operation>> parse_operations(Context& ctx, Args args) {
  std::vector<Operation> operations;
  Overflow overflow = Overflow::kWrap;
  ArgReader reader(args, 2);
  while (reader.more()) {
    if (reader.word("overflow", 1)) {
      const auto named = reader.choice<Overflow>(
          {{"wrap", Overflow::kWrap}, {"sat", Overflow::kSaturate}, {"fail", Overflow::kFail}});
      if (!named) reader.fail("ERR Invalid OVERFLOW type specified");
      overflow = named.value_or(Overflow::kWrap);
      continue;
    }
    const std::optional<Operation::Kind> kind = read_kind(reader);
    if (!kind) reader.fail(contract::error::kSyntax);
    const std::optional<FieldType> type = field_type(reader.text());
    if (!type) {
      reader.fail(
          "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported "
          "but i64 is.");
    }
    if (reader.failed()) break;
    const std::optional<uint64_t> offset = bit_position(ctx, reader.text(), type->bits);
    if (!offset) return std::nullopt;
    operations.push_back({.kind = *kind,
                          .type = *type,
                          .offset = *offset,
                          .value = *kind == Operation::Kind::kGet ? 0 : reader.integer(),
                          .overflow = overflow});
  }
  if (!reader.failed()) return operations;
  ctx.reply.error(reader.error());
  return std::nullopt;
}

bool only_reads(const std::vector<Operation>& operations) {
  return std::all_of(operations.begin(), operations.end(),
                     [](const Operation& op) { return op.kind == Operation::Kind::kGet; });
}

// The bytes that a field touches, those behind the string's end as zero bytes.
using FieldBytes = std::array<char, types::kFieldBytesMax>;

FieldBytes field_bytes(storage::Reader& data, const Record* record, const Operation& operation) {
  FieldBytes bytes{};
  const uint64_t length = record != nullptr ? types::string_length(*record) : 0;
  const uint64_t begin = operation.first_byte();
  if (begin >= length) return bytes;
  std::string there;
  types::read_string(data, *record, begin, std::min(operation.end_byte(), length) - begin, &there);
  there.copy(bytes.data(), bytes.size());
  return bytes;
}

template <typename Context>
void reply_fields(Context& ctx, const Record* record, const std::vector<Operation>& operations) {
  ctx.reply.array(operations.size());
  for (const Operation& operation : operations) {
    const FieldBytes bytes = field_bytes(ctx.keys.data(), record, operation);
    ctx.reply.integer(types::read_field(bytes, operation.first_bit(), operation.type));
  }
}

// A string that operations change one after another.
class FieldWriter {
 public:
  FieldWriter(WriteContext& ctx, std::string_view key, const Record* before)
      : ctx_(ctx), key_(key), found_(before != nullptr) {
    if (found_) record_ = *before;
  }

  // Makes the string at least so long. Whether it was not.
  bool grow(uint64_t length) {
    if (found_ && types::string_length(record_) >= length) return false;
    write(length - 1, std::string_view("\0", 1));
    return true;
  }
  void make_raw() { types::make_raw(ctx_.keys, ctx_.db, key_, record_); }

  // What the operation answers; nothing when it would overflow and must not. Adds to *changes.
  std::optional<int64_t> run(const Operation& operation, bool grown, size_t* changes) {
    FieldBytes bytes = field_bytes(ctx_.keys.data(), &record_, operation);
    const int64_t old = types::read_field(bytes, operation.first_bit(), operation.type);
    if (operation.kind == Operation::Kind::kGet) return old;
    const bool is_set = operation.kind == Operation::Kind::kSet;
    const std::optional<int64_t> value =
        is_set ? types::add_to_field(operation.value, 0, operation.type, operation.overflow)
               : types::add_to_field(old, operation.value, operation.type, operation.overflow);
    if (!value) return std::nullopt;
    if (*value != old) {
      types::write_field(bytes, operation.first_bit(), operation.type, *value);
      write(operation.first_byte(), {bytes.data(), operation.end_byte() - operation.first_byte()});
    }
    if (grown || *value != old) ++*changes;
    return is_set ? old : *value;
  }

 private:
  void write(uint64_t offset, std::string_view bytes) {
    types::write_string(ctx_.keys, ctx_.db, key_, found_ ? &record_ : nullptr, offset, bytes);
    found_ = ctx_.keys.peek(ctx_.db, key_, &record_);
  }

  WriteContext& ctx_;
  const std::string_view key_;
  Record record_;
  bool found_;
};

void bitfield(WriteContext& ctx, Args args) {
  const auto operations = parse_operations(ctx, args);
  if (!operations) return;
  const bool reads = only_reads(*operations);
  Record record;
  const bool found =
      reads ? ctx.keys.find(ctx.db, args[1], &record) : ctx.keys.peek(ctx.db, args[1], &record);
  if (found && !is_string(record)) return ctx.reply.error(contract::error::kWrongType);
  if (reads) return reply_fields(ctx, found ? &record : nullptr, *operations);
  uint64_t length = 0;
  for (const Operation& operation : *operations) {
    if (operation.kind == Operation::Kind::kGet) continue;
    length = std::max(length, operation.end_byte());
  }
  FieldWriter fields(ctx, args[1], found ? &record : nullptr);
  const bool grown = fields.grow(length);
  size_t changes = 0;
  ctx.reply.array(operations->size());
  for (const Operation& operation : *operations) {
    const std::optional<int64_t> answer = fields.run(operation, grown, &changes);
    answer ? ctx.reply.integer(*answer) : ctx.reply.null();
    if (ctx.keys.data().failed()) return;
  }
  ctx.changes = changes;
  if (!grown && changes == 0) fields.make_raw();
  if (changes > 0) ctx.keys.notify(types::notify::kString, "setbit", ctx.db, args[1]);
}

void bitfield_ro(ReadContext& ctx, Args args) {
  const auto operations = parse_operations(ctx, args);
  if (!operations) return;
  if (!only_reads(*operations)) {
    return ctx.reply.error("ERR BITFIELD_RO only supports the GET subcommand");
  }
  Record record;
  const bool found = ctx.keys.find(ctx.db, args[1], &record);
  if (found && !is_string(record)) return ctx.reply.error(contract::error::kWrongType);
  reply_fields(ctx, found ? &record : nullptr, *operations);
}

// Arguments that are wrong may mean a write.
uint32_t bitfield_key_flags(Args args) {
  bool writes = false;
  ArgReader reader(args, 2);
  while (reader.more() && !writes) {
    const bool overflow = reader.word("overflow", 1);
    writes = !overflow && read_kind(reader) != Operation::Kind::kGet;
    (void)reader.text();                 // how it overflows, or the type
    if (!overflow) (void)reader.text();  // the offset
  }
  return writes ? key::kRw | key::kAccess | key::kUpdate : key::kRo | key::kAccess;
}

const CommandRow* row_for_reading(Args args);

constexpr CommandRow kTable[] = {
    {.name = "bitfield",
     .arity = -2,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {{.flags = key::kRw | key::kAccess | key::kUpdate | key::kVariableFlags,
               .begin = 1,
               .last = 0,
               .step = 1,
               .limit = 0,
               .notes = "Read only, when all operations are GET"}},
     .since = "3.2.0",
     .complexity = "O(1) for each operation",
     .summary = "Read and change integers of any width in a string",
     .arguments =
         "key:key#0 operation:oneof?*(encoding_offset:block=GET(encoding:string offset:integer) "
         "write:block(wrap_sat_fail:oneof=OVERFLOW?(wrap:pure-token=WRAP sat:pure-token=SAT "
         "fail:pure-token=FAIL) "
         "write_operation:oneof(encoding_offset_value:block=SET(encoding:string offset:integer "
         "value:integer) encoding_offset_increment:block=INCRBY(encoding:string offset:integer "
         "increment:integer))))",
     .handler = bitfield,
     .key_flags = bitfield_key_flags,
     .instead = row_for_reading,
     .counts_lookups = true},
    {.name = "bitfield_ro",
     .arity = -2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "6.0.0",
     .complexity = "O(1) for each operation",
     .summary = "Read integers of any width in a string",
     .arguments = "key:key#0 encoding_offset:block=GET?*+(encoding:string offset:integer)",
     .handler = bitfield_ro},
};
constexpr auto kRows = contract::family(kBitmapFamily, kTable);

constexpr CommandRow kReadingRow = contract::variant_of(kRows[0], bitfield_ro);

const CommandRow* row_for_reading(Args args) {
  return (bitfield_key_flags(args) & key::kRo) != 0 ? &kReadingRow : nullptr;
}

}  // namespace

std::span<const CommandRow> bitfield_rows() {
  return kRows;
}

}  // namespace ingot::commands
