// See store_built.h.
#include "src/commands/store_built.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ingot::commands {

using command::WriteContext;
using storage::Space;
using types::BuiltValue;
using types::PreparedValue;
using types::Record;

namespace {

// Null when the run is given up, or the disk failed.
std::shared_ptr<PreparedValue> obtain(WriteContext& ctx, const StoreRequest& request,
                                      const PreparedValue::Build& build) {
  const std::vector<std::string> sources(request.sources.begin(), request.sources.end());
  auto prepared = std::dynamic_pointer_cast<PreparedValue>(ctx.prepared);
  if (prepared && prepared->built_from(ctx.keys, ctx.db, sources)) return prepared;
  if (!ctx.in_place && !request.by_writer) {
    ctx.needs(types::prepare_value(ctx.services, ctx.db, sources, build));
    return nullptr;
  }
  prepared = std::make_shared<PreparedValue>(ctx.services, ctx.keys, ctx.db, sources, build);
  if (!prepared->status().ok()) ctx.keys.data().latch_error(prepared->status());
  ctx.keys.effects().kept.push_back(prepared);
  return prepared;
}

}  // namespace

BuiltValue build_in_group(WriteContext& ctx, const PreparedValue::Build& build) {
  std::optional<storage::CollectionId> id;
  BuiltValue value =
      build(ctx.keys, [&](Space space, std::string_view element, std::string_view record) {
        if (!id) id = ctx.keys.new_collection();
        ctx.keys.overlay().put(space, storage::collection_begin(*id).append(element), record);
      });
  if (id) value.metadata.collection->id = *id;
  return value;
}

void store_built(WriteContext& ctx, const StoreRequest& request,
                 const PreparedValue::Build& build) {
  BuiltValue value;
  if (request.is_large) {
    const auto prepared = obtain(ctx, request, build);
    if (!prepared || !prepared->link(ctx.keys, &value)) return;
  } else {
    value = build_in_group(ctx, build);
  }
  if (ctx.keys.data().failed()) return;
  if (!value.error.empty()) return ctx.reply.error(value.error);
  Record before;
  const bool exists = ctx.keys.peek(ctx.db, request.target, &before);
  if (value.size > 0) {
    value.metadata.payload = value.payload;
    ctx.keys.store(ctx.db, request.target, exists ? &before : nullptr, value.metadata);
    ctx.keys.notify(request.kind, request.event, ctx.db, request.target);
  } else if (exists) {
    ctx.keys.remove(ctx.db, request.target, before);
    ctx.keys.notify(types::notify::kGeneric, "del", ctx.db, request.target);
  }
  ctx.reply.integer(static_cast<int64_t>(value.size));
}

}  // namespace ingot::commands
