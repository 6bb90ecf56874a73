// Carries what units tell others (types::Notice) to the clients of one I/O thread, in order and in
// turns: however many they are, and however much there is to tell, the thread's other clients are
// served in between. Whoever is slow to read has it in its output, under the limits of its class.
//
// Threads: its I/O thread, except post(), behind_all() and backlog_bytes() by any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/connection.h"
#include "src/contract/channels.h"
#include "src/contract/push.h"
#include "src/types/notices.h"

namespace ingot::exec {

// Released together.
struct NoticeBatch {
  std::vector<types::Notice> notices;
  size_t bytes = 0;
  uint32_t event_kinds = 0;  // notify-keyspace-events
};

class Courier {
 public:
  Courier(net::IoThread& thread, contract::Channels& channels)
      : thread_(thread), channels_(channels) {}
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  void post(std::shared_ptr<const NoticeBatch> batch);
  // Runs `then` when all that was posted before has been carried.
  void behind_all(std::move_only_function<void()> then);
  size_t backlog_bytes() const { return backlog_bytes_.load(std::memory_order_relaxed); }

  // The client's connection is gone.
  void forget(const contract::Client& client);

 private:
  // Batches, or what runs behind those in front of it.
  struct Item {
    std::shared_ptr<const NoticeBatch> batch;
    std::move_only_function<void()> then;
  };
  // One push, with the subscription by which it is received.
  struct Letter {
    contract::Push push;
    contract::ChannelKind kind;
    std::string name;
  };
  struct Parcel {
    contract::Client* client;  // null: it is gone
    size_t letter;
  };

  void take(Item item);
  void run();
  void carry_parcel();
  void open(const types::Notice& notice, const NoticeBatch& batch);
  void address(const types::Message& message);

  net::IoThread& thread_;
  contract::Channels& channels_;
  std::atomic<size_t> backlog_bytes_{0};

  std::deque<Item> items_;
  size_t next_notice_ = 0;  // of the first item
  // Of the notice before that one.
  std::vector<Letter> letters_;
  std::vector<Parcel> parcels_;
  size_t next_parcel_ = 0;
  std::vector<contract::Client*> to_flush_;
  bool running_ = false;     // a turn is posted or under way
  bool first_turn_ = false;  // of these parcels
};

}  // namespace ingot::exec
