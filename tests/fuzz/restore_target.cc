// RESTORE of bytes that only have the right checksum. What is taken is stored as the server stores
// it, in a store without a server around it, which is verified; read again it is what was decoded,
// and its own dump makes the same value.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "src/check/data_check.h"
#include "src/data/built_value.h"
#include "src/data/change_stream.h"
#include "src/data/collector.h"
#include "src/data/reader_pool.h"
#include "src/data/restored_value.h"
#include "src/data/services.h"
#include "src/data/store.h"
#include "src/metrics/stats.h"
#include "src/settings/config.h"
#include "src/types/rdb/rdb_object.h"
#include "src/types/rdb/rdb_store.h"
#include "storage/check.h"
#include "storage/memory/memory_engine.h"
#include "tests/fuzz/targets.h"

namespace ingot::fuzz {
namespace {

namespace rdb = types::rdb;

constexpr int64_t kNowMs = 1'700'000'000'000;
constexpr uint64_t kCommandBytesMax = 4 << 20;

std::unique_ptr<data::Store> new_store() {
  storage::Status status;
  auto store = data::Store::open(
      std::make_unique<storage::MemoryEngine>(storage::EngineOptions{}), 1, [] { return kNowMs; },
      &status);
  INGOT_CHECK(status.ok());
  return store;
}

class Ground {
 public:
  explicit Ground(uint64_t inline_max_bytes)
      : limits_{.hash = {.inline_max_bytes = inline_max_bytes,
                         .listpack_entries_max = 8,
                         .listpack_value_max = 64},
                .set = {.inline_max_bytes = inline_max_bytes, .intset_entries_max = 8},
                .sorted_set = {.inline_max_bytes = inline_max_bytes,
                               .listpack_entries_max = 8,
                               .listpack_value_max = 64}} {
    services_.bounds.command_bytes = kCommandBytesMax;
  }

  // False when the payload is refused.
  bool restore(std::string_view key, std::string_view payload) {
    const types::BuiltValue value =
        data::build_in_group(keys_, [&](types::KeyReader& keys, const types::PutElement& put) {
          return data::restore_value(services_, keys.data(), payload, limits_, put);
        });
    INGOT_CHECK(!overlay_.failed());
    if (!value.error.empty()) {
      INGOT_CHECK(overlay_.empty());
      return false;
    }
    keys_.store(0, key, nullptr, value.record());
    commit();
    return true;
  }

  rdb::Object read(std::string_view key) {
    types::Record record;
    INGOT_CHECK(keys_.find(0, key, &record));
    auto object = rdb::read_object(overlay_, record, kNowMs, UINT64_MAX);
    INGOT_CHECK(object && !overlay_.failed());
    return *std::move(object);
  }

  void verify() {
    bool sound = true;
    check::DataCheck(store_->engine(), [&](const std::string& problem) {
      std::fprintf(stderr, "%s\n", problem.c_str());
      sound = false;
    }).run();
    INGOT_CHECK(sound);
  }

 private:
  void commit() {
    std::string record;
    for (const auto& [keyspace, counts] : state_.counts) {
      storage::encode_counts(counts, &record);
      overlay_.put(storage::Space::kSystem, storage::counts_key(keyspace), record);
    }
    const auto batch = store_->engine().new_batch();
    overlay_.write_to(batch.get());
    INGOT_CHECK(store_->engine().write(*batch, storage::Durability::kBuffered).ok());
    state_.end_group();
    overlay_.clear();
  }

  // These do nothing here, but the services have them.
  inline static data::ReaderPool readers_{1};
  settings::Config config_{"0"};
  metrics::Stats stats_{0};

  const rdb::StoreLimits limits_;
  std::unique_ptr<data::Store> store_ = new_store();
  data::Collector collector_{*store_};
  storage::Status opened_;
  const std::unique_ptr<data::ChangeStream> changes_ =
      data::ChangeStream::open(store_->engine(), "backlog", 0, /*follows=*/false, &opened_);
  data::Services services_{.store = *store_,
                           .readers = readers_,
                           .collector = collector_,
                           .changes = *changes_,
                           .config = config_,
                           .stats = stats_};
  storage::Overlay overlay_{store_->engine(), nullptr, storage::Tier::kDisk};
  types::KeyspaceState state_ = store_->initial_state();
  types::Effects effects_;
  types::KeyWriter keys_{
      overlay_, state_, store_->ids(), effects_, kNowMs, nullptr, /*collect_touched=*/false};
};

// In an order of its own and without what says how it was written, which storing may change.
void normalize(rdb::Object* object) {
  if (auto* set = std::get_if<rdb::Set>(object)) {
    std::ranges::sort(set->members);
    set->compact = false;
  } else if (auto* sorted = std::get_if<rdb::SortedSet>(object)) {
    std::ranges::sort(sorted->members);
    sorted->compact = false;
  } else if (auto* hash = std::get_if<rdb::Hash>(object)) {
    std::ranges::sort(hash->fields);
    hash->compact = false;
  }
}

}  // namespace

void restore(std::string_view input) {
  if (input.empty()) return;
  // Some are kept in their key's record, some not.
  constexpr uint64_t kInlineBytes[] = {0, 16, 128, 4096};
  Ground ground(kInlineBytes[static_cast<uint8_t>(input[0]) % 4]);

  std::string payload(input.substr(1));
  rdb::seal_payload(&payload);
  INGOT_CHECK(rdb::payload_intact(payload));
  auto decoded = rdb::decode_payload(payload, kCommandBytesMax);
  const bool taken = ground.restore("key", payload);
  // Streams are decoded nowhere else.
  const auto type = static_cast<rdb::ObjectType>(payload[0]);
  const bool is_stream = type == rdb::ObjectType::kStream || type == rdb::ObjectType::kStream2;
  INGOT_CHECK(decoded || is_stream || !taken);
  if (!taken) return;

  rdb::Object stored = ground.read("key");
  const std::string dump = rdb::encode_payload(stored);
  INGOT_CHECK(ground.restore("again", dump));
  INGOT_CHECK(rdb::encode_payload(ground.read("again")) == dump);
  ground.verify();
  if (is_stream) return;
  normalize(&stored);
  normalize(&*decoded);
  INGOT_CHECK(stored == *decoded);
}

}  // namespace ingot::fuzz
