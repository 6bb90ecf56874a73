// RDB files written from a view and loaded again, cut into pieces anywhere, cut off, and damaged.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>

#include "src/check/data_check.h"
#include "src/data/change_stream.h"
#include "src/data/collector.h"
#include "src/data/rdb_loader.h"
#include "src/data/rdb_writer.h"
#include "src/data/reader_pool.h"
#include "src/data/seen_names.h"
#include "src/data/store.h"
#include "src/metrics/stats.h"
#include "src/settings/config.h"
#include "src/types/digest.h"
#include "src/types/hash_value.h"
#include "src/types/list_value.h"
#include "src/types/rdb/rdb_bytes.h"
#include "src/types/rdb/rdb_object.h"
#include "src/types/set_value.h"
#include "src/types/sorted_set_value.h"
#include "src/types/stream_value.h"
#include "src/types/string_value.h"
#include "storage/engine.h"

namespace ingot::data {
namespace {

constexpr int kDatabases = 3;
constexpr int64_t kNowMs = 1'700'000'000'000;
constexpr uint64_t kInlineMax = 100;

// A store with what loads and writes files.
class Server {
 public:
  Server() { REQUIRE(store_ != nullptr); }

  types::KeyWriter& keys() { return keys_; }
  Services& services() { return services_; }
  storage::Overlay& overlay() { return overlay_; }

  void commit() {
    REQUIRE(overlay_.error().ok());
    std::string record;
    for (const auto& [keyspace, counts] : state_.counts) {
      storage::encode_counts(counts, &record);
      overlay_.put(storage::Space::kSystem, storage::counts_key(keyspace), record);
    }
    const auto batch = store_->engine().new_batch();
    overlay_.write_to(batch.get());
    const auto write = [&] {
      return store_->engine().write(*batch, storage::Durability::kBuffered);
    };
    REQUIRE(store_->publish_databases(state_.databases, write).ok());
    state_.end_group();
    overlay_.clear();
  }

  std::string write(RdbReaderKind reader = RdbReaderKind::kRedis) {
    RdbWriter writer(services_, store_->view(), {{"repl-id", "abc"}}, {"#!lua name=lib\n"}, reader);
    std::string file;
    while (writer.next(&file)) {
    }
    REQUIRE(writer.status().ok());
    return file;
  }

  std::string digest() {
    types::Digest digest = types::dataset_digest(overlay_, state_.databases,
                                                 [&](int db) { return keys_.counts(db).keys > 0; });
    REQUIRE_FALSE(overlay_.failed());
    return types::digest_text(digest);
  }

  void check() {
    std::vector<std::string> problems;
    check::DataCheck(store_->engine(), [&](const std::string& problem) {
      problems.push_back(problem);
    }).run();
    REQUIRE(problems == std::vector<std::string>());
  }

 private:
  static std::unique_ptr<Store> open() {
    auto [engine, opened] = storage::open_memory({});
    storage::Status status;
    return Store::open(
        std::move(engine), kDatabases, [] { return kNowMs; }, &status);
  }

