// Making values in the group or beside it, and linking the latter.
#include "src/data/built_value.h"

#include <memory>
#include <string>
#include <vector>

#include "src/data/built_collection.h"
#include "src/data/sandbox.h"
#include "src/data/store.h"
#include "src/types/collection.h"

namespace ingot::data {

using storage::Space;
using types::BuiltValue;

namespace {

using Names = std::vector<std::string>;

// The records of keys, "" where there is none. What is made of a key stays good while its record
// is the same: a change of a collection changes the revision in it.
Names states(types::KeyReader& keys, int db, const Names& names) {
  Names states;
  for (const std::string& name : names) {
    types::Record record;
    states.push_back(keys.peek(db, name, &record) ? record.bytes() : std::string());
  }
  return states;
}

// A value whose elements are in the engine already, and what was taken to make it.
struct BuiltBeside : contract::PoolResult {
  BuiltBeside(Services& services, types::KeyReader& keys, int db, const Names& sources,
              const MakeRest& make)
      : collection(services),
        taken(std::make_shared<SpillSort>(services)),
        source_states(states(keys, db, sources)) {
    value = make(
        keys,
        [&](Space space, std::string_view element, std::string_view record) {
          collection.put(space, element, record);
          latch_failure(keys, collection.status());
        },
        *taken);
    collection.flush();
    latch_failure(keys, collection.status());
    latch_failure(keys, taken->finish());
  }

  // At once, so that whoever makes the value stops where the disk is full.
  static void latch_failure(types::KeyReader& keys, const storage::Status& status) {
    if (!status.ok()) keys.data().latch_error(status);
  }

  BuiltCollection collection;
  std::shared_ptr<SpillSort> taken;
  const Names source_states;
  BuiltValue value;
};

std::shared_ptr<BuiltBeside> build_beside(contract::WriteContext& ctx, const Recipe& recipe,
                                          const MakeRest& make) {
  const Names sources(recipe.sources.begin(), recipe.sources.end());
  // They changed while it was built: not a second time.
  if (ctx.earlier) ctx.hold({});
  return ctx.from_pool<BuiltBeside>(
      [&](const BuiltBeside& made) {
        return made.source_states == states(ctx.keys, ctx.db, sources);
      },
      [&services = ctx.data, db = ctx.db, sources, make](types::KeyReader& keys) {
        return std::make_shared<BuiltBeside>(services, keys, db, sources, make);
      },
      ctx.in_place || recipe.by_writer);
}

// The value with its collection; nothing when reading failed.
std::optional<BuiltValue> link(contract::WriteContext& ctx, BuiltBeside& built) {
  BuiltValue value = built.value;
  if (value.metadata.collection) {
    if (!built.collection.link(ctx.keys)) return std::nullopt;
    value.metadata.collection->id = built.collection.id();
  }
  if (ctx.keys.data().failed()) return std::nullopt;
  return value;
}

// What `change` makes of the value of a key.
BuiltValue changed_value(Services& services, types::KeyReader& keys, int db, const std::string& key,
                         const MakeChange& change, const types::PutElement& put) {
  Sandbox sandbox(services.store.engine(), keys.data().snapshot(), keys.databases(), keys.now_ms());
  const Change changed = change(sandbox.keys());
  BuiltValue value;
  types::Record after;
  if (changed.changes != 0 && sandbox.keys().peek(db, key, &after)) {
    value = types::copy_value(sandbox.overlay(), after, put);
  }
  if (sandbox.overlay().failed()) keys.data().latch_error(sandbox.overlay().error());
  value.changes = changed.changes;
  value.answer = changed.answer;
  return value;
}

}  // namespace

BuiltValue build_in_group(types::KeyWriter& keys, const MakeValue& make) {
  std::optional<storage::CollectionId> id;
  BuiltValue value =
      make(keys, [&](Space space, std::string_view element, std::string_view record) {
        if (!id) id = keys.new_collection();
        keys.overlay().put(space, storage::collection_begin(*id).append(element), record);
      });
  // A string of nothing but holes has no element.
  if (value.metadata.collection) value.metadata.collection->id = id ? *id : keys.new_collection();
  return value;
}

std::optional<BuiltValue> build_value(contract::WriteContext& ctx, const Recipe& recipe,
                                      const MakeValue& make) {
  if (!recipe.is_large) {
    BuiltValue value = build_in_group(ctx.keys, make);
    if (ctx.keys.data().failed()) return std::nullopt;
    return value;
  }
  const auto built = build_beside(
      ctx, recipe, [make](types::KeyReader& keys, const types::PutElement& put, SpillSort&) {
        return make(keys, put);
      });
  return built ? link(ctx, *built) : std::nullopt;
}

std::optional<BuiltValue> build_changed(contract::WriteContext& ctx, std::string_view key,
                                        const MakeChange& change) {
  const contract::Args sources(&key, 1);
  const auto built =
      build_beside(ctx, {.sources = sources, .is_large = true},
                   [&services = ctx.data, db = ctx.db, name = std::string(key), change](
                       types::KeyReader& keys, const types::PutElement& put, SpillSort&) {
                     return changed_value(services, keys, db, name, change, put);
                   });
  if (!built) return std::nullopt;
  return built->value.changes == 0 ? built->value : link(ctx, *built);
}

std::optional<Rest> build_rest(contract::WriteContext& ctx, contract::Args sources,
                               const MakeRest& make) {
  const auto built = build_beside(ctx, {.sources = sources, .is_large = true}, make);
  if (!built) return std::nullopt;
  // What nobody needs stays garbage.
  if (built->value.changes == 0 || built->value.size == 0) {
    return Rest{.value = built->value, .taken = built->taken};
  }
  auto value = link(ctx, *built);
  if (!value) return std::nullopt;
  return Rest{.value = std::move(*value), .taken = built->taken};
}

}  // namespace ingot::data
