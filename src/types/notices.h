// What a unit tells others than its own client: one list, in order, undone with the unit and
// released after the commit. Plain data.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "src/types/events.h"

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

using Notice = std::variant<Event, Message>;

// What it takes in memory, more or less.
inline size_t bytes_of(const Notice& notice) {
  if (const auto* message = std::get_if<Message>(&notice)) {
    return sizeof(Notice) + message->channel.size() + message->bulk->size();
  }
  return sizeof(Notice) + std::get<Event>(notice).key.size();
}

}  // namespace ingot::types
