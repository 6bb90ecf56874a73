// The gate that flushes pass, as RocksDB's threads see it.
#include "storage/rocksdb/flush_gate.h"

#include <rocksdb/file_system.h>
#include <catch2/catch.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <thread>

namespace ingot::storage {

TEST_CASE("a flush that has not begun finds its gate when the database is closed behind it") {
  struct Database {
    std::shared_ptr<FlushGate> gate = std::make_shared<FlushGate>([] {});
    std::unique_ptr<rocksdb::Env> env =
        make_gated_env(rocksdb::NewCompositeEnv(rocksdb::FileSystem::Default()), gate);
    std::weak_ptr<FlushGate> watched = gate;
    std::promise<bool> found;
  } database;
  database.env->IncBackgroundThreadsIfNeeded(1, rocksdb::Env::HIGH);
  const auto flush = [](void* raw) {
    auto* its = static_cast<Database*>(raw);
    its->env.reset();
    its->gate.reset();
    its->found.set_value(!its->watched.expired());
  };
  database.env->Schedule(flush, &database, rocksdb::Env::HIGH, nullptr, nullptr);
  CHECK(database.found.get_future().get());
  while (!database.watched.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace ingot::storage
