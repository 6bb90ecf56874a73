// Which clients of one I/O thread have read which keys, and are to be told when those change. A key
// is remembered before it is read, and forgotten when it has been told of.
//
// Threads: its I/O thread's.
#pragma once

#include <boost/container/flat_set.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/contract/tracking.h"

namespace ingot::exec {

class TrackingTable {
 public:
  using Clients = boost::container::flat_set<uint64_t>;  // ids; some may be gone

  explicit TrackingTable(contract::Tracking& tracking) : tracking_(tracking) {}
  ~TrackingTable() { clear(); }
  TrackingTable(const TrackingTable&) = delete;
  TrackingTable& operator=(const TrackingTable&) = delete;

  void remember(std::string_view key, uint64_t client);
  // Who has read it; they are not remembered any more.
  Clients take(std::string_view key);
  // A key at random; there must be one.
  const std::string& any_key();
  size_t size() const { return keys_.size(); }
  uint64_t bytes() const { return bytes_; }
  void clear();

 private:
  struct Entry {
    Clients clients;
    size_t place;  // in keys_
  };
  using Entries = std::unordered_map<std::string, Entry, contract::TextHash, std::equal_to<>>;

  void count(int64_t keys, int64_t items, int64_t bytes);

  contract::Tracking& tracking_;
  Entries entries_;
  std::vector<Entries::value_type*> keys_;  // in no order, to draw from
  uint64_t bytes_ = 0;
  uint64_t items_ = 0;
  uint64_t drawn_ = 0;  // the state of the draw
};

}  // namespace ingot::exec
