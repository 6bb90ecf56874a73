// Images of collections: their cursors next to an engine's, when they are made and found, and that
// a probe walks over the one of its own revision only.
#include "storage/collection_cache.h"

#include <catch2/catch.hpp>
#include <functional>
#include <random>

#include "storage/reader.h"
#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

constexpr CollectionId kId = 7;
constexpr uint64_t kElements = 2;

std::string element(std::string_view name) {
  return collection_begin(kId).append(name);
}

std::string record_of(uint32_t revision, uint64_t count = kElements) {
  std::string record;
  encode_metadata(
      {.type = ValueType::kHash,
       .collection = Metadata::Collection{.id = kId, .count = count, .revision = revision}},
      &record);
  return record;
}

std::shared_ptr<const CollectionImage> image_of(size_t value_bytes) {
  auto image = std::make_shared<CollectionImage>();
  REQUIRE(image->add("k", std::string(value_bytes, 'v')));
  return image;
}

CollectionCache::Name name_of(CollectionId id) {
  return {.id = id, .space = Space::kData};
}

// "key=value ..." as a probe of the key "k" walks over them, or why it does not.
std::string walk(
    Engine& engine, RecordCache& records, CollectionCache& images,
    const std::function<void()>& meanwhile = [] {}) {
  KeyProbe probe(engine, &records, &images);
  std::string value;
  if (!probe.get(Space::kMeta, "k", &value)) return "<no record>";
  meanwhile();
  const auto at = probe.cursor(Space::kData, collection_begin(kId), collection_end(kId));
  std::string seen;
  for (at->seek({}); at->valid(); at->next()) {
    seen.append(at->key().substr(collection_begin(kId).size())).append("=");
    seen.append(at->value()).append(" ");
  }
  probe.check(*at);
  if (!probe.failed()) return probe.confirm() ? seen : "<changed>";
  return probe.needs_snapshot() ? "<snapshot>" : "<miss>";
}

}  // namespace

TEST_CASE("a cursor over an image moves as the engine's does", "[collection_cache]") {
  TestEngine engine("memory");
  std::mt19937 random(1);
  const auto key = [&] { return std::to_string(random() % 40); };
  for (int i = 0; i < 25; ++i) REQUIRE(engine.put(Space::kData, key(), "v" + key()).ok());
  CollectionImage image;
  for (const auto& [its_key, value] : engine.scan(Space::kData)) {
    REQUIRE(image.add(its_key, value));
  }
  const auto shared = std::make_shared<const CollectionImage>(image);
  for (int round = 0; round < 300; ++round) {
    const std::string lower = random() % 4 == 0 ? "" : key();
    const std::string upper = random() % 4 == 0 ? "" : key();
    if (!upper.empty() && upper < lower) continue;
    const auto its = engine->new_cursor(Space::kData, {.lower = lower, .upper = upper});
    const auto ours = image_cursor(shared, lower, upper);
    CHECK_FALSE(ours->valid());
    const Records all = engine.scan(Space::kData, {.lower = lower, .upper = upper});
    REQUIRE(ours->size() == all.size());
    for (size_t number = 0; number < all.size(); ++number) {
      ours->go(number);
      REQUIRE(ours->valid());
      REQUIRE(ours->key() == all[number].first);
    }
    ours->seek_for_prev(lower);
    its->seek_for_prev(lower);
    for (int step = 0; step < 20; ++step) {
      const std::string to = key();
      const auto move = random() % 4;
      if (move > 1 && !its->valid()) continue;
      for (Cursor* each : {its.get(), ours.get()}) {
        if (move == 0) each->seek(to);
        if (move == 1) each->seek_for_prev(to);
        if (move == 2) each->next();
        if (move == 3) each->prev();
      }
      INFO("[" << lower << ", " << upper << ") move " << move << " to " << to);
      REQUIRE(ours->valid() == its->valid());
      if (!its->valid()) continue;
      REQUIRE(ours->key() == its->key());
      REQUIRE(ours->value() == its->value());
    }
  }
}

TEST_CASE("an image is full at its bound", "[collection_cache]") {
  CollectionImage image;
  CHECK(image.add("a", std::string(CollectionImage::kBytesMax - 1, 'v')));
  CHECK_FALSE(image.add("b", ""));
  CHECK(image.size() == 1);
}

