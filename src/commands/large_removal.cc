// Building the rest of a collection beside the writer, and streaming what was taken from it.
#include "src/commands/large_removal.h"

#include <string>
#include <utility>

#include "src/commands/sorted_reply.h"
#include "src/data/piece_source.h"

namespace ingot::commands {

using types::Record;

std::optional<data::Rest> leave_rest(contract::WriteContext& ctx, std::string_view key,
                                     const Record& before, const RestOf& rest_of,
                                     types::Touch touch) {
  auto rest =
      data::build_rest(ctx, contract::Args(&key, 1),
                       [db = ctx.db, name = std::string(key), type = before.type(), rest_of](
                           types::KeyReader& keys, const types::PutElement& put,
                           data::SpillSort& taken) -> types::BuiltValue {
                         Record record;
                         const bool found = keys.peek(db, name, &record);
                         // Otherwise the key has changed, and the command runs again.
                         const bool fits = found && record.type() == type && record.collection();
                         return fits ? rest_of(keys, record, put, taken) : types::BuiltValue{};
                       });
  if (!rest || rest->value.changes == 0) return rest;
  if (rest->value.size == 0) {
    ctx.keys.remove(ctx.db, key, before);
  } else {
    rest->value.metadata.expire_ms = before.expire_ms();
    ctx.keys.store(ctx.db, key, &before, rest->value.record(), touch);
  }
  return rest;
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
