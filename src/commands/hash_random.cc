// HRANDFIELD: fields of a hash by chance.
#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/commands/chance.h"
#include "src/commands/element_reply.h"
#include "src/commands/families.h"
#include "src/commands/hash_key.h"
#include "src/contract/thresholds.h"
#include "src/types/member_table.h"

namespace ingot::commands {
namespace {

using types::FieldValue;
using types::HashReader;
using types::Record;

// The header of a reply with so many fields.
void announce(ReplySink& reply, const DrawRequest& request, uint64_t fields) {
  reply.array(request.with_values && reply.version() == 2 ? 2 * fields : fields);
}

void write_field(ReplySink& reply, bool with_value, std::string_view field,
                 std::string_view value) {
  if (with_value && reply.version() > 2) reply.array(2);
  reply.bulk(field);
  if (with_value) reply.bulk(value);
}

// The hash, and how many of its fields are alive.
struct Source {
  ReadContext& ctx;
  const Record& record;
  HashReader& hash;
  uint64_t length;

  storage::CollectionId id() const { return record.collection()->id; }
  // Whether every field that is stored is alive, as nearly always.
  bool is_fresh() const { return length == record.collection()->count; }
};

// Every field, or `wanted` of them in the order in which they stand, each set with equal chance.
void reply_distinct(Source& source, const DrawRequest& request, uint64_t wanted) {
  ReadContext& ctx = source.ctx;
  Sample sample(wanted, source.length);
  announce(ctx.reply, request, wanted);
  if (!source.hash.is_large()) {
    return source.hash.walk([&](std::string_view field, const FieldValue& value) {
      if (sample.takes()) write_field(ctx.reply, request.with_values, field, value.bytes);
      return true;
    });
  }
  reply_elements(ctx,
                 {.space = storage::Space::kData,
                  .lower = storage::collection_begin(source.id()),
                  .upper = storage::collection_end(source.id())},
                 source.length,
                 [sample, now_ms = ctx.keys.expired_by_ms(), with_values = request.with_values](
                     std::string_view key, std::string_view stored, ReplySink& reply) mutable {
                   FieldValue value;
                   if (!types::decode_field_value(stored, &value)) value = {};
                   if (!value.is_alive(now_ms)) return uint64_t{0};
                   if (sample.takes()) {
                     write_field(reply, with_values, types::member_of(key), value.bytes);
                   }
                   return uint64_t{1};
                 });
}

WriteDrawn write_drawn(bool with_value) {
  return [with_value](std::string_view field, std::string_view stored, ReplySink& reply) {
    FieldValue value;
    if (!types::decode_field_value(stored, &value)) value = {};
    write_field(reply, with_value, field, value.bytes);
  };
}

// Which of the stored fields are alive; nothing where all are.
IsAlive is_alive_in(const Source& source) {
  if (source.is_fresh()) return nullptr;
  return [now_ms = source.ctx.keys.expired_by_ms()](std::string_view stored) {
    FieldValue value;
    return !types::decode_field_value(stored, &value) || value.is_alive(now_ms);
  };
}

Draw draw_repeating(Source& source, bool with_values) {
  if (source.hash.is_large()) {
    return draw_from_table(source.id(), source.record.collection()->count, /*repeats=*/true,
                           write_drawn(with_values), is_alive_in(source));
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  source.hash.walk([&](std::string_view field, const FieldValue& value) {
    pairs.emplace_back(field, with_values ? value.bytes : std::string_view());
    return true;
  });
  return draw_from_held(std::move(pairs), [with_values](const auto& pair, ReplySink& reply) {
    write_field(reply, with_values, pair.first, pair.second);
    return pair.first.size() + pair.second.size();
  });
}

void reply_repeating(Source& source, const DrawRequest& request) {
  const auto begin = [&](uint64_t draws) { announce(source.ctx.reply, request, draws); };
  if (source.hash.is_large()) {
    const WalkedDraws draws{.id = source.id(),
                            .of = source.length,
                            .count = request.size(),
                            .is_alive = is_alive_in(source)};
    if (reply_walked(source.ctx, draws, begin, write_drawn(request.with_values))) return;
  }
  const bool walks = request.size() > contract::kDrawnOnIoThread || !source.is_fresh();
  reply_draws(
      source.ctx, request.size(), walks && source.hash.is_large(),
      [&] { return draw_repeating(source, request.with_values); }, begin);
}

void reply_one(Source& source) {
  // Where most have expired many are drawn for one that has not.
  const bool walks = source.hash.is_large() && !source.is_fresh();
  if (!walks) {
    draw_repeating(source, false)(source.ctx.keys.data(), 1, source.ctx.reply);
    return;
  }
  if (!source.ctx.keys.data().begin_walk(source.record.collection()->count)) return;
  reply_repeating(source, {.count = -1});
}

void hrandfield(ReadContext& ctx, Args args) {
  const auto request = read_draw_request(ctx.reply, args, "withvalues");
  if (!request) return;
  auto hash = read_hash(ctx, args[1]);
  if (!hash) return;
  const uint64_t length = hash->length();
  if (length == 0) return request->one ? ctx.reply.null() : ctx.reply.array(0);
  Source source{.ctx = ctx, .record = hash.record(), .hash = *hash, .length = length};
  if (request->one) return reply_one(source);
  if (request->count == 0) return ctx.reply.array(0);
  if (request->repeats()) return reply_repeating(source, *request);
  const uint64_t wanted = std::min(request->size(), source.length);
  if (!hash->is_large() || !source.is_fresh() || is_sampled(wanted, length)) {
    return reply_distinct(source, *request, wanted);
  }
  if (wanted > contract::kDrawnOnIoThread && !ctx.keys.data().begin_walk(wanted)) return;
  announce(ctx.reply, *request, wanted);
  reply_drawn(
      ctx, wanted,
      draw_from_table(source.id(), length, /*repeats=*/false, write_drawn(request->with_values)));
}

constexpr CommandRow kTable[] = {
    {.name = "hrandfield",
     .arity = -2,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "6.2.0",
     .complexity = "O(N) with N fields asked for",
     .summary = "Fields of a hash by chance",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0 options:block?(count:integer withvalues:pure-token=WITHVALUES?)",
     .handler = hrandfield},
};
constexpr auto kRows = contract::family(kHashFamily, kTable);

}  // namespace

std::span<const CommandRow> hash_random_rows() {
  return kRows;
}

}  // namespace ingot::commands
