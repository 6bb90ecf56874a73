// States of all data that stay as they are while somebody looks at them. Made by Store; any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "src/types/keyspace.h"
#include "storage/engine.h"

namespace ingot::data {

class Store;

// One state of all data. Kept short: what was dropped after it cannot be reclaimed before it goes.
class View {
 public:
  ~View();
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  const storage::Snapshot* snapshot() const { return snapshot_.get(); }
  const storage::HotRecords& hot_records() const { return hot_records_; }
  const types::DatabaseMap& databases() const { return *databases_; }
  int64_t created_ms() const { return created_ms_; }  // Unix

 private:
  friend class Store;
  View(Store& store, uint64_t epoch) : store_(store), epoch_(epoch) {}

  Store& store_;
  const uint64_t epoch_;
  std::unique_ptr<storage::Snapshot> snapshot_;
  storage::HotRecords hot_records_;
  std::shared_ptr<const types::DatabaseMap> databases_;
  int64_t created_ms_ = 0;
};

// Keeps what is dropped from now on from being reclaimed, as a view does, but sees nothing.
class Pin {
 public:
  ~Pin();
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  friend class Store;
  Pin(Store& store, uint64_t epoch) : store_(store), epoch_(epoch) {}
  Store& store_;
  const uint64_t epoch_;
};

}  // namespace ingot::data
