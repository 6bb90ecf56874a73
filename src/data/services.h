// The parts that keep and read data, by reference, for what is built or streamed beside the writer.
// Made by the composition root; they outlive whatever works with them. Each has its own thread
// rule.
#pragma once

namespace ingot::metrics {
class Stats;
}
namespace ingot::settings {
class Config;
}

namespace ingot::data {

class Collector;
class ReaderPool;
class Store;

struct Services {
  Store& store;
  ReaderPool& readers;
  Collector& collector;
  settings::Config& config;
  metrics::Stats& stats;
};

}  // namespace ingot::data
