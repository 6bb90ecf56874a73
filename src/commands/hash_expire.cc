// When fields of a hash expire: HEXPIRE and its relatives, HTTL and its relatives, HPERSIST. Redis
// has them since 7.4.
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/expiry_time.h"
#include "src/commands/families.h"
#include "src/commands/hash_key.h"

namespace ingot::commands {
namespace {

using types::FieldValue;

// What is answered for a field.
enum Answer : int64_t { kNoField = -2, kNeverExpires = -1, kNotMet = 0, kDone = 1, kDeleted = 2 };

// The latest time that Redis keeps for a field (Unix ms).
constexpr int64_t kLatestMs = 0xFFFFFFFFFFFE >> 2;

enum class Condition : uint8_t { kNone, kOnlyWithout, kOnlyWith, kOnlyLater, kOnlyEarlier };

bool holds(Condition condition, int64_t old_ms, int64_t new_ms) {
  switch (condition) {
    case Condition::kNone:
      return true;
    case Condition::kOnlyWithout:
      return old_ms == 0;
    case Condition::kOnlyWith:
      return old_ms != 0;
    case Condition::kOnlyLater:  // no expiry is later than any
      return old_ms != 0 && new_ms > old_ms;
    case Condition::kOnlyEarlier:
      return old_ms == 0 || new_ms < old_ms;
  }
  return false;
}

// "FIELDS count field [field ...]"; nothing when an error was answered.
std::optional<Args> read_fields(ReplySink& reply, ArgReader& reader, std::string_view count_error) {
  if (!reader.word("fields")) {
    reader.fail("ERR Mandatory argument FIELDS is missing or not at the right position");
  }
  const int64_t count = reader.integer_between(1, std::numeric_limits<int64_t>::max(), count_error);
  const Args fields = reader.rest();
  if (static_cast<uint64_t>(count) != fields.size()) {
    reader.fail("ERR The `numfields` parameter must match the number of arguments");
  }
  if (!reader.failed()) return fields;
  reply.error(reader.error());
  return std::nullopt;
}
constexpr std::string_view kCountError = "ERR Number of fields must be a positive integer";

void answer_all(ReplySink& reply, size_t fields, Answer answer) {
  reply.array(fields);
  for (size_t i = 0; i < fields; ++i) reply.integer(answer);
}

std::optional<int64_t> field_expiry_time(WriteContext& ctx, std::string_view text, TimeForm form) {
  form.latest_ms = kLatestMs;
  if (contract::parse_integer(text).value_or(0) >= 0) return expiry_time(ctx, text, form);
  ctx.reply.error("ERR invalid expire time, must be >= 0");
  return std::nullopt;
}

Condition read_condition(ArgReader& reader) {
  const auto given = reader.choice<Condition>({{"nx", Condition::kOnlyWithout},
                                               {"xx", Condition::kOnlyWith},
                                               {"gt", Condition::kOnlyLater},
                                               {"lt", Condition::kOnlyEarlier}});
  return given.value_or(Condition::kNone);
}

Answer expire_field(types::HashWriter& hash, std::string_view field, Condition condition,
                    int64_t when_ms, int64_t now_ms) {
  std::string held;
  FieldValue value;
  if (!hash.get(field, &held, &value)) return kNoField;
  if (!holds(condition, value.expire_ms, when_ms)) return kNotMet;
  if (when_ms <= now_ms) {
    hash.remove(field);
    return kDeleted;
  }
  value.expire_ms = when_ms;
  hash.set(field, value);
  return kDone;
}

// The same field may be among those that were set and then among those that were deleted, not the
// other way round.
void tell_replicas(WriteContext& ctx, std::string_view key, int64_t when_ms, Args set,
                   Args deleted) {
  if (!set.empty()) {
    const std::string time = std::to_string(when_ms);
    const std::string count = std::to_string(set.size());
    std::vector<std::string_view> words = {"HPEXPIREAT", key, time, "FIELDS", count};
    words.insert(words.end(), set.begin(), set.end());
    ctx.tell(words);
  }
  if (deleted.empty()) return;
  std::vector<std::string_view> words = {"HDEL", key};
  words.insert(words.end(), deleted.begin(), deleted.end());
  ctx.tell(words);
}

void set_expiry(WriteContext& ctx, Args args, const TimeForm& form) {
  auto hash = open_hash(ctx, args[1]);
  if (!hash) return;
  const std::optional<int64_t> when_ms = field_expiry_time(ctx, args[2], form);
  if (!when_ms) return;
  ArgReader reader(args, 3);
  const Condition condition = read_condition(reader);
  const auto fields =
      read_fields(ctx.reply, reader, "ERR Parameter `numFields` should be greater than 0");
  if (!fields) return;
  if (!hash.exists()) return answer_all(ctx.reply, fields->size(), kNoField);
  std::vector<std::string_view> set;
  std::vector<std::string_view> deleted;
  ctx.reply.array(fields->size());
  for (std::string_view field : *fields) {
    const Answer answer = expire_field(*hash, field, condition, *when_ms, ctx.keys.expired_by_ms());
    if (answer == kDone) set.push_back(field);
    if (answer == kDeleted) deleted.push_back(field);
    ctx.reply.integer(answer);
  }
  const bool any_left = hash->finish();
  if (!set.empty()) ctx.keys.notify(notify::kHash, "hexpire", ctx.db, args[1]);
  if (!deleted.empty()) ctx.keys.notify(notify::kHash, "hdel", ctx.db, args[1]);
  if (!any_left) ctx.keys.notify(notify::kGeneric, "del", ctx.db, args[1]);
  if (ctx.tells()) tell_replicas(ctx, args[1], *when_ms, set, deleted);
}

void hexpire(WriteContext& ctx, Args args) {
  set_expiry(ctx, args, {.command = "hexpire", .unit_ms = 1000, .is_absolute = false});
}
void hpexpire(WriteContext& ctx, Args args) {
  set_expiry(ctx, args, {.command = "hpexpire", .unit_ms = 1, .is_absolute = false});
}
void hexpireat(WriteContext& ctx, Args args) {
  set_expiry(ctx, args, {.command = "hexpireat", .unit_ms = 1000, .is_absolute = true});
}
void hpexpireat(WriteContext& ctx, Args args) {
  set_expiry(ctx, args, {.command = "hpexpireat", .unit_ms = 1, .is_absolute = true});
}

void hpersist(WriteContext& ctx, Args args) {
  auto hash = open_hash(ctx, args[1]);
  if (!hash) return;
  ArgReader reader(args, 2);
  const auto fields = read_fields(ctx.reply, reader, kCountError);
  if (!fields) return;
  if (!hash.exists()) return answer_all(ctx.reply, fields->size(), kNoField);
  bool any = false;
  std::string held;
  ctx.reply.array(fields->size());
  for (std::string_view field : *fields) {
    FieldValue value;
    const bool there = hash->get(field, &held, &value);
    const bool expires = there && value.expire_ms != 0;
    if (expires) hash->set(field, {.bytes = value.bytes});
    any |= expires;
    ctx.reply.integer(!there ? kNoField : expires ? kDone : kNeverExpires);
  }
  hash->finish();
  if (any) ctx.keys.notify(notify::kHash, "hpersist", ctx.db, args[1]);
}

// When fields expire, or how long from `since_ms` on, in units that are rounded up.
void reply_expiry(ReadContext& ctx, Args args, int64_t unit_ms, int64_t since_ms) {
  auto hash = read_hash(ctx, args[1]);
  if (!hash) return;
  ArgReader reader(args, 2);
  const auto fields = read_fields(ctx.reply, reader, kCountError);
  if (!fields) return;
  std::string held;
  ctx.reply.array(fields->size());
  for (std::string_view field : *fields) {
    FieldValue value;
    if (!hash->get(field, &held, &value)) {
      ctx.reply.integer(kNoField);
    } else if (value.expire_ms == 0) {
      ctx.reply.integer(kNeverExpires);
    } else {
      ctx.reply.integer((value.expire_ms - since_ms + unit_ms - 1) / unit_ms);
    }
  }
}

void httl(ReadContext& ctx, Args args) {
  reply_expiry(ctx, args, 1000, ctx.now_ms());
}
void hpttl(ReadContext& ctx, Args args) {
  reply_expiry(ctx, args, 1, ctx.now_ms());
}
void hexpiretime(ReadContext& ctx, Args args) {
  reply_expiry(ctx, args, 1000, 0);
}
void hpexpiretime(ReadContext& ctx, Args args) {
  reply_expiry(ctx, args, 1, 0);
}

constexpr CommandRow setting(std::string_view name, std::string_view summary,
                             std::string_view arguments, contract::WriteHandler handler) {
  return {.name = name,
          .arity = -6,
          .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
          .keys = {key_at(1, key::kRw | key::kUpdate)},
          .since = "7.4.0",
          .complexity = "O(N) with N fields",
          .summary = summary,
          .arguments = arguments,
          .handler = handler};
}

constexpr CommandRow asking(std::string_view name, std::string_view summary, std::string_view tips,
                            contract::ReadHandler handler) {
  return {.name = name,
          .arity = -5,
          .flags = flag::kReadonly | flag::kFast,
          .keys = {key_at(1, key::kRo | key::kAccess)},
          .since = "7.4.0",
          .complexity = "O(N) with N fields",
          .summary = summary,
          .tips = tips,
          .arguments = "key:key#0 fields:block=FIELDS(numfields:integer field:string*)",
          .handler = handler};
}

#define INGOT_CONDITION_AND_FIELDS                                                         \
  " condition:oneof?(nx:pure-token=NX xx:pure-token=XX gt:pure-token=GT lt:pure-token=LT)" \
  " fields:block=FIELDS(numfields:integer field:string*)"

constexpr CommandRow kTable[] = {
    setting("hexpire", "Let fields expire after some seconds",
            "key:key#0 seconds:integer" INGOT_CONDITION_AND_FIELDS, hexpire),
    setting("hpexpire", "Let fields expire after some milliseconds",
            "key:key#0 milliseconds:integer" INGOT_CONDITION_AND_FIELDS, hpexpire),
    setting("hexpireat", "Let fields expire at a time in seconds",
            "key:key#0 unix-time-seconds:unix-time" INGOT_CONDITION_AND_FIELDS, hexpireat),
    setting("hpexpireat", "Let fields expire at a time in milliseconds",
            "key:key#0 unix-time-milliseconds:unix-time" INGOT_CONDITION_AND_FIELDS, hpexpireat),
    asking("httl", "How long fields still live, in seconds", "nondeterministic_output", httl),
    asking("hpttl", "How long fields still live, in milliseconds", "nondeterministic_output",
           hpttl),
    asking("hexpiretime", "When fields expire, in seconds", {}, hexpiretime),
    asking("hpexpiretime", "When fields expire, in milliseconds", {}, hpexpiretime),
    {.name = "hpersist",
     .arity = -5,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "7.4.0",
     .complexity = "O(N) with N fields",
     .summary = "Let fields never expire",
     .arguments = "key:key#0 fields:block=FIELDS(numfields:integer field:string*)",
     .handler = hpersist},
};
constexpr auto kRows = contract::family(kHashFamily, kTable);

#undef INGOT_CONDITION_AND_FIELDS

}  // namespace

std::span<const CommandRow> hash_expire_rows() {
  return kRows;
}

}  // namespace ingot::commands
