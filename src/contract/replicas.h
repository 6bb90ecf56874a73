// Clients that follow this server's stream of changes, and how far each of them is.
//
// Threads: Replicas by any. Of a Replica the plain members belong to the I/O thread of its client
// until that follows, and do not change from then on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ingot::contract {

class Client;

// What REPLCONF tells of a client, and what comes of it.
struct Replica {
  std::string ip;             // that it says it has; empty: that of its connection
  int port = 0;               // where it listens; 0: it did not say
  bool takes_mark = false;    // an RDB of unknown length, ended by a mark
  bool takes_new_id = false;  // "+CONTINUE <id>"
  bool is_ingot = false;      // it takes what only Ingot writes into an RDB
  bool wants_rdb_only = false;
  bool wants_data = true;       // of an RDB
  bool wants_functions = true;  // the same

  enum class State : uint8_t {
    kNone,      // it does not follow
    kWaits,     // for the RDB, or for an answer
    kReceives,  // the RDB
    kLoads,     // has got the RDB, and is told of changes once it acknowledges that
    kOnline,
  };
  std::atomic<State> state{State::kNone};
  std::atomic<uint64_t> acked{0};    // offset up to which it has everything
  std::atomic<uint64_t> synced{0};   // ... on stable storage, as it says
  std::atomic<int64_t> acked_ms{0};  // Unix; when it last said so
  // Bytes of the stream that are yet to be read for it, as of half a second ago.
  std::atomic<uint64_t> unsent{0};
  // Called on its client's thread when it acknowledges what it has loaded.
  std::function<void()> on_loaded;
};

// Where a client that follows says it is, or, if it does not, where it comes from.
std::string ip_of(const Client& client);

class Replicas {
 public:
  void add(std::shared_ptr<Client> client);
  void remove(const Client& client);
  std::vector<std::shared_ptr<Client>> all() const;  // in the order of coming
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  // Those online that have acknowledged `offset`, or, if `synced`, have it on stable storage.
  size_t count_acked(uint64_t offset, bool synced = false) const;

  // Of min-replicas-to-write: whether fewer than so many have said in so many seconds that they are
  // there.
  bool lacks_some(int64_t now_ms) const;
  std::atomic<int64_t> min_to_write{0};  // 0: none is needed
  std::atomic<int64_t> max_lag_s{0};
  size_t count_good(int64_t now_ms) const;

  // Changes are answered when so many have acknowledged them, or as an error after so long.
  std::atomic<size_t> write_acks{0};
  std::atomic<int64_t> write_acks_ms{0};

  // Bytes of the stream that are committed; and up to the last change of a master, without what
  // only asks replicas how far they are, or shows them that it is there.
  std::atomic<uint64_t> told{0};
  std::atomic<uint64_t> changed{0};

  // What they have yet to read may soon keep others from writing: it is to be given up.
  std::atomic<bool> disk_is_tight{false};

  // Called, by any thread, when one of them has acknowledged something.
  std::function<void()> on_ack;  // set before anybody follows

 private:
  std::atomic<size_t> size_{0};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Client>> clients_;  // by mutex_
};

}  // namespace ingot::contract
