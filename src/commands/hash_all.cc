// Whole hashes: HGETALL, HKEYS, HVALS, HSCAN.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/commands/element_reply.h"
#include "src/commands/element_scan.h"
#include "src/commands/families.h"
#include "src/commands/hash_key.h"
#include "src/contract/thresholds.h"
#include "src/types/member_table.h"

namespace ingot::commands {
namespace {

using types::FieldValue;
using types::Record;

constexpr uint64_t kScanStep = 64;  // fields of HSCAN between two looks at their bytes

enum class Part : uint8_t { kFields, kValues, kBoth };

void write_part(ReplySink& reply, Part part, std::string_view field, std::string_view value) {
  if (part != Part::kValues) reply.bulk(field);
  if (part != Part::kFields) reply.bulk(value);
}

void reply_all(ReadContext& ctx, Args args, Part part) {
  auto hash = read_hash(ctx, args[1]);
  if (!hash) return;
  const uint64_t count = hash->length();
  part == Part::kBoth ? ctx.reply.map(count) : ctx.reply.array(count);
  if (!hash->is_large()) {
    return hash->walk([&](std::string_view field, const FieldValue& value) {
      write_part(ctx.reply, part, field, value.bytes);
      return true;
    });
  }
  const storage::CollectionId id = hash.record().collection()->id;
  reply_elements(ctx,
                 {.space = storage::Space::kData,
                  .lower = storage::collection_begin(id),
                  .upper = storage::collection_end(id)},
                 count,
                 [part, now_ms = ctx.keys.expired_by_ms()](
                     std::string_view key, std::string_view stored, ReplySink& reply) {
                   FieldValue value;
                   if (!types::decode_field_value(stored, &value)) value = {};
                   if (!value.is_alive(now_ms)) return uint64_t{0};
                   write_part(reply, part, types::member_of(key), value.bytes);
                   return uint64_t{1};
                 });
}

void hgetall(ReadContext& ctx, Args args) {
  reply_all(ctx, args, Part::kBoth);
}
void hkeys(ReadContext& ctx, Args args) {
  reply_all(ctx, args, Part::kFields);
}
void hvals(ReadContext& ctx, Args args) {
  reply_all(ctx, args, Part::kValues);
}

// What HSCAN has found.
struct Page {
  std::vector<std::pair<std::string, std::string>> pairs;
  size_t bytes = 0;
  uint64_t next = 0;

  void add(std::string_view field, std::string_view value) {
    bytes += field.size() + value.size();
    pairs.emplace_back(field, value);
  }
  void reply_to(ReplySink& reply) const {
    reply.array(2);
    reply.bulk(std::to_string(next));
    reply.array(2 * pairs.size());
    for (const auto& [field, value] : pairs) write_part(reply, Part::kBoth, field, value);
  }
};

void scan_large(ReadContext& ctx, const Record& record, const ScanOptions& scan, Page* page) {
  types::MemberTable table(ctx.keys.data(), record.collection()->id);
  for (uint64_t left = scan.count; left > 0 && page->bytes < contract::kScanBytesMax;) {
    const uint64_t step = std::min(left, kScanStep);
    page->next = table.scan(page->next, step, [&](std::string_view field, std::string_view stored) {
      FieldValue value;
      if (!types::decode_field_value(stored, &value)) value = {};
      if (value.is_alive(ctx.keys.expired_by_ms()) && scan.matches(field))
        page->add(field, value.bytes);
    });
    if (page->next == 0 || ctx.keys.data().failed()) return;
    left -= step;
  }
}

void hscan(ReadContext& ctx, Args args) {
  const std::optional<uint64_t> cursor = parse_cursor(args[2]);
  if (!cursor) return ctx.reply.error(kInvalidCursor);
  Page page;
  auto hash = read_hash(ctx, args[1]);
  if (!hash) return;
  if (!hash.exists()) return page.reply_to(ctx.reply);
  const auto scan = read_scan_options(ctx.reply, args, ScanOf::kElements);
  if (!scan) return;
  // What is compact in Redis is answered whole.
  if (!hash->is_large() || !hash.record().limit_passed()) {
    hash->walk([&](std::string_view field, const FieldValue& value) {
      if (scan->matches(field)) page.add(field, value.bytes);
      return true;
    });
    return page.reply_to(ctx.reply);
  }
  if (scan->count > contract::kScannedOnIoThread && !ctx.keys.data().begin_walk(scan->count))
    return;
  page.next = *cursor;
  scan_large(ctx, hash.record(), *scan, &page);
  page.reply_to(ctx.reply);
}

constexpr CommandRow kTable[] = {
    {.name = "hgetall",
     .arity = 2,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.0.0",
     .complexity = "O(N) in the fields",
     .summary = "All fields with their values",
     .tips = "nondeterministic_output_order",
     .arguments = "key:key#0",
     .handler = hgetall},
    {.name = "hkeys",
     .arity = 2,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.0.0",
     .complexity = "O(N) in the fields",
     .summary = "All fields",
     .tips = "nondeterministic_output_order",
     .arguments = "key:key#0",
     .handler = hkeys},
    {.name = "hvals",
     .arity = 2,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.0.0",
     .complexity = "O(N) in the fields",
     .summary = "The values of all fields",
     .tips = "nondeterministic_output_order",
     .arguments = "key:key#0",
     .handler = hvals},
    {.name = "hscan",
     .arity = -3,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.8.0",
     .complexity = "O(COUNT) for each call",
     .summary = "Walk the fields and values piece by piece",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0 cursor:integer pattern:pattern=MATCH? count:integer=COUNT?",
     .handler = hscan},
};
constexpr auto kRows = contract::family(kHashFamily, kTable);

}  // namespace

std::span<const CommandRow> hash_all_rows() {
  return kRows;
}

}  // namespace ingot::commands