TEST_CASE("an image is asked for when reads have cost as much, and is of one revision",
          "[collection_cache]") {
  CollectionCache cache(1 << 20);
  bool make = false;
  const auto reads_until_made = [&](uint32_t revision, uint64_t elements) {
    for (int reads = 1; reads <= 1000; ++reads) {
      CHECK(cache.get(name_of(1), revision, elements, &make) == nullptr);
      if (make) return reads;
    }
    return 0;
  };
  const int few = reads_until_made(1, 10);
  CHECK(few > 1);
  cache.put(name_of(1), 1, image_of(10));
  REQUIRE(cache.get(name_of(1), 1, 10, &make) != nullptr);
  CHECK_FALSE(make);
  CHECK(cache.hits() == 1);
  CHECK(cache.get({.id = 1, .space = Space::kOrder}, 1, 10, &make) == nullptr);

  CHECK(reads_until_made(2, 1000) > 10 * few);
  CHECK(cache.get(name_of(1), 1, 10, &make) == nullptr);  // and 2 has not been asked for since
  const int before = reads_until_made(2, 1000);
  cache.put(name_of(1), 2, nullptr);
  CHECK(reads_until_made(2, 1000) > before);
}

TEST_CASE("an image that cannot be made is asked for less and less", "[collection_cache]") {
  CollectionCache cache(1 << 20);
  const CollectionCache::Name name{.id = 7, .space = Space::kData};
  int asked = 0;
  for (int i = 0; i < 1000; ++i) {
    bool make = false;
    CHECK(cache.get(name, 1, /*elements=*/1, &make) == nullptr);
    if (make) cache.put(name, 1, nullptr);
    asked += make;
  }
  CHECK(asked <= 10);
}