  inline static ReaderPool readers_{1};
  settings::Config config_{"0"};
  metrics::Stats stats_{0};
  std::unique_ptr<Store> store_ = open();
  Collector collector_{*store_};
  storage::Status opened_;
  const std::unique_ptr<ChangeStream> changes_ =
      ChangeStream::open(store_->engine(), "backlog", 0, /*follows=*/false, &opened_);
  Services services_{.store = *store_,
                     .readers = readers_,
                     .collector = collector_,
                     .changes = *changes_,
                     .config = config_,
                     .stats = stats_};
  storage::Overlay overlay_{store_->engine(), nullptr, storage::Tier::kDisk};
  types::KeyspaceState state_ = store_->initial_state();
  types::Effects effects_;
  types::KeyWriter keys_{overlay_,
                         state_,
                         store_->ids(),
                         effects_,
                         kNowMs,
                         &store_->access(),
                         /*collect_touched=*/false};
};

void add_hash(Server& server, int db, std::string_view key, int fields, bool expiring) {
  types::HashWriter hash(server.keys(), db, key, nullptr, {kInlineMax, 512, 64});
  for (int i = 0; i < fields; ++i) {
    hash.set("field:" + std::to_string(i),
             {.bytes = "value", .expire_ms = expiring && i % 2 == 0 ? kNowMs + 1000 + i : 0});
  }
  hash.finish();
}

void add_stream(Server& server, int db, std::string_view key, int entries) {
  types::StreamWriter stream(server.keys(), db, key, nullptr, kInlineMax);
  for (int i = 1; i <= entries; ++i) {
    const std::string value = std::to_string(i);
    stream.add({.ms = static_cast<uint64_t>(i / 3), .seq = static_cast<uint64_t>(i)},
               std::vector<std::string_view>{"a", value, "b", "x"});
  }
  for (const char* name : {"group", "group2"}) {
    types::StreamGroup group = stream.create_group(name, {.ms = 1, .seq = 5}, 3);
    for (const char* reader : {"alice", "bob", "carol"}) {
      types::StreamConsumer consumer = stream.create_consumer(&group, reader, kNowMs - 5);
      for (int i = 1; i <= entries && reader[0] != 'c'; ++i) {
        if ((i % 2 == 0) != (reader[0] == 'a')) continue;
        stream.give(&group, &consumer,
                    {.id = {.ms = static_cast<uint64_t>(i / 3), .seq = static_cast<uint64_t>(i)},
                     .consumer = reader,
                     .delivered_ms = kNowMs - 7,
                     .deliveries = 2},
                    nullptr);
      }
      stream.store(group, consumer);
    }
    stream.store(group);
  }
  stream.finish();
}

// Every type, small and large.
void fill(Server& server, int elements) {
  types::KeyWriter& keys = server.keys();
  types::store_string(keys, 0, "number", nullptr, "12345", 0);
  types::store_string(keys, 0, "expiring", nullptr, "text", kNowMs + 5000);
  types::store_string(keys, 2, "long", nullptr, std::string(70'000, 'x') + "end", 0);
  for (const int count : {2, elements}) {
    const std::string suffix = std::to_string(count);
    // The writers do not keep their keys.
    const std::string list_key = "list" + suffix;
    const std::string set_key = "set" + suffix;
    const std::string numbers_key = "numbers" + suffix;
    const std::string sorted_key = "sorted" + suffix;
    types::ListWriter list(keys, 0, list_key, nullptr, kInlineMax);
    for (int i = 0; i < count; ++i) list.push(types::ListEnd::kRight, "e" + std::to_string(i));
    list.finish();
    types::SetWriter set(keys, 2, set_key, nullptr, {kInlineMax, 512});
    for (int i = 0; i < count; ++i) set.add("m" + std::to_string(i));
    set.finish();
    types::SetWriter numbers(keys, 0, numbers_key, nullptr, {kInlineMax, 512});
    for (int i = 0; i < count; ++i) numbers.add(std::to_string(i * 7));
    numbers.finish();
    types::SortedSetWriter sorted(keys, 0, sorted_key, nullptr, {kInlineMax, 128, 64});
    for (int i = 0; i < count; ++i) sorted.put("m" + std::to_string(i), (i * 37 % 101) / 4.0);
    sorted.finish();
    add_hash(server, 0, "hash" + suffix, count, /*expiring=*/false);
    add_stream(server, 2, "stream" + suffix, count);
  }
  server.commit();
}

std::unique_ptr<RdbLoader> load(Server& server, std::string_view file, size_t piece = SIZE_MAX) {
  auto loader = std::make_unique<RdbLoader>(server.services(), kDatabases);
  for (size_t at = 0; at < file.size() && !loader->finished(); at += loader->taken()) {
    if (!loader->feed(file.substr(at, piece))) break;
  }
  return loader;
}

void publish(Server& server, std::unique_ptr<RdbLoader> loader) {
  CAPTURE(loader->error());
  REQUIRE(loader->finished());
  loader->replace(server.keys());
  server.commit();
}

}  // namespace

TEST_CASE("what is written to an RDB file is there again when it is loaded", "[rdb]") {
  const int elements = GENERATE(3, 700, 5000);
  const size_t piece = GENERATE(size_t{1}, size_t{7}, size_t{4096}, SIZE_MAX);
  CAPTURE(elements, piece);
  Server from, to;
  fill(from, elements);
  const std::string file = from.write();
  types::store_string(to.keys(), 1, "from before", nullptr, "x", 0);
  to.commit();
  auto loader = load(to, file, piece);
  CHECK(loader->aux().at("repl-id") == "abc");
  CHECK(loader->functions() == std::vector<std::string>{"#!lua name=lib\n"});
  CHECK(loader->bytes_loaded() == file.size());
  publish(to, std::move(loader));
  CHECK(to.digest() == from.digest());
  CHECK(to.keys().counts(1).keys == 0);
  to.check();
}

TEST_CASE("a long string that is compressed is unpacked piece by piece", "[rdb]") {
  std::mt19937 random(5);
  std::string text(300'000 + random() % 20'000, 'a');
  for (size_t at = 0; at < text.size(); at += 1 + random() % 600) {
    text[at] = static_cast<char>(random());
  }
  std::string value;
  types::rdb::append_string(&value, text, /*compress=*/true);
  REQUIRE(value.size() < text.size() / 10);
  const auto file = [&](const std::string& compressed) {
    return std::string("REDIS0009\0\x03key", 14) + compressed + '\xff' + std::string(8, '\0');
  };
  Server expected, to;
  types::store_string(expected.keys(), 0, "key", nullptr, text, 0);
  expected.commit();
  const size_t piece = GENERATE(size_t{1}, size_t{30}, size_t{4096}, SIZE_MAX);
  CAPTURE(piece);
  for (int i = 0; i < 100; ++i) {
    std::string damaged = value;
    damaged[random() % 9] ^= static_cast<char>(1 << random() % 8);  // the lengths
    (void)load(to, file(damaged), piece);
    damaged = value;
    damaged.erase(9 + random() % (damaged.size() - 9), 1);
    CHECK_FALSE(load(to, file(damaged), piece)->finished());
  }
  to.check();
  publish(to, load(to, file(value), piece));
  CHECK(to.digest() == expected.digest());
  to.check();
}

TEST_CASE("what stands behind the end of an RDB file is not taken", "[rdb]") {
  Server from, to;
  fill(from, 3);
  const std::string file = from.write();
  RdbLoader loader(to.services(), kDatabases);
  REQUIRE(loader.feed(file.substr(0, file.size() - 3)));
  CHECK_FALSE(loader.finished());
  REQUIRE(loader.feed(file.substr(file.size() - 3) + "*1\r\n$4\r\nPING\r\n"));
  CHECK(loader.finished());
  CHECK(loader.taken() == 3);
}

TEST_CASE("a value that was loaded beside others is garbage until it is published", "[rdb]") {
  Server from, to;
  fill(from, 5000);
  const std::string file = from.write();
  const std::string before = to.digest();
  { auto loader = load(to, file.substr(0, file.size() / 2), 1000); }
  CHECK(to.digest() == before);
  to.check();
  { auto loader = load(to, file); }  // complete, and dropped
  to.check();
  publish(to, load(to, file));
  CHECK(to.digest() == from.digest());
  to.check();
}

TEST_CASE("fields that expire reach another Ingot, and none of them Redis", "[rdb]") {
  const int fields = GENERATE(4, 3000);
  Server from;
  add_hash(from, 0, "h", fields, /*expiring=*/true);
  from.commit();
  for (const auto reader : {RdbReaderKind::kIngot, RdbReaderKind::kRedis}) {
    Server to;
    publish(to, load(to, from.write(reader)));
    types::Record record;
    REQUIRE(to.keys().find(0, "h", &record));
    int with_expiry = 0, all = 0;
    types::HashReader(to.overlay(), record, kNowMs)
        .walk([&](std::string_view, const types::FieldValue& value) {
          ++all;
          with_expiry += value.expire_ms != 0 ? 1 : 0;
          return true;
        });
    CHECK(all == fields);
    CHECK(with_expiry == (reader == RdbReaderKind::kIngot ? fields / 2 : 0));
    to.check();
  }
}

TEST_CASE("keys that have expired are left out, unless a master tells when they go", "[rdb]") {
  Server from;
  types::store_string(from.keys(), 0, "alive", nullptr, "x", kNowMs + 1);
  types::store_string(from.keys(), 0, "gone", nullptr, "x", kNowMs - 1);
  from.commit();
  const std::string file = from.write();
  for (const bool keep : {false, true}) {
    Server to;
    auto loader = std::make_unique<RdbLoader>(to.services(), kDatabases,
                                              RdbLoadOptions{.keep_expired = keep});
    REQUIRE(loader->feed(file));
    CHECK(loader->keys_expired() == (keep ? 0 : 1));
    publish(to, std::move(loader));
    CHECK(to.keys().counts(0).keys == (keep ? 2 : 1));
    CHECK(to.keys().counts(0).expires == (keep ? 2 : 1));
  }
}

TEST_CASE("an RDB file that is cut off is never complete, and never an error before", "[rdb]") {
  Server from, to;
  fill(from, 20);
  const std::string file = from.write();
  for (size_t bytes = 0; bytes < file.size(); bytes += 1 + bytes / 50) {
    const auto loader = load(to, file.substr(0, bytes));
    CAPTURE(bytes, loader->error());
    REQUIRE_FALSE(loader->finished());
    REQUIRE(loader->error().empty());
  }
  to.check();
}

TEST_CASE("an RDB file with other bytes is refused, and breaks nothing", "[rdb]") {
  Server from, to;
  fill(from, 60);
  const std::string file = from.write();
  std::mt19937 random(7);
  for (int i = 0; i < 600; ++i) {
    std::string damaged = file;
    // Mostly in the small values, whose structure is dense.
    const size_t at = random() % (i % 3 == 0 ? damaged.size() : 3000);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 + random() % 255));
    const auto loader = load(to, damaged, 1 + random() % 5000);
    CAPTURE(at);
    REQUIRE_FALSE(loader->finished());
  }
  to.check();
}

TEST_CASE("what no Ingot can load is named", "[rdb]") {
  Server server;
  const auto error_of = [&](const std::string& file) { return load(server, file)->error(); };
  CHECK(error_of("RESIS0010") == "this is not an RDB file");
  CHECK(error_of("REDIS0099") == "RDB version 99 cannot be read, 12 is the newest that can");
  CHECK(error_of(std::string("REDIS0010\xfe\x07", 11)) ==
        "it uses database 7; raise 'databases' to load it");
  CHECK(error_of("REDIS0010\xf6") ==
        "functions in the form of a release candidate of Redis 7.0 cannot be read");
  // A module's name is nine characters of six bits: "ReJSON-RL", version 3.
  uint64_t id = 3;
  const std::string name = "ReJSON-RL";
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (size_t i = 0; i < name.size(); ++i) id |= letters.find(name[i]) << (58 - 6 * i);
  std::string length = "\x81";
  for (int shift = 56; shift >= 0; shift -= 8) length.push_back(static_cast<char>(id >> shift));
  CHECK(error_of("REDIS0010\x07\x03key" + length) ==
        "the value of the key 'key' of database 0 is of the module 'ReJSON-RL', and no modules are "
        "here");
  CHECK(error_of("REDIS0010\xf7" + length) ==
        "there are data of the module 'ReJSON-RL', and no modules here");
}

// Of an RDB file made by hand.
std::string text(std::string_view bytes) {
  std::string out;
  types::rdb::append_length(&out, bytes.size());
  return out.append(bytes);
}

// Without a checksum.
std::string file_of(std::string_view keys) {
  return "REDIS0010" + std::string(keys) + '\xff' + std::string(8, '\0');
}

// A value of so many members, of which the last is the first once more if it `repeats`; each has a
// score of its own, or all the same.
std::string members(types::rdb::ObjectType type, std::string_view key, uint64_t count, bool repeats,
                    bool one_score = false) {
  using types::rdb::ObjectType;
  std::string out(1, static_cast<char>(type));
  out += text(key);
  types::rdb::append_length(&out, count);
  for (uint64_t i = 0; i < count; ++i) {
    out += text("m" + std::to_string(repeats && i + 1 == count ? 0 : i));
    if (type == ObjectType::kHash) out += text("value");
    const uint64_t score = one_score ? 1 : i;
    if (type == ObjectType::kSortedSetText) out += text(std::to_string(score));
    if (type == ObjectType::kSortedSet) types::rdb::append_le(&out, score << 40, 8);
  }
  return out;
}

TEST_CASE("a member that comes twice is damage, as in Redis", "[rdb]") {
  using types::rdb::ObjectType;
  const auto type = GENERATE(ObjectType::kSet, ObjectType::kHash, ObjectType::kSortedSet,
                             ObjectType::kSortedSetText);
  const uint64_t count = GENERATE(2, 7, 5000);
  const bool one_score = GENERATE(false, true);
  CAPTURE(static_cast<int>(type), count, one_score);
  Server to;
  publish(to, load(to, file_of(members(type, "k", count, /*repeats=*/false, one_score))));
  to.check();
  const auto loader =
      load(to, file_of(members(type, "k", count, /*repeats=*/true, one_score)), 100);
  CHECK_FALSE(loader->finished());
  CHECK(loader->error().starts_with("damaged at byte "));
  CHECK(loader->error().ends_with(", in the value of the key 'k' of database 0"));
}

TEST_CASE("so is one of very many members", "[rdb]") {
  const auto set = members(types::rdb::ObjectType::kSet, "k", SeenNames::kSureNamesMax + 2, true);
  Server to;
  CHECK(load(to, file_of(set))->error().ends_with("in the value of the key 'k' of database 0"));
}

TEST_CASE("a key that comes twice is damage, as in Redis", "[rdb]") {
  const std::string key = members(types::rdb::ObjectType::kSet, "k", 3, false);
  const std::string string = '\0' + text("s") + text("value");
  Server to;
  publish(to, load(to, file_of(key + string)));
  for (const std::string& repeated : {key + string + key, string + key + string}) {
    const auto loader = load(to, file_of(repeated), 1);
    CHECK_FALSE(loader->finished());
    CHECK(loader->error().find("stands there twice") != std::string::npos);
  }
  // Another database has keys of its own.
  publish(to, load(to, file_of(key + "\xfe\x01" + key)));
  to.check();
}

TEST_CASE("whatever a file without a checksum holds, what is loaded of it fits together", "[rdb]") {
  const int elements = GENERATE(3, 9, 150);
  Server from;
  fill(from, elements);
  std::string file = from.write();
  file.replace(file.size() - 8, 8, 8, '\0');
  const auto seed = static_cast<uint32_t>(elements);
  std::mt19937 random(seed);
  int taken = 0;
  const int rounds = std::getenv("INGOT_TEST_FULL") != nullptr ? 3'000 : 150;
  for (int i = 0; i < rounds; ++i) {
    std::string damaged = file;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = 9 + random() % (std::min<size_t>(damaged.size(), 6000) - 17);
      // Other bytes of the file make members that come twice.
      damaged[at] =
          random() % 2 == 0 ? static_cast<char>(random()) : damaged[random() % damaged.size()];
    }
    Server to;
    CAPTURE(seed, i);
    auto loader = load(to, damaged, 1 + random() % 5000);
    if (!loader->finished()) continue;
    ++taken;
    publish(to, std::move(loader));
    to.check();
    REQUIRE_FALSE(to.digest().empty());
    // What was taken can be passed on.
    Server next;
    publish(next, load(next, to.write(RdbReaderKind::kIngot)));
    CHECK(next.digest() == to.digest());
  }
  CHECK(taken > rounds / 20);
}

}  // namespace ingot::data
