// What the server knows of one client, apart from its socket and its queue of commands.
//
// Threads: the plain members belong to whoever executes the client's commands at the moment: its
// I/O thread, or the writer or pool thread to which an EXEC or a long command was handed (the I/O
// thread leaves the client alone meanwhile). The atomics and name() are for anybody (CLIENT LIST).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "net/connection.h"
#include "src/contract/channels.h"
#include "src/contract/push.h"
#include "src/contract/row.h"
#include "src/contract/tracking.h"

namespace ingot::access {
class Account;
}

namespace ingot::contract {

struct Replica;

struct QueuedCommand {
  const CommandRow* row;
  net::BatchPtr batch;  // keeps the arguments
  const net::Command* command;
};

// What a subscription takes beside its name, twice.
inline constexpr size_t kSubscriptionBytes = 256;

// What a key that is watched takes, about.
constexpr uint64_t watched_bytes(std::string_view key) {
  return 192 + key.size();
}

// What a key that a blocked client waits for takes, about.
constexpr uint64_t awaited_bytes(std::string_view key) {
  return 256 + 2 * key.size();
}

enum class ReplyMode : uint8_t { kOn, kOff, kSkipNext, kSkipThis };
constexpr bool is_silent(ReplyMode mode) {
  return mode == ReplyMode::kOff || mode == ReplyMode::kSkipThis;
}

class Client {
 public:
  Client(uint64_t id, std::string address, std::string local_address, int fd, bool is_unix,
         int64_t created_ms, std::shared_ptr<access::Account> account);

  const uint64_t id;
  const std::string address;
  const std::string local_address;
  const int fd;
  const bool is_unix;
  const int64_t created_ms;  // Unix

  // MULTI
  bool in_multi = false;
  bool multi_failed = false;  // a command could not be queued: EXECABORT
  bool unwatched = false;     // a WATCH was refused: to the next EXEC its keys have changed
  std::vector<QueuedCommand> queue;

  ReplyMode reply_mode = ReplyMode::kOn;
  bool debugs_scripts = false;     // has asked for it in vain: none that it sends is run
  bool close_after_reply = false;  // QUIT, CLIENT KILL of oneself, protocol errors
  bool authenticated = false;
  bool is_master = false;  // not a client at all: what this server follows

  std::atomic<int> db{0};
  std::atomic<int> resp{2};
  std::atomic<bool> no_evict{false};
  std::atomic<bool> no_touch{false};  // what it looks up keeps its time of last use
  // In a blocking command: only the writer changes that. And held back by a pause of all clients.
  std::atomic<const CommandRow*> waits_in{nullptr};
  std::atomic<bool> paused{false};
  // The keys that it watches: the writer's.
  std::atomic<bool> watch_broken{false};  // one has changed
  std::atomic<uint64_t> watched_bytes{0};
  std::atomic<int> queued{-1};  // commands in MULTI; -1: none open
  std::atomic<int64_t> last_command_ms{0};
  std::atomic<const CommandRow*> last_command{nullptr};
  std::atomic<const CommandRow*> last_subcommand{nullptr};
  std::atomic<uint64_t> pending_bytes{0};  // arguments of commands not yet answered
  std::atomic<uint64_t> queued_bytes{0};   // of those queued in MULTI

  // Pub/sub. The number of subscriptions of each kind, and what they take in memory.
  Channels::Subscriptions subscriptions;
  std::array<std::atomic<uint32_t>, kChannelKinds> subscribed{};
  std::atomic<uint64_t> subscribed_bytes{0};
  uint32_t subscribed_to(ChannelKind kind) const { return subscribed[static_cast<size_t>(kind)]; }
  bool is_subscriber() const;  // of channels, patterns or shard channels
  bool is_monitor() const { return subscribed_to(ChannelKind::kMonitor) > 0; }

  // What it has said as a replica; null: nothing. Set by its I/O thread before `follows` is.
  std::shared_ptr<Replica> replica;
  std::atomic<bool> follows{false};  // this server's stream of changes, for good

  // Client side caching. Changed by Tracking, and under its lock but for single bits of `tracking`.
  std::atomic<uint32_t> tracking{0};           // bits of namespace tracks; 0: it does not track
  std::atomic<uint64_t> tracking_redirect{0};  // the client that is told instead; 0: none
  std::set<std::string, std::less<>> tracking_prefixes;
  bool tracking_closed = false;
  // Whom CLIENT LIST names as told instead: a client's id, 0 for this one, -1 for nobody.
  int64_t redirect() const { return tracking == 0 ? -1 : static_cast<int64_t>(tracking_redirect); }

  // Whether anybody is at the other end. Each is set by the I/O thread, before it tells the writer,
  // the first by kill(), too; whoever works for the client looks when that begins, goes on, and
  // would have to wait.
  std::atomic<bool> leaving{false};  // sends no more, or is gone: nothing of it waits for others
  std::atomic<bool> gone{false};     // reads no more: what only reads need not be done
  std::atomic<bool> closed{false};   // runs no more: nothing is remembered for it
  std::atomic<bool> evicted{false};  // its connection is being ended, because it took much memory

  // What it takes, with its buffers. Under the registry's lock, or of its own thread.
  uint64_t memory_bytes() const;
  // Whether it comes from this machine.
  bool is_local() const;
  std::string name() const;
  void set_name(std::string name);
  // Of the library that it is made by.
  std::string library_name() const;
  std::string library_version() const;
  void set_library_name(std::string name);
  void set_library_version(std::string version);

  // Which user it is. Only who executes its commands changes that, and may ask without a lock.
  void set_account(std::shared_ptr<access::Account> account);
  std::shared_ptr<access::Account> account() const;
  const access::Account& own_account() const { return *account_; }

  // Where its connection lives: an index, constant once it is there; and what pushes go to, null
  // once the connection is gone (its I/O thread's).
  int thread_index = 0;
  PushTarget* pushes = nullptr;

  // Called by anybody under the registry's lock; null once the connection is gone.
  net::Connection* connection = nullptr;
  std::function<void()> kill;  // closes the connection; any thread

 private:
  mutable std::mutex mutex_;
  std::string get(const std::string& text) const;
  void set(std::string* text, std::string value);
  // By mutex_:
  std::string name_;
  std::string library_name_;
  std::string library_version_;
  std::shared_ptr<access::Account> account_;  // changed under mutex_
};

}  // namespace ingot::contract
