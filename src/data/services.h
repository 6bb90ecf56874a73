// The parts that keep and read data, by reference, for what is built or streamed beside the writer.
// Made by the composition root; they outlive whatever works with them. Each has its own thread
// rule.
#pragma once

#include <atomic>
#include <cstdint>

namespace ingot::metrics {
class Stats;
}
namespace ingot::settings {
class Config;
}

namespace ingot::data {

class ChangeStream;
class Collector;
class ReaderPool;
class Store;

// What one thing may take of the memory; by maxmemory, so CONFIG SET changes it.
struct MemoryBounds {
  std::atomic<uint64_t> command_bytes{UINT64_MAX};      // a value held whole
  std::atomic<uint64_t> transaction_bytes{UINT64_MAX};  // an EXEC's commands, or its replies
  std::atomic<uint64_t> changes_bytes{UINT64_MAX};      // what it changes, with what undoes it
};

struct Services {
  Store& store;
  ReaderPool& readers;
  Collector& collector;
  ChangeStream& changes;
  settings::Config& config;
  metrics::Stats& stats;
  MemoryBounds bounds = {};
};

}  // namespace ingot::data
