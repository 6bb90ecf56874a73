// Building the rest of a collection beside the writer, and streaming what was taken from it.
#include "src/commands/large_removal.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/commands/sorted_reply.h"
#include "src/data/piece_source.h"

namespace ingot::commands {

using types::Record;

namespace {

// Whether those that are left are so few that they are written anew: the longer the writer would
// repeat the removals, the more may be written instead, unless it writes them itself.
bool is_rest_little(const contract::WriteContext& ctx, const Record& record, uint64_t elements) {
  const uint64_t rewritten_max = ctx.in_place ? 4 : 16;
  const uint64_t rewritten = std::min(1 + elements / contract::kRemovedByWriter, rewritten_max);
  return record.collection()->count <= rewritten * elements;
}

// What only this transaction sees is not taken beside the writer, and to write it all anew would
// hold up everybody.
bool is_beyond_writer(const contract::WriteContext& ctx, const Record& record, uint64_t elements) {
  return !ctx.in_place || elements > data::removals_in_place_max(ctx) ||
         data::has_taken_beside(ctx, record);
}

data::MakeRest rest_at(int db, std::string_view key, const RestOf& rest_of) {
  return
      [db, name = std::string(key), rest_of](types::KeyReader& keys, const types::PutElement& put,
                                             data::SpillSort& taken) -> types::BuiltValue {
        Record record;
        const bool found = keys.peek(db, name, &record);
        return found ? rest_of(keys, record, put, taken) : types::BuiltValue{};
      };
}

void store_rest(contract::WriteContext& ctx, std::string_view key, const Record& before,
                types::BuiltValue& rest, types::Touch touch) {
  if (rest.changes == 0) return;
  if (rest.size == 0) return ctx.keys.remove(ctx.db, key, before);
  rest.metadata.expire_ms = before.expire_ms();
  ctx.keys.store(ctx.db, key, &before, rest.record(), touch);
}

}  // namespace

bool is_large_removal(const contract::WriteContext& ctx, const Record& record, uint64_t elements,
                      uint64_t most) {
  if (!record.collection() || elements <= most) return false;
  return is_beyond_writer(ctx, record, elements) || is_rest_little(ctx, record, elements);
}

bool is_large_group_removal(const contract::WriteContext& ctx, const Record& record,
                            uint64_t elements) {
  return record.collection() && elements > contract::kRemovedByWriter &&
         is_beyond_writer(ctx, record, elements / 2);
}

std::optional<data::Rest> leave_rest(contract::WriteContext& ctx, std::string_view key,
                                     const Record& before, const RestOf& rest_of,
                                     types::Touch touch) {
  auto rest = data::build_rest(ctx, contract::Args(&key, 1), rest_at(ctx.db, key, rest_of));
  if (rest) store_rest(ctx, key, before, rest->value, touch);
  return rest;
}

std::optional<data::Rest> leave_rest(contract::WriteContext& ctx, std::string_view key,
                                     const Record& before, uint64_t elements,
                                     const data::TakeElements& take, const RestOf& rest_of,
                                     types::Touch touch) {
  if ((ctx.in_place && !data::has_taken_beside(ctx, before)) ||
      elements > contract::kRemovalsRepeatedByWriter || is_rest_little(ctx, before, elements)) {
    return leave_rest(ctx, key, before, rest_of, touch);
  }
  auto made = data::take_beside(ctx, key, before, take, rest_at(ctx.db, key, rest_of), touch);
  if (!made) return std::nullopt;
  if (!made->is_stored) store_rest(ctx, key, before, made->rest.value, touch);
  return std::move(made->rest);
}

std::string next_place(const data::SpillSort& taken, bool reverse) {
  std::string place;
  storage::append_be64(&place, reverse ? ~taken.size() : taken.size());
  return place;
}

void reply_taken(contract::WriteContext& ctx, std::shared_ptr<data::SpillSort> taken,
                 WriteTaken write) {
  const ItemRange all{.first = 0, .count = taken->size()};
  const bool streams = (all.count > contract::kHeldElements || taken->is_spilled()) &&
                       ctx.reply.keeps_bytes_max() == 0;
  reply_sorted({.data = ctx.data,
                .view = streams ? data::latest_view(ctx.data) : nullptr,
                .reader = ctx.keys.data(),
                .reply = ctx.reply},
               std::move(taken), all,
               [write = std::move(write)](storage::Reader&, std::string_view, std::string_view item,
                                          contract::ReplySink& reply) { write(item, reply); });
}

}  // namespace ingot::commands
