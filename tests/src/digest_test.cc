// Digests against what a redis-server 7.0 answered to DEBUG DIGEST and DIGEST-VALUE.
#include <catch2/catch.hpp>
#include <string>

#include "src/types/digest.h"
#include "src/types/string_value.h"
#include "storage/codec.h"
#include "tests/src/typed_store.h"

namespace ingot::types {
namespace {

bool every(int) {
  return true;
}

class Data : public TypedStore {
 public:
  explicit Data(const std::string& engine) : TypedStore(engine) {
    state().databases.clear();
    for (storage::KeyspaceId id = 0; id < 16; ++id) state().databases.push_back(id);
  }

  void set(int db, std::string_view key, std::string_view value, int64_t expire_ms = 0) {
    store_string(keys(), db, key, nullptr, value, expire_ms);
  }
  void write(int db, std::string_view key, uint64_t offset, std::string_view bytes) {
    write_string(keys(), db, key, nullptr, offset, bytes);
  }
  std::string dataset() {
    const std::string text = digest_text(dataset_digest(overlay(), state().databases, every));
    CHECK_FALSE(overlay().failed());
    return text;
  }
  std::string value(int db, std::string_view key) {
    Record found;
    REQUIRE(keys().peek(db, key, &found));
    const std::string text = digest_text(value_digest(overlay(), found));
    CHECK_FALSE(overlay().failed());
    return text;
  }
};

std::string long_value() {
  std::string bytes(100'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>((i * 7 + (i >> 8) * 13) & 0xff);
  }
  return bytes;
}

TEST_CASE("digests are those of Redis", "[digest]") {
  Data data(each_engine());
  CHECK(data.dataset() == "0000000000000000000000000000000000000000");

  data.set(0, "k", "v");
  CHECK(data.dataset() == "264ccf65edec66bccfa7cc659414ccca432057d2");
  CHECK(data.value(0, "k") == "d79ee9fe5d5ad902d7f6620efc3b07b75ddd742f");

  data.set(0, "n", "123", 100'000'000);  // that it expires counts, not when
  CHECK(data.dataset() == "80f73f979aa3230464b577c065220dcce840b3c6");
  CHECK(data.value(0, "n") == "6f720be4ac4df2a2a7c35fa640511a20a52ceda8");

  data.set(3, "k", "v");
  CHECK(data.dataset() == "33ae78e8cb02e404bad00b05be69c9b1dac81792");

  data.set(3, "l", long_value());
  CHECK(data.dataset() == "8c87c135131598d61055dd0be71c41c51901aa42");
  CHECK(data.value(3, "l") == "f47ac0c52468fea6e0abaf5c343b5313b1a4dfd2");

  data.write(3, "hole", 40'000, "x");
  CHECK(data.value(3, "hole") == "08dbdda6593266d35aa4eab59bd6ac7b13b66781");
  data.set(3, "e", "");
  CHECK(data.value(3, "e") == "8b3447c33a834b810e3e181b6fd6a2ee1020921c");
}

TEST_CASE("a record that cannot be is an error, not a digest", "[digest]") {
  Data data(each_engine());
  data.set(0, "k", "v");
  data.overlay().put(storage::Space::kMeta, storage::meta_key(0, "bad"), "?");
  dataset_digest(data.overlay(), {0}, every);
  CHECK(data.overlay().error().code() == storage::Status::Code::kCorruption);
}

}  // namespace
}  // namespace ingot::types
