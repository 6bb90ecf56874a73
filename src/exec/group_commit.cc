// The end of a group: what it writes and tells replicas as one batch, and its effects behind that.
#include <boost/unordered/unordered_flat_map.hpp>
#include <optional>
#include <set>
#include <vector>

#include "src/contract/replicas.h"
#include "src/contract/tracking.h"
#include "src/data/built_argument.h"
#include "src/data/change_stream.h"
#include "src/data/collector.h"
#include "src/data/store.h"
#include "src/exec/client_pause.h"
#include "src/exec/group.h"
#include "src/metrics/stats.h"
#include "src/script/scripts.h"
#include "src/types/counted_order.h"
#include "storage/check.h"

namespace ingot::exec {

using storage::Space;
using storage::Status;

void Group::put_counts() {
  std::string record;
  std::set<storage::KeyspaceId> changed;
  for (const auto& change : state_.count_changes) changed.insert(change.keyspace);
  for (const storage::KeyspaceId keyspace : changed) {
    storage::KeyCounts& counts = state_.counts[keyspace];
    counts.settled = settling_.is_settled(keyspace) && !state_.any_unread(keyspace);
    storage::encode_counts(counts, &record);
    overlay_.put(Space::kSystem, storage::counts_key(keyspace), record);
  }
}

void Group::tell_replicas(std::string_view bytes, std::optional<int> db) {
  if (services_.data.changes.on()) effects_.told.pass_on(bytes, db);
}

// What is long is in the backlog's directory already, or comes from the engine in pieces.
Status Group::write_told() {
  constexpr size_t kPieceBytes = 1 << 20;
  data::ChangeStream& changes = services_.data.changes;
  int db = changes.db();
  std::string bytes;
  const auto flush = [&] {
    if (!bytes.empty()) changes.append(bytes, db, *batch_);
    bytes.clear();
  };
  const auto take = [&](std::string_view piece) {
    if (bytes.size() + piece.size() > kPieceBytes) flush();
    if (piece.size() > kPieceBytes) return changes.append(piece, db, *batch_);
    bytes += piece;
  };
  const auto take_part = [&](const types::ToldBytes& whole) {
    const auto* const argument = dynamic_cast<const data::BuiltArgument*>(&whole);
    const auto part = argument == nullptr ? nullptr : argument->take_part();
    if (part == nullptr) return false;
    flush();
    changes.append(*part, db, *batch_);
    return true;
  };
  Status status = effects_.told.write(&db, take, take_part);
  if (status.ok()) flush();
  return status;
}

Status Group::write(storage::Durability durability) {
  put_counts();
  batch_->clear();
  overlay_.write_to(batch_.get());
  if (adopted_) {
    services_.data.changes.adopt(std::move(*adopted_), *batch_);
  } else if (!effects_.told.empty()) {
    if (Status status = write_told(); !status.ok()) return status;
  }
  auto write = [&] {
    overlay_.begin_cache_changes();
    Status status = services_.data.store.engine().write(*batch_, durability);
    if (status.ok()) follow_orders();
    overlay_.end_cache_changes(status.ok());
    return status;
  };
  if (state_.databases_before.empty()) return write();
  return services_.data.store.publish_databases(state_.databases, write);
}

// Known counts of orders go along with what the group has changed.
void Group::follow_orders() {
  // Readers of all orders wait meanwhile. What changes so much is read again.
  constexpr size_t kFollowedMax = 4096;
  storage::OrderCounts& counts = services_.data.store.order_counts();
  if (!counts.holds_any()) return;
  struct Changed {
    std::optional<uint32_t> revision;
    std::vector<storage::OrderCounts::Change> changes;
  };
  boost::unordered_flat_map<storage::CollectionId, Changed> orders;
  overlay_.each_change([&](storage::Space space, std::string_view key,
                           const std::string_view* record) {
    storage::Metadata metadata;
    if (space == storage::Space::kOrder) {
      const auto change = types::order_change(key, record);
      if (change && counts.holds(change->id)) orders[change->id].changes.push_back(change->change);
    } else if (space == storage::Space::kMeta && record != nullptr &&
               storage::has_collection(*record) && storage::decode_metadata(*record, &metadata) &&
               counts.holds(metadata.collection->id)) {
      orders[metadata.collection->id].revision = metadata.collection->revision;
    }
  });
  for (const auto& [id, changed] : orders) {
    const auto before = overlay_.committed_revision(id);
    if (before && changed.revision && changed.changes.size() <= kFollowedMax) {
      counts.follow(id, *before, *changed.revision, changed.changes);
    } else if (!changed.changes.empty()) {
      counts.forget(id);
    }
  }
}

Status Group::commit(storage::Durability durability) {
  std::shared_ptr<const data::View> before;
  if (settling_.wants(state_.unread)) before = services_.data.store.view();
  Status status = empty() ? Status() : write(durability);
  if (status.ok()) {
    // Somebody has begun to track in the middle of the group, and may have read before the commit.
    if (!tells_changes_ && !overlay_.empty() && services_.tracking.any()) {
      effects_.notices.tell(types::AllChanged{});
    }
    if (!state_.unread.empty()) {
      metrics::add(services_.data.stats.unread_overwrites, state_.unread.size());
      settling_.add(std::move(before), std::move(state_.unread));
    }
    // Before anybody can read it: who acknowledges what does not count as told is not believed.
    services_.replicas.told = services_.data.changes.offset_behind();
    services_.data.changes.committed();
    if (adopted_ || !effects_.told.only_passes_on()) {
      services_.replicas.changed = services_.replicas.told.load();
    }
    release();
  } else {
    services_.data.changes.undo();
    state_.rollback(begin_);
    if (!settled_.empty()) settling_.lose(settled_);
    for (const storage::KeyspaceId keyspace : settled_) state_.counts[keyspace].settled = false;
  }
  settled_.clear();
  just_looked_ = false;
  // A group that is over has no unit left to run on its overlay.
  INGOT_CHECK(effects_.watched.empty() && !effects_.unwatch);
  taken_ = {};
  overlay_.clear();
  // A batch keeps the memory that it once needed.
  constexpr size_t kKeptBytes = 4 << 20;
  if (batch_->bytes() > kKeptBytes) batch_ = services_.data.store.engine().new_batch();
  adopted_.reset();
  followed_bytes_ = 0;
  state_.end_group();
  state_.orders.leaves().follow_cache(services_.data.store.cache().capacity());
  begin_ = state_.savepoint();
  effects_ = {};
  return status;
}

void Group::release() {
  metrics::Stats& stats = services_.data.stats;
  if (effects_.expired_keys != 0) metrics::add(stats.expired_keys, effects_.expired_keys);
  if (effects_.lookup_hits != 0) metrics::add(stats.keyspace_hits, effects_.lookup_hits);
  if (effects_.lookup_misses != 0) metrics::add(stats.keyspace_misses, effects_.lookup_misses);
  if (effects_.changes != 0) metrics::add(stats.changes_since_save, effects_.changes);
  if (!effects_.dropped_collections.empty() || !effects_.dropped_keyspaces.empty()) {
    services_.data.collector.dropped(effects_.dropped_collections, effects_.dropped_keyspaces);
  }
  if (!effects_.notices.empty()) services_.couriers.release(std::move(effects_.notices));
  if (effects_.libraries) services_.scripts.publish(std::move(effects_.libraries));
  for (const types::Effects::Pause& pause : effects_.pauses) {
    using What = types::Effects::Pause::What;
    if (pause.what == What::kEnd) {
      services_.pause.end();
    } else {
      services_.pause.begin(
          pause.what == What::kAll ? ClientPause::Mode::kAll : ClientPause::Mode::kChanges,
          pause.until_ms, services_.data.store.now_ms());
    }
  }
}

}  // namespace ingot::exec
