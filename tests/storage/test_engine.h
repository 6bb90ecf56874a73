// An engine under test in a directory of its own, and short ways to use it. One thread, except
// where a test says otherwise.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "storage/engine.h"
#include "tests/storage/temporary_directory.h"

namespace ingot::storage {

// The engines that every contract test runs over. RocksDB and LevelDB are not built for the thread
// sanitizer, which would report their inner workings.
inline std::vector<std::string> engines_under_test() {
#ifdef __SANITIZE_THREAD__
  return {"memory"};
#else
  return {"rocksdb", "leveldb", "memory"};
#endif
}

using Records = std::vector<std::pair<std::string, std::string>>;

class TestEngine {
 public:
  explicit TestEngine(std::string name, EngineOptions options = small_options());

  static EngineOptions small_options();  // a cache of 16 MB

  Engine* operator->() { return engine_.get(); }
  Engine& operator*() { return *engine_; }
  const std::string& name() const { return name_; }
  const EngineOptions& options() const { return options_; }
  const TemporaryDirectory& directory() const { return directory_; }
  bool persistent() const { return name_ != "memory"; }

  // Closes and opens again; the memory engine, which would forget everything, stays as it is.
  void reopen();
  void close() { engine_.reset(); }

  Status put(Space space, std::string_view key, std::string_view value,
             Durability durability = Durability::kBuffered);
  Status remove(Space space, std::string_view key);
  // The value, or what else the lookup answered: "<absent>", "<miss>", "<error>".
  std::string get(Space space, std::string_view key, const Snapshot* snapshot = nullptr,
                  Tier tier = Tier::kDisk);
  std::string peek(Space space, std::string_view key) {
    return get(space, key, nullptr, Tier::kCacheOnly);
  }
  Records scan(Space space, const CursorOptions& options = {});
  Records scan_backwards(Space space, const CursorOptions& options = {});

 private:
  std::string name_;
  TemporaryDirectory directory_;
  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

// Opens what must open.
std::unique_ptr<Engine> must_open(const std::string& name, const EngineOptions& options);

// "<absent>" and so on, as TestEngine::get.
std::string describe(Lookup lookup, const std::string& value);

// A key in the way of the element spaces: eight bytes of id, then the rest.
std::string element_key(uint64_t id, std::string_view element);
KeyRange element_range(uint64_t id);

// Bytes that no compression makes smaller; the same for the same seed.
std::string noise(size_t bytes, uint64_t seed);

}  // namespace ingot::storage
