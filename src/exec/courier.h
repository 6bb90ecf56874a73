// Carries what units tell others (types::Notice) to the clients of one I/O thread, in order and in
// turns: however many they are, and however much there is to tell, the thread's other clients are
// served in between. Whoever is slow to read has it in its output, under the limits of its class.
//
// Threads: its I/O thread, except where it says otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/connection.h"
#include "src/contract/channels.h"
#include "src/contract/push.h"
#include "src/contract/tracking.h"
#include "src/exec/tracking_table.h"
#include "src/types/notices.h"

namespace ingot::contract {
class Client;
class ClientRegistry;
}  // namespace ingot::contract

namespace ingot::exec {

class Couriers;

// Released together.
struct NoticeBatch {
  std::vector<types::Notice> notices;
  size_t bytes = 0;
};

class Courier {
 public:
  struct Others {
    contract::Channels& channels;
    contract::Tracking& tracking;
    const contract::ClientRegistry& clients;
    Couriers& couriers;
  };
  Courier(net::IoThread& thread, const Others& others)
      : thread_(thread), others_(others), reads_(others.tracking) {}
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  // These three by any thread:
  void post(std::shared_ptr<const NoticeBatch> batch);
  // Runs `then` when all that was posted before has been carried.
  void behind_all(std::move_only_function<void()> then);
  size_t backlog_bytes() const { return backlog_bytes_.load(std::memory_order_relaxed); }

  // A client of this thread is about to read the key, and is to be told when that changes.
  void remember_read(std::string_view key, uint64_t client);
  // By any thread; see Couriers.
  void post_forget_reads();
  void post_trim_reads();

  // The client's connection is gone.
  void forget(const contract::Client& client);

 private:
  // Batches, or what runs behind those in front of it.
  struct Item {
    std::shared_ptr<const NoticeBatch> batch;
    std::move_only_function<void()> then;
  };
  // One push.
  struct Letter {
    contract::Push push;                        // of an invalidation the body alone
    std::optional<contract::ChannelKind> kind;  // nothing: an invalidation
    std::string name;                           // of the subscription by which it is received
  };
  struct Parcel {
    contract::Client* client;  // null: it is gone
    size_t letter;
  };

  void take(Item item);
  void run();
  void carry_parcel();
  void flush();
  void open(const types::Notice& notice);
  net::SharedBytes counted(net::SharedBytes bytes);
  void address(const types::Message& message);
  void address(const types::Shown& shown);
  // --- courier_tracking.cc: what is told to those who track keys
  void open(const types::KeyChange& change);
  void open(const types::AllChanged& all);
  void note_for_broadcast(const types::KeyChange& change);
  void address_broadcasts();
  void add_invalidation(contract::Client& client, net::SharedBytes body);
  void invalidate(contract::Client& client, const net::SharedBytes& keys);
  void post_invalidation(std::shared_ptr<contract::Client> client, net::SharedBytes keys);
  void trim_reads();

  net::IoThread& thread_;
  const Others others_;
  std::atomic<size_t> backlog_bytes_{0};

  std::deque<Item> items_;
  size_t next_notice_ = 0;  // of the first item
  // Of the notice before that one.
  std::vector<Letter> letters_;
  std::vector<Parcel> parcels_;
  size_t next_parcel_ = 0;
  std::vector<contract::Client*> to_flush_;
  TrackingTable reads_;
  std::atomic<bool> trimming_{false};  // trim_reads() has been posted
  // What the batch under way has changed for those with a prefix: prefix -> key -> author.
  std::map<std::string, std::map<std::string, uint64_t>> broadcasts_;
  bool running_ = false;     // a turn is posted or under way
  bool first_turn_ = false;  // of these parcels
};

}  // namespace ingot::exec
