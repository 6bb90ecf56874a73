// The one thread that changes data. It takes every queued unit, runs them one after another on an
// overlay, commits them as one group with one WAL append, and releases their effects in order.
// A group forms by itself while the last one commits.
//
// A unit whose reads need the disk is rolled back; the pool loads its blocks (and those of the
// units behind it in its job), then the job goes on. Only that connection waits.
//
// Threads: everything by any thread, except where it says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/command_batch.h"
#include "net/connection.h"
#include "src/command/client.h"
#include "src/command/context.h"
#include "src/command/reply.h"
#include "src/exec/services.h"

namespace ingot::exec {

enum class FsyncPolicy : uint8_t { kAlways, kEverySecond, kNever };

// Which writes are refused at the moment.
enum class Refusal : uint8_t {
  kAll,      // the disk cannot take any (a failed fsync, a full disk)
  kGrowing,  // only those that may need more space (the denyoom flag)
};
inline constexpr size_t kRefusals = 2;

// One thing that takes effect as a whole: a command, or an EXEC with its commands.
struct Unit {
  const command::CommandRow* row = nullptr;  // null: only `canned` is answered
  net::BatchPtr batch;                       // keeps the arguments
  const net::Command* command = nullptr;
  int db = 0;
  int resp = 2;
  bool silent = false;  // CLIENT REPLY OFF: runs, answers nothing
  std::vector<command::QueuedCommand> transaction;  // of EXEC
  std::string canned;                               // an encoded reply that keeps its place
  // What the pool prepared for each command (one, or those of the transaction); see
  // WriteContext::needs. Empty until something was asked for.
  std::vector<std::shared_ptr<command::Prepared>> prepared;
};

// Consecutive writes of one connection, in order.
struct WriteJob {
  std::shared_ptr<command::Client> client;
  std::vector<Unit> units;
  // Called once when all units are committed (or refused), on `thread`, with the encoded replies
  // of all units in order.
  net::IoThread* thread = nullptr;
  std::move_only_function<void(command::EncodedReply)> done;
  command::EncodedReply replies;

  // The writer's own progress:
  size_t next = 0;              // the unit to run
  size_t first_uncommitted = 0; // units from here to `next` have run in the open group
  size_t committed_mark = 0;    // of replies.bytes
  int tries = 0;                // runs of that unit which needed the disk
};

class Writer {
 public:
  Writer();
  ~Writer();  // stop()
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Before anything else is called. `services`, which names this writer, outlives it.
  void start(Services& services, FsyncPolicy policy);
  // Commits what is queued and makes it durable, then joins. Later jobs are answered with an error.
  void stop();

  void submit(std::unique_ptr<WriteJob> job);
  // Forgets what the client watches, after everything submitted before.
  void unwatch(uint64_t client_id);

  // The client has gone: what it waits in (a blocking command) is given up.
  void unblock(uint64_t client_id);

  void set_policy(FsyncPolicy policy);
  // Which keyspace events are told to Services::on_events: bits of types::notify.
  void set_wanted_events(uint32_t kinds);
  // Whether events of that kind are told to anybody. Any thread.
  bool wants_event(uint32_t kind) const;
  void set_active_expire(bool active);
  // An empty error allows again. A failed fsync is not lifted by this: only a restart cures it.
  void refuse(Refusal kind, std::string error);
  std::string refusal(Refusal kind) const;

  struct Figures {
    size_t queue_depth = 0;        // jobs waiting
    size_t blocked_clients = 0;    // waiting in a blocking command
    uint64_t unsynced_ms = 0;      // age of the oldest commit not yet on stable storage
    bool sync_failed = false;
    bool disk_full = false;        // a commit failed for lack of space, and no later one succeeded
  };
  Figures figures() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ingot::exec
