// The couriers of all I/O threads: where notices go in once their unit is committed, and who wants
// them. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "src/contract/channels.h"
#include "src/contract/tracking.h"
#include "src/exec/courier.h"

namespace ingot::contract {
class ClientRegistry;
}

namespace ingot::exec {

class Couriers {
 public:
  Couriers(contract::Channels& channels, contract::Tracking& tracking,
           const contract::ClientRegistry& clients)
      : channels_(channels), tracking_(tracking), clients_(clients) {}

  // Before anybody connects.
  void serve(std::span<net::IoThread* const> threads);

  void want_events(uint32_t kinds) { event_kinds_ = kinds; }
  // Bits of types::notify; 0 while nobody listens.
  uint32_t event_kinds() const {
    return channels_.any_hears_events() ? event_kinds_.load(std::memory_order_relaxed) : 0;
  }

  // In the order of the calls, which come from the writer, and for reads from the I/O threads.
  void release(types::Notices notices);
  // What waits for its place must not take much memory: the first of very many are told at once.
  void release_too_many(types::Notices& notices);
  // Whoever causes more than can be carried waits for its own answer: the courier that `then` is to
  // be given to, or null.
  Courier* overladen() const;

  Courier& of(const net::IoThread& thread) { return at(thread.index()); }
  Courier& at(int thread) { return *couriers_[static_cast<size_t>(thread)]; }
  size_t size() const { return couriers_.size(); }
  // A client tracks no more.
  void forget_if_nobody_tracks();
  // More reads are remembered than may be: each courier that has more than its part forgets some.
  void trim_reads();

 private:
  contract::Channels& channels_;
  contract::Tracking& tracking_;
  const contract::ClientRegistry& clients_;
  std::atomic<uint32_t> event_kinds_{0};
  std::vector<std::unique_ptr<Courier>> couriers_;
};

}  // namespace ingot::exec