TEST_CASE("the images keep to their size, and what is read stays", "[collection_cache]") {
  CollectionCache cache(1 << 20);
  bool make = false;
  for (CollectionId id = 1; id <= 1000; ++id) {
    cache.get(name_of(id), 1, 1, &make);
    cache.put(name_of(id), 1, image_of(10'000));
    cache.get(name_of(1), 1, 1, &make);
  }
  CHECK(cache.bytes() <= 1 << 20);
  CHECK(cache.bytes() > 1 << 19);
  CHECK(cache.get(name_of(1), 1, 1, &make) != nullptr);
  CHECK(cache.get(name_of(2), 1, 1, &make) == nullptr);
  cache.set_capacity(0);
  CHECK(cache.bytes() == 0);
  CHECK(cache.get(name_of(1), 1, 1, &make) == nullptr);
}

TEST_CASE("a probe walks over what its record's revision holds", "[collection_cache]") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  if (!engine->capabilities().probe) return;
  INFO(engine.name());
  RecordCache records(GENERATE(0, 1 << 20));
  CollectionCache images(1 << 20);
  REQUIRE(engine.put(Space::kMeta, "k", record_of(1)).ok());
  REQUIRE(engine.put(Space::kData, element("a"), "1").ok());
  REQUIRE(engine.put(Space::kData, element("b"), "2").ok());
  const auto change = [&] {
    const auto changing = records.begin_change({Space::kMeta, "k"});
    auto batch = engine->new_batch();
    batch->put(Space::kData, element("b"), "changed");
    batch->put(Space::kMeta, "k", record_of(2));
    REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
    records.end_change({Space::kMeta, "k"}, changing, record_of(2));
  };
  CHECK(walk(*engine, records, images) == "<snapshot>");

  SECTION("made once it is worth it, and again for the next revision") {
    CHECK(walk(*engine, records, images) == "a=1 b=2 ");
    CHECK(walk(*engine, records, images) == "a=1 b=2 ");
    CHECK(walk(*engine, records, images, change) == "a=1 b=2 ");  // as it was at the look-up
    CHECK(images.hits() == 2);
    CHECK(walk(*engine, records, images) == "a=1 b=changed ");
  }
  SECTION("not made of a collection that has changed since the look-up") {
    CHECK(walk(*engine, records, images, change) == "<snapshot>");
    CHECK(walk(*engine, records, images) == "a=1 b=changed ");
  }
  SECTION("not of one with very many elements") {
    change();
    REQUIRE(engine.put(Space::kMeta, "k", record_of(3, CollectionImage::kElementsMax + 1)).ok());
    for (int i = 0; i < 1000; ++i) {
      RecordCache none(0);
      REQUIRE(walk(*engine, none, images) == "<snapshot>");
    }
  }
  SECTION("not of one that is larger than it counts") {
    const std::string large(CollectionImage::kBytesMax, 'v');
    REQUIRE(engine.put(Space::kData, element("c"), large).ok());
    for (int i = 0; i < 1000; ++i) REQUIRE(walk(*engine, records, images) == "<snapshot>");
  }
  SECTION("nothing beyond the collection") {
    for (int i = 0; i < 3; ++i) walk(*engine, records, images);
    for (const auto& [lower, upper] : {std::pair(std::string(), std::string()),
                                       {"", collection_end(kId)},
                                       {collection_begin(kId), ""},
                                       {collection_begin(kId), collection_end(kId + 1)}}) {
      KeyProbe probe(*engine, &records, &images);
      std::string value;
      REQUIRE(probe.get(Space::kMeta, "k", &value));
      CHECK_FALSE(probe.cursor(Space::kData, lower, upper)->valid());
      CHECK(probe.needs_snapshot());
    }
  }
}

TEST_CASE("a reader at a view walks over what the record it has read holds there",
          "[collection_cache]") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  INFO(engine.name());
  CollectionCache images(1 << 20);
  REQUIRE(engine.put(Space::kMeta, "k", record_of(1)).ok());
  REQUIRE(engine.put(Space::kData, element("a"), "1").ok());
  REQUIRE(engine.put(Space::kData, element("b"), "2").ok());
  const auto walk_at = [&](const Snapshot* snapshot, Tier tier) {
    EngineReader data(*engine, snapshot, tier, CacheUse::kFill, {.images = &images});
    std::string value;
    data.get(Space::kMeta, "k", &value);
    const auto at = data.cursor(Space::kData, collection_begin(kId), collection_end(kId));
    std::string seen;
    for (at->seek({}); at->valid(); at->next()) seen.append(at->value()).append(" ");
    data.check(*at);
    return data.missed() ? "<miss>" : seen + (data.has_walked() ? "walked" : "by image");
  };
  const auto first = engine->new_snapshot();
  CHECK(walk_at(first.get(), Tier::kDisk) == "1 2 walked");
  CHECK(walk_at(first.get(), Tier::kDisk) == "1 2 by image");
  CHECK(walk_at(first.get(), Tier::kDisk) == "1 2 by image");

  auto batch = engine->new_batch();
  batch->put(Space::kData, element("b"), "changed");
  batch->put(Space::kMeta, "k", record_of(2));
  REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
  const auto second = engine->new_snapshot();
  CHECK(walk_at(first.get(), Tier::kDisk) == "1 2 by image");
  CHECK(walk_at(second.get(), Tier::kDisk) == "1 changed by image");
  CHECK(walk_at(first.get(), Tier::kDisk) == "1 2 by image");

  // A probe finds it where the engine cannot answer from memory at all.
  for (int i = 0; i < 2; ++i) walk_at(second.get(), Tier::kDisk);
  RecordCache records(1 << 20);
  records.add({Space::kMeta, "k"}, record_of(2));
  CHECK(walk(*engine, records, images) == "a=1 b=changed ");
}

TEST_CASE("a queue that has left much behind is not walked over for an image",
          "[collection_cache]") {
  TestEngine engine(GENERATE(from_range(engines_under_test())));
  if (engine.name() != "rocksdb") return;
  RecordCache records(1 << 20);
  CollectionCache images(1 << 20);
  for (int i = 0; i < 1000; ++i) {
    const std::string key = element("a" + std::to_string(1000 + i));
    REQUIRE(engine.put(Space::kData, key, "gone").ok());
    REQUIRE(engine.remove(Space::kData, key).ok());
  }
  REQUIRE(engine.put(Space::kData, element("b"), "2").ok());
  REQUIRE(engine.put(Space::kMeta, "k", record_of(1, 1)).ok());
  for (int i = 0; i < 10; ++i) CHECK(walk(*engine, records, images) == "<snapshot>");
}

}  // namespace ingot::storage
