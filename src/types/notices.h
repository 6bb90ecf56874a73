// What a unit tells others than its own client: one list, in order, undone with the unit and
// released after the commit. Plain data.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/types/events.h"
#include "storage/check.h"

namespace ingot::types {

// A set of I/O threads, by index.
inline constexpr size_t kIoThreadsMax = 128;
using ThreadSet = std::bitset<kIoThreadsMax>;

// PUBLISH and SPUBLISH.
struct Message {
  std::string channel;
  std::shared_ptr<const std::string> bulk;  // the text as an encoded bulk string
  bool sharded = false;
  ThreadSet threads = {};  // on which somebody listened then
};

// For those who track what they have read.
struct KeyChange {
  std::string key;
  uint64_t author;  // the client; 0: none, the key has expired
};
// Databases were flushed, or it is not known which keys have changed.
struct AllChanged {};
// A client that tracks has read this in the writer.
struct KeyRead {
  std::string key;
  uint64_t client;
  int thread;  // of that client
};

// A command, as MONITOR tells of it.
struct Shown {
  std::string line;
};

using Notice = std::variant<Event, Message, KeyChange, AllChanged, KeyRead, Shown>;

// What it takes in memory, more or less.
inline size_t bytes_of(const Notice& notice) {
  struct Bytes {
    size_t operator()(const Event& event) const { return event.key.size(); }
    size_t operator()(const Message& message) const {
      return message.channel.size() + message.bulk->size();
    }
    size_t operator()(const KeyChange& change) const { return change.key.size(); }
    size_t operator()(const AllChanged&) const { return 0; }
    size_t operator()(const KeyRead& read) const { return read.key.size(); }
    size_t operator()(const Shown& shown) const { return shown.line.size(); }
  };
  return sizeof(Notice) + std::visit(Bytes{}, notice);
}

// In the order in which it is told.
struct Notices {
  std::vector<Notice> list;
  size_t bytes = 0;

  bool empty() const { return list.empty(); }
  template <typename SomeNotice>
  void tell(SomeNotice notice) {
    list.emplace_back(std::move(notice));
    bytes += bytes_of(list.back());
  }
  void append(Notices more) {
    std::ranges::move(more.list, std::back_inserter(list));
    bytes += more.bytes;
  }

  // To take back what was told since.
  struct Savepoint {
    size_t count, bytes;
  };
  Savepoint savepoint() const { return {.count = list.size(), .bytes = bytes}; }
  void rollback(const Savepoint& savepoint) {
    INGOT_CHECK(savepoint.count <= list.size());
    list.resize(savepoint.count);
    bytes = savepoint.bytes;
  }
};

}  // namespace ingot::types
