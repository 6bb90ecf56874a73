// Every engine against a std::map: random operations, the seed printed when they differ.
#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <set>

#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

using Map = std::map<std::pair<Space, std::string>, std::string>;

class Model {
 public:
  Model(TestEngine* engine, uint32_t seed) : engine_(*engine), random_(seed) {}

  void step() {
    const size_t dice = below(100);
    if (dice < 45) {
      write();
    } else if (dice < 70) {
      read();
    } else if (dice < 90) {
      walk();
    } else if (dice < 94) {
      snapshots_.emplace_back(engine_->new_snapshot(), map_);
      if (snapshots_.size() > 4) snapshots_.erase(snapshots_.begin() + below_signed(4));
    } else if (dice < 96) {
      REQUIRE(engine_->flush().ok());
    } else if (dice < 97) {
      REQUIRE(engine_->compact(random_space(), {}).ok());
    } else if (dice < 98) {
      reclaim();
    } else if (dice < 99) {
      REQUIRE(engine_->sync().ok());
    } else {
      snapshots_.clear();
      engine_.reopen();
    }
  }

 private:
  size_t below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random_);
  }
  std::ptrdiff_t below_signed(size_t bound) { return static_cast<std::ptrdiff_t>(below(bound)); }
  Space random_space() { return kAllSpaces[below(3)]; }
  std::string random_key() {
    return element_key(ids_[below(8)], std::string(below(3), 'a') + std::to_string(below(20)));
  }

  void write() {
    const auto batch = engine_->new_batch();
    for (size_t i = 1 + below(20); i > 0; --i) {
      const Space space = random_space();
      const std::string key = random_key();
      if (below(3) == 0) {
        batch->remove(space, key);
        map_.erase({space, key});
      } else {
        const std::string value = noise(1 + below(200), random_());
        batch->put(space, key, value);
        map_[{space, key}] = value;
      }
    }
    const auto durability = below(10) == 0 ? Durability::kSynced : Durability::kBuffered;
    REQUIRE(engine_->write(*batch, durability).ok());
  }

  // The latest state, or that of some snapshot.
  std::pair<const Snapshot*, const Map*> random_state() {
    const size_t i = below(snapshots_.size() + 2);
    if (i >= snapshots_.size()) return {nullptr, &map_};
    return {snapshots_[i].first.get(), &snapshots_[i].second};
  }

  static std::string look_up(const Map& map, Space space, const std::string& key) {
    const auto it = map.find({space, key});
    return it == map.end() ? "<absent>" : it->second;
  }

  void read() {
    const auto [snapshot, map] = random_state();
    const Space space = random_space();
    std::vector<std::string> names(1 + below(40));
    for (std::string& name : names) name = random_key();
    for (const std::string& name : names) {
      const std::string expected = look_up(*map, space, name);
      REQUIRE(engine_.get(space, name, snapshot) == expected);
      const std::string peeked = engine_.get(space, name, snapshot, Tier::kCacheOnly);
      REQUIRE((peeked == expected || peeked == "<miss>"));
    }
  }

  void walk() {
    const auto [snapshot, map] = random_state();
    const Space space = random_space();
    CursorOptions options;
    options.snapshot = snapshot;
    if (below(2) == 0) options.lower = random_key();
    if (below(2) == 0) options.upper = random_key();
    Records expected;
    for (const auto& [key, value] : *map) {
      if (key.first != space || key.second < options.lower) continue;
      if (!options.upper.empty() && key.second >= options.upper) continue;
      expected.emplace_back(key.second, value);
    }
    const auto cursor = engine_->new_cursor(space, options);
    const std::string from = random_key();
    const bool down = below(2) == 0;
    if (down) {
      std::reverse(expected.begin(), expected.end());
      std::erase_if(expected, [&](const auto& record) { return record.first > from; });
      cursor->seek_for_prev(from);
    } else {
      std::erase_if(expected, [&](const auto& record) { return record.first < from; });
      cursor->seek(from);
    }
    Records seen;
    while (cursor->valid()) {
      if (!is_dead(space, cursor->key())) seen.emplace_back(cursor->key(), cursor->value());
      down ? cursor->prev() : cursor->next();
    }
    REQUIRE(cursor->outcome() == Lookup::kFound);
    REQUIRE(seen == expected);
  }

  // Ids that die may only be those that no snapshot is asked about, so the snapshots go first.
  // Others take their place. Until they are gone, cursors may show what they own.
  void reclaim() {
    snapshots_.clear();
    for (size_t i = below(3); i < ids_.size(); i += 1 + below(4)) {
      dead_.insert(ids_[i]);
      ids_[i] = next_id_++;
    }
    std::erase_if(
        map_, [&](const auto& entry) { return is_dead(entry.first.first, entry.first.second); });
    const std::vector<uint64_t> dead(dead_.begin(), dead_.end());
    REQUIRE(engine_->add_dead(GarbageKind::kCollection, dead) == dead.size());
    Reclaimed done;
    REQUIRE(engine_->reclaim(GarbageKind::kCollection, &done).ok());
    for (uint64_t id : done.gone) {
      const KeyRange range = element_range(id);
      REQUIRE(engine_.scan(Space::kData, {.lower = range.begin, .upper = range.end}).empty());
      dead_.erase(id);
    }
  }
  bool is_dead(Space space, std::string_view key) const {
    return space == Space::kData && dead_.contains(owner_of(GarbageKind::kCollection, key));
  }

  TestEngine& engine_;
  std::mt19937 random_;
  std::vector<uint64_t> ids_ = {0, 1, 2, 3, 4, 5, 6, 7};
  uint64_t next_id_ = 8;
  std::set<uint64_t> dead_;  // and not gone
  Map map_;
  std::vector<std::pair<std::unique_ptr<Snapshot>, Map>> snapshots_;
};

}  // namespace

TEST_CASE("an engine behaves as a map does") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  const uint32_t seed =
      GENERATE(take(3, map([](int) { return std::random_device{}(); }, range(0, 1000))));
  INFO(engine.name() << ", seed " << seed);
  Model model(&engine, seed);
  for (int i = 0; i < 1500; ++i) model.step();
}

}  // namespace ingot::storage
