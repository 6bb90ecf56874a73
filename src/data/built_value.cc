// Making values in the group or beside it, and linking the latter.
#include "src/data/built_value.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/contract/thresholds.h"
#include "src/data/built_collection.h"
#include "src/data/sandbox.h"
#include "src/data/store.h"
#include "src/types/collection.h"
#include "src/types/counted_order.h"
#include "storage/check.h"

namespace ingot::data {

using storage::Space;
using types::BuiltValue;

namespace {

using Names = std::vector<std::string>;

// How much a sandbox holds before its elements go into the engine.
constexpr size_t kHeldChanges = 4096;
constexpr size_t kHeldBytes = 1 << 20;

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

// A view, but for those of the sources that stand in their keys' records: these are as a
// transaction has left them, which the view does not show.
class SourcesOfTransaction : public types::KeyReader {
 public:
  // `states` is empty outside of a transaction.
  SourcesOfTransaction(types::KeyReader& view, int db, const Names& sources, const Names& states)
      : KeyReader(view.data(), view.databases(), view.now_ms(), view.access()), db_(db) {
    expire_as(view);
    for (size_t i = 0; i < states.size(); ++i) {
      types::Record record;
      if (!states[i].empty()) INGOT_CHECK(record.assign(states[i]));
      if (!record.collection()) left_[sources[i]] = record;
    }
  }
  bool find(int db, std::string_view key, types::Record* record) override {
    const types::Record* left = left_in_record(db, key);
    return left != nullptr ? take(*left, record) : KeyReader::find(db, key, record);
  }
  bool peek(int db, std::string_view key, types::Record* record) override {
    const types::Record* left = left_in_record(db, key);
    return left != nullptr ? take(*left, record) : KeyReader::peek(db, key, record);
  }

 private:
  const types::Record* left_in_record(int db, std::string_view key) const {
    const auto found = left_.find(key);
    return db == db_ && found != left_.end() ? &found->second : nullptr;
  }
  static bool take(const types::Record& left, types::Record* record) {
    *record = left;
    return left.exists();
  }

  const int db_;
  std::map<std::string, types::Record, std::less<>> left_;
};

// At once, so that whoever makes the value stops where the disk is full.
void latch_failure(types::KeyReader& keys, const storage::Status& status) {
  if (!status.ok()) keys.data().latch_error(status);
}

types::PutElement into(BuiltCollection& collection, types::KeyReader& keys) {
  return [&](Space space, std::string_view element, std::string_view record) {
    collection.put(space, element, record);
    latch_failure(keys, collection.status());
  };
}

// What the pool makes of some keys' values. It is good while they are as they were.
struct OfSources : contract::PoolResult {
  bool is_made = false;
  Names source_states;
};

bool is_good(contract::WriteContext& ctx, const Names& sources, const OfSources& result) {
  return result.is_made && result.source_states == states(ctx.keys, ctx.db, sources);
}

enum class Of : uint8_t {
  kView,    // whatever the sources are then
  kAsSeen,  // only while they are as the writer has just found them: the command counts on that
};

// `fill` makes the result, which begins as Result(services). Not at all where a transaction has
// made another collection of a source, which no view shows.
template <typename Result>
std::shared_ptr<Result> make_beside(
    contract::WriteContext& ctx, contract::Args sources, Of of, bool here,
    const std::function<void(types::KeyReader& keys, Result& result)>& fill) {
  const Names names(sources.begin(), sources.end());
  const bool in_transaction = !ctx.may_block;
  const bool is_as_seen = in_transaction || of == Of::kAsSeen;
  const Names seen = is_as_seen ? states(ctx.keys, ctx.db, names) : Names();
  // They changed while it was made: not a second time.
  if (ctx.earlier) ctx.hold({});
  return ctx.from_pool<Result>([&](const Result& result) { return is_good(ctx, names, result); },
                               [&services = ctx.data, db = ctx.db, names, seen, in_transaction,
                                is_as_seen, fill](types::KeyReader& view) {
                                 SourcesOfTransaction keys(view, db, names,
                                                           in_transaction ? seen : Names());
                                 auto result = std::make_shared<Result>(services);
                                 result->source_states = states(keys, db, names);
                                 result->is_made = !is_as_seen || seen == result->source_states;
                                 if (result->is_made) fill(keys, *result);
                                 return result;
                               },
                               here);
}

// A value whose elements are in the engine already, and what was taken to make it.
struct Built {
  explicit Built(Services& services)
      : collection(services), taken(std::make_shared<SpillSort>(services)) {}

