// Making a result and putting it in the place of whatever stood under the key.
#include "src/commands/store_result.h"

namespace ingot::commands {

void store_result(contract::WriteContext& ctx, const StoreRequest& request,
                  const data::MakeValue& make) {
  // Its sources have been looked up already, and count once.
  const uint64_t hits = ctx.keys.hits;
  const uint64_t misses = ctx.keys.misses;
  const auto missed = static_cast<long>(ctx.keys.missed.size());
  const auto value = data::build_value(ctx, request.recipe, make);
  ctx.keys.hits = hits;
  ctx.keys.misses = misses;
  ctx.keys.missed.erase(ctx.keys.missed.begin() + missed, ctx.keys.missed.end());
  if (!value) return;
  if (!value->error.empty()) return ctx.reply.error(value->error);
  types::Record before;
  const bool exists = ctx.keys.peek(ctx.db, request.target, &before);
  if (value->size > 0) {
    ctx.keys.store(ctx.db, request.target, exists ? &before : nullptr, value->record());
    if (request.counts_elements) ctx.changes = value->size;
    ctx.keys.notify(request.kind, request.event, ctx.db, request.target);
  } else if (exists) {
    ctx.keys.remove(ctx.db, request.target, before);
    ctx.keys.notify(types::notify::kGeneric, "del", ctx.db, request.target);
  }
  ctx.reply.integer(static_cast<int64_t>(value->size));
}

}  // namespace ingot::commands
