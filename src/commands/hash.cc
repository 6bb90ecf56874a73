// Fields of hashes, one by one: HSET, HGET and their relatives.
#include <span>
#include <string>
#include <string_view>

#include "src/commands/element_reply.h"
#include "src/commands/families.h"
#include "src/commands/hash_key.h"
#include "src/commands/large_addition.h"
#include "src/commands/large_removal.h"

namespace ingot::commands {
namespace {

using types::FieldValue;

// Looks a field up and hands it to `answer`, null when it is not there; not called after an error.
template <typename Answer>
void answer_field(ReadContext& ctx, Args args, const Answer& answer) {
  auto hash = read_hash(ctx, args[1]);
  if (!hash) return;
  std::string held;
  FieldValue value;
  answer(hash->get(args[2], &held, &value) ? &value : nullptr);
}

void hget(ReadContext& ctx, Args args) {
  answer_field(ctx, args, [&](const FieldValue* value) {
    value != nullptr ? ctx.reply.bulk(value->bytes) : ctx.reply.null();
  });
}

void hexists(ReadContext& ctx, Args args) {
  answer_field(ctx, args, [&](const FieldValue* value) { ctx.reply.integer(value != nullptr); });
}

void hstrlen(ReadContext& ctx, Args args) {
  answer_field(ctx, args, [&](const FieldValue* value) {
    ctx.reply.integer(value != nullptr ? static_cast<int64_t>(value->bytes.size()) : 0);
  });
}

void answer_value(types::HashReader& hash, std::string_view field, ReplySink& reply,
                  size_t* bytes) {
  std::string held;
  FieldValue value;
  if (!hash.get(field, &held, &value)) return reply.null();
  reply.bulk(value.bytes);
  *bytes += value.bytes.size();
}

void hmget(ReadContext& ctx, Args args) {
  auto hash = read_hash(ctx, args[1]);
  if (!hash) return;
  ctx.reply.array(args.size() - 2);
  size_t bytes = 0;
  for (size_t i = 2; i < args.size(); ++i) {
    if (bytes > contract::kHeldValuesBytes && hash->is_large() && can_stream(ctx)) {
      return stream_answers(ctx, args.subspan(i),
                            [record = hash.record(), expired_by_ms = ctx.keys.expired_by_ms()](
                                storage::Reader& data, std::string_view field, ReplySink& reply) {
                              types::HashReader streamed(data, record, expired_by_ms);
                              size_t written = 0;
                              answer_value(streamed, field, reply, &written);
                            });
    }
    answer_value(*hash, args[i], ctx.reply, &bytes);
    if (ctx.keys.data().failed()) return;
  }
}

void hlen(ReadContext& ctx, Args args) {
  auto hash = read_hash(ctx, args[1]);
  if (!hash) return;
  ctx.reply.integer(static_cast<int64_t>(hash->length()));
}

// Answers how many fields are new, or nothing when an error was answered.
std::optional<int64_t> set_fields(WriteContext& ctx, Args args, std::string_view command) {
  if (args.size() % 2 == 1) {
    ctx.reply.error(contract::wrong_arity_error(command));
    return std::nullopt;
  }
  auto hash = open_hash(ctx, args[1]);
  if (!hash) return std::nullopt;
  const Args pairs = args.subspan(2);
  const auto set = add_elements(ctx, args[1], hash, pairs.size() / 2, hash_limits(ctx),
                                [pairs](types::HashWriter& writer, const auto& pause) {
                                  int64_t added = 0;
                                  for (size_t i = 0; i < pairs.size(); i += 2) {
                                    added += writer.set(pairs[i], {.bytes = pairs[i + 1]}) ? 1 : 0;
                                    pause();
                                  }
                                  writer.finish();
                                  return data::Change{.changes = pairs.size() / 2, .answer = added};
                                });
  if (!set) return std::nullopt;
  ctx.changes = set->changes;
  ctx.keys.notify(notify::kHash, "hset", ctx.db, args[1]);
  return set->answer;
}

void hset(WriteContext& ctx, Args args) {
  if (const auto added = set_fields(ctx, args, "hset")) ctx.reply.integer(*added);
}

void hmset(WriteContext& ctx, Args args) {
  if (set_fields(ctx, args, "hmset")) ctx.reply.ok();
}

void hsetnx(WriteContext& ctx, Args args) {
  auto hash = open_hash(ctx, args[1]);
  if (!hash) return;
  std::string held;
  FieldValue value;
  if (hash->get(args[2], &held, &value)) return ctx.reply.integer(0);
  hash->set(args[2], {.bytes = args[3]});
  hash->finish();
  ctx.keys.notify(notify::kHash, "hset", ctx.db, args[1]);
  ctx.reply.integer(1);
}

void hdel(WriteContext& ctx, Args args) {
  auto hash = open_hash(ctx, args[1]);
  if (!hash) return;
  if (!hash.exists()) return ctx.reply.integer(0);
  const auto removed = remove_named(ctx, args, hash, contract::kRemovedByWriter, hash_limits(ctx),
                                    [](types::KeyReader& keys, const types::Record& record,
                                       const types::PutElement& put, const auto& is_gone) {
                                      return types::rest_of_hash(
                                          keys.data(), record, keys.expired_by_ms(), put, is_gone);
                                    });
  if (!removed) return;
  if (removed->count != 0) ctx.keys.notify(notify::kHash, "hdel", ctx.db, args[1]);
  if (!removed->left) ctx.keys.notify(notify::kGeneric, "del", ctx.db, args[1]);
  ctx.changes = removed->count;
  ctx.reply.integer(static_cast<int64_t>(removed->count));
}

constexpr CommandRow kTable[] = {
    {.name = "hset",
     .arity = -4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "2.0.0",
     .complexity = "O(1) for each field",
     .summary = "Set fields of a hash, which is made when there is none",
     .history = "4.0.0: Accepts multiple `field` and `value` arguments.",
     .arguments = "key:key#0 field_value:block*(field:string value:string)",
     .handler = hset,
     .members = {.first = 2, .step = 2}},
    {.name = "hsetnx",
     .arity = 4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kInsert)},
     .since = "2.0.0",
     .complexity = "O(1)",
     .summary = "Set a field of a hash unless it is there",
     .arguments = "key:key#0 field:string value:string",
     .handler = hsetnx,
     .members = {.first = 2, .step = 2}},
    {.name = "hmset",
     .arity = -4,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "2.0.0",
     .complexity = "O(N) with N fields",
     .summary = "Set several fields of a hash",
     .deprecated_since = "4.0.0",
     .replaced_by = "`HSET` with multiple field-value pairs",
     .arguments = "key:key#0 field_value:block*(field:string value:string)",
     .handler = hmset,
     .members = {.first = 2, .step = 2}},
    {.name = "hget",
     .arity = 3,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.0.0",
     .complexity = "O(1)",
     .summary = "The value of a field",
     .arguments = "key:key#0 field:string",
     .handler = hget},
    {.name = "hmget",
     .arity = -3,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "2.0.0",
     .complexity = "O(N) with N fields asked for",
     .summary = "The values of several fields",
     .arguments = "key:key#0 field:string*",
     .handler = hmget},
    {.name = "hdel",
     .arity = -3,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kDelete)},
     .since = "2.0.0",
     .complexity = "O(N) with N fields to remove",
     .summary = "Remove fields of a hash, and the hash with its last one",
     .history = "2.4.0: Accepts multiple `field` arguments.",
     .arguments = "key:key#0 field:string*",
     .handler = hdel,
     .members = {.first = 2}},
    {.name = "hexists",
     .arity = 3,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo)},
     .since = "2.0.0",
     .complexity = "O(1)",
     .summary = "Whether a hash has a field",
     .arguments = "key:key#0 field:string",
     .handler = hexists},
    {.name = "hlen",
     .arity = 2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo)},
     .since = "2.0.0",
     .complexity = "O(1)",
     .summary = "How many fields a hash has",
     .arguments = "key:key#0",
     .handler = hlen},
    {.name = "hstrlen",
     .arity = 3,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo)},
     .since = "3.2.0",
     .complexity = "O(1)",
     .summary = "How many bytes the value of a field has",
     .arguments = "key:key#0 field:string",
     .handler = hstrlen},
};
constexpr auto kRows = contract::family(kHashFamily, kTable);

}  // namespace

std::span<const CommandRow> hash_rows() {
  return kRows;
}

}  // namespace ingot::commands