  BuiltCollection collection;
  std::shared_ptr<SpillSort> taken;
  BuiltValue value;
};
struct BuiltBeside : OfSources, Built {
  using Built::Built;
};

// `build` makes the value; its elements go into the collection.
using Build = std::function<BuiltValue(types::KeyReader& keys, BuiltCollection& collection,
                                       SpillSort& taken)>;

std::shared_ptr<BuiltBeside> build_beside(contract::WriteContext& ctx, const Recipe& recipe, Of of,
                                          const Build& build) {
  return make_beside<BuiltBeside>(ctx, recipe.sources, of, ctx.in_place || recipe.by_writer,
                                  [build](types::KeyReader& keys, BuiltBeside& built) {
                                    built.value = build(keys, built.collection, *built.taken);
                                    built.collection.flush();
                                    latch_failure(keys, built.collection.status());
                                    latch_failure(keys, built.taken->finish());
                                  });
}

// The value with its collection; nothing when reading failed.
std::optional<BuiltValue> link(contract::WriteContext& ctx, Built& built) {
  BuiltValue value = built.value;
  if (value.metadata.collection) {
    if (!built.collection.link(ctx.keys)) return std::nullopt;
    value.metadata.collection->id = built.collection.id();
  }
  if (ctx.keys.data().failed()) return std::nullopt;
  return value;
}

std::optional<Rest> rest_of(contract::WriteContext& ctx, Built& built) {
  // What nobody needs stays garbage.
  if (built.value.changes == 0 || built.value.size == 0) {
    return Rest{.value = built.value, .taken = built.taken};
  }
  auto value = link(ctx, built);
  if (!value) return std::nullopt;
  return Rest{.value = std::move(*value), .taken = built.taken};
}

// A copy of a record's value, in `collection`, and its record.
types::Record copy_into(BuiltCollection& collection, types::KeyReader& keys,
                        const types::Record& source) {
  BuiltValue copy = types::copy_value(keys.data(), source, into(collection, keys));
  collection.flush();
  latch_failure(keys, collection.status());
  if (copy.metadata.collection) copy.metadata.collection->id = collection.id();
  std::string bytes;
  storage::encode_metadata(copy.record(), &bytes);
  types::Record record;
  INGOT_CHECK(record.assign(std::move(bytes)));
  return record;
}

// What the changes make of the value of a key. They are made in a sandbox, which is emptied into
// the collection whenever it holds much.
BuiltValue changed_value(Services& services, types::KeyReader& keys, int db, const std::string& key,
                         const Changes& changes, BuiltCollection& collection) {
  types::Record source;
  types::Record copy;
  if (keys.peek(db, key, &source)) {
    if (!changes.any(keys, source)) return {};
    copy = copy_into(collection, keys, source);
  }
  Sandbox sandbox(services.store.engine(), nullptr, keys.databases(), keys.now_ms(),
                  collection.id());
  sandbox.keys().expire_as(keys);
  const size_t id_bytes = storage::collection_begin(collection.id()).size();
  const auto empty_sandbox = [&] {
    sandbox.take_elements([&](Space space, std::string_view full, const std::string_view* record) {
      const std::string_view element = full.substr(id_bytes);
      record != nullptr ? collection.put(space, element, *record)
                        : collection.remove(space, element);
    });
    collection.flush();
    if (!collection.status().ok()) sandbox.overlay().latch_error(collection.status());
  };
  const Change changed = changes.make(sandbox.keys(), copy.exists() ? &copy : nullptr, [&] {
    if (sandbox.overlay().size() >= kHeldChanges || sandbox.overlay().bytes() >= kHeldBytes) {
      empty_sandbox();
    }
  });
  BuiltValue value;
  types::Record after;
  if (changed.changes != 0 && sandbox.keys().peek(db, key, &after)) {
    empty_sandbox();
    value = {.metadata = after.metadata(), .payload = std::string(after.payload()), .size = 1};
  }
  if (sandbox.overlay().failed()) keys.data().latch_error(sandbox.overlay().error());
  value.changes = changed.changes;
  value.answer = changed.answer;
  return value;
}

// Changes of a collection that were made in a sandbox, at a view.
struct InSandbox {
  std::unique_ptr<Sandbox> sandbox;
  types::Record after;
};
struct ChangedBeside : OfSources, InSandbox {
  explicit ChangedBeside(Services& /*services*/) {}

  Change change;
};
// Or too many to be held, and then the rest was built. No BuiltBeside, which a later run of the
// command may ask for: it would take the one for the other.
struct TakenBeside : OfSources, Built, InSandbox {
  using Built::Built;
};

std::unique_ptr<Sandbox> sandbox_of(types::KeyReader& view, Services& services) {
  auto sandbox = std::make_unique<Sandbox>(services.store.engine(), view.data().snapshot(),
                                           view.databases(), view.now_ms());
  sandbox->keys().expire_as(view);
  return sandbox;
}

// What came of the changes becomes the writer's, and the value of the key.
void repeat(contract::WriteContext& ctx, std::string_view key, const types::Record& before,
            const InSandbox& made, types::Touch touch) {
  ctx.keys.overlay().note_order(before.collection()->id, before.collection()->revision);
  made.sandbox->overlay().each_element(
      [&](Space space, std::string_view element, const std::string_view* record) {
        record != nullptr ? ctx.keys.overlay().put(space, element, *record)
                          : ctx.keys.overlay().remove(space, element);
        if (space == Space::kOrder) types::follow_order(ctx.keys.orders(), element, record);
      });
  ctx.keys.store(ctx.db, key, &before, made.after.metadata(), touch);
}

// In the group; nothing, and nothing is done, when the elements have more bytes than this.
std::optional<BuiltValue> build_within(size_t bytes_max, types::KeyWriter& keys,
                                       const MakeValue& make) {
  struct Element {
    Space space;
    std::string key;
    std::string record;
  };
  std::vector<Element> elements;
  size_t bytes = 0;
  BuiltValue value =
      make(keys, [&](Space space, std::string_view element, std::string_view record) {
        if (bytes > bytes_max || keys.data().failed()) return;
        bytes += element.size() + record.size();
        elements.emplace_back(space, std::string(element), std::string(record));
        // Whoever reads on stops.
        if (bytes > bytes_max) keys.data().latch_error({storage::Status::Code::kBusy, "too large"});
      });
  if (bytes > bytes_max) {
    keys.data().reset_outcome();
    return std::nullopt;
  }
  if (!value.metadata.collection) return value;
  // A string of nothing but holes has no element.
  value.metadata.collection->id = keys.new_collection();
  const std::string begin = storage::collection_begin(value.metadata.collection->id);
  for (const Element& each : elements) {
    keys.overlay().put(each.space, begin + each.key, each.record);
  }
  return value;
}

}  // namespace

BuiltValue build_in_group(types::KeyWriter& keys, const MakeValue& make) {
  return *build_within(std::numeric_limits<size_t>::max(), keys, make);
}

std::optional<BuiltValue> build_value(contract::WriteContext& ctx, const Recipe& recipe,
                                      const MakeValue& make) {
  if (!recipe.is_large && std::dynamic_pointer_cast<BuiltBeside>(ctx.earlier) == nullptr) {
    std::optional<BuiltValue> value = build_within(contract::kMadeByWriterBytes, ctx.keys, make);
    if (ctx.keys.data().failed()) return std::nullopt;
    if (value) return value;
  }
  if (recipe.holds) ctx.hold(*recipe.holds);
  const auto built =
      build_beside(ctx, recipe, recipe.is_as_seen ? Of::kAsSeen : Of::kView,
                   [make](types::KeyReader& keys, BuiltCollection& collection, SpillSort&) {
                     collection.leave_room();
                     return make(keys, into(collection, keys));
                   });
  return built ? link(ctx, *built) : std::nullopt;
}

std::optional<BuiltValue> build_changed(contract::WriteContext& ctx, std::string_view key,
                                        const Changes& changes) {
  const contract::Args sources(&key, 1);
  const auto built =
      build_beside(ctx, {.sources = sources, .is_large = true}, Of::kView,
                   [&services = ctx.data, db = ctx.db, name = std::string(key), changes](
                       types::KeyReader& keys, BuiltCollection& collection, SpillSort&) {
                     collection.leave_room();
                     return changed_value(services, keys, db, name, changes, collection);
                   });
  if (!built) return std::nullopt;
  return built->value.changes == 0 ? built->value : link(ctx, *built);
}

std::optional<Change> change_beside(contract::WriteContext& ctx, std::string_view key,
                                    const types::Record& before, const Changes& changes) {
  const auto made =
      make_beside<ChangedBeside>(ctx, contract::Args(&key, 1), Of::kView, /*here=*/false,
                                 [&services = ctx.data, db = ctx.db, name = std::string(key),
                                  changes](types::KeyReader& keys, ChangedBeside& result) {
                                   types::Record source;
                                   if (!keys.peek(db, name, &source) || !changes.any(keys, source))
                                     return;
                                   result.sandbox = sandbox_of(keys, services);
                                   types::KeyWriter& sandbox = result.sandbox->keys();
                                   const Change change = changes.make(sandbox, &source, [] {});
                                   if (change.changes != 0 && sandbox.peek(db, name, &result.after))
                                     result.change = change;
                                   if (sandbox.data().failed())
                                     keys.data().latch_error(sandbox.data().error());
                                 });
  if (!made) return std::nullopt;
  if (made->change.changes != 0) repeat(ctx, key, before, *made, types::Touch::kModified);
  return made->change;
}

uint64_t removals_in_place_max(const contract::WriteContext& ctx) {
  return std::max(contract::kRemovalsRepeatedByWriter,
                  ctx.data.bounds.changes_bytes / contract::kRemovalBytes);
}

bool has_taken_beside(const contract::WriteContext& ctx, const types::Record& before) {
  const auto made = std::dynamic_pointer_cast<TakenBeside>(ctx.earlier);
  return made && made->is_made && made->source_states == Names{before.bytes()};
}

std::optional<RestOrTaken> take_beside(contract::WriteContext& ctx, std::string_view key,
                                       const types::Record& before, const TakeElements& take,
                                       const MakeRest& make, types::Touch touch) {
  const auto made = make_beside<TakenBeside>(
      ctx, contract::Args(&key, 1), Of::kAsSeen, /*here=*/false,
      [&services = ctx.data, db = ctx.db, name = std::string(key), take, make](
          types::KeyReader& keys, TakenBeside& result) {
        types::Record source;
        if (!keys.peek(db, name, &source)) return;
        result.sandbox = sandbox_of(keys, services);
        storage::Overlay& held = result.sandbox->overlay();
        const auto is_too_much = [&] {
          return held.bytes() > contract::kRemovalsRepeatedByWriterBytes || held.failed();
        };
        const auto taken = take({.view = keys,
                                 .keys = result.sandbox->keys(),
                                 .before = source,
                                 .taken = *result.taken,
                                 .is_too_much = is_too_much});
        const bool is_left =
            taken && taken->left && result.sandbox->keys().peek(db, name, &result.after);
        if (held.failed()) return keys.data().latch_error(held.error());
        if (taken) {
          INGOT_CHECK(is_left == taken->left);
          result.value = {.size = taken->left ? 1u : 0u, .changes = taken->count};
        } else {
          result.sandbox = nullptr;
          result.taken = std::make_shared<SpillSort>(services);
          result.value = make(keys, into(result.collection, keys), *result.taken);
          result.collection.flush();
          latch_failure(keys, result.collection.status());
        }
        latch_failure(keys, result.taken->finish());
      });
  if (!made) return std::nullopt;
  Rest rest{.value = made->value, .taken = made->taken};
  if (made->sandbox == nullptr) {
    auto linked = rest_of(ctx, *made);
    if (!linked) return std::nullopt;
    return RestOrTaken{.rest = std::move(*linked)};
  }
  if (rest.value.changes != 0 && rest.value.size == 0) {
    ctx.keys.remove(ctx.db, key, before);
  } else if (rest.value.changes != 0) {
    repeat(ctx, key, before, *made, touch);
  }
  return RestOrTaken{.rest = std::move(rest), .is_stored = true};
}

std::optional<Rest> build_rest(contract::WriteContext& ctx, contract::Args sources,
                               const MakeRest& make) {
  const auto built =
      build_beside(ctx, {.sources = sources, .is_large = true}, Of::kAsSeen,
                   [make](types::KeyReader& keys, BuiltCollection& collection, SpillSort& taken) {
                     return make(keys, into(collection, keys), taken);
                   });
  return built ? rest_of(ctx, *built) : std::nullopt;
}

}  // namespace ingot::data
