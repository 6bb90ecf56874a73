// What commands may ask of the running server as a whole: figures, a checkpoint, an end. Any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/connection.h"
#include "src/contract/master_link.h"
#include "src/types/key_cursor.h"
#include "src/types/keyspace.h"
#include "storage/status.h"

// Of a floor above.
namespace ingot::metrics {
class Stats;
}

namespace ingot::contract {

// What memory is used for, in bytes.
struct MemoryFigures {
  uint64_t used = 0;      // in live allocations; where the allocator does not tell, resident
  uint64_t resident = 0;  // of the process
  uint64_t peak = 0;      // of `used`, as far as it was looked at
  uint64_t startup = 0;   // `used` before the first client
  uint64_t clients = 0;   // what they have sent and not yet taken
  uint64_t scripts = 0;   // their text and their Lua states
  uint64_t functions = 0;
  // The allocator's own pages, with what is free in them; 0 where it does not tell.
  uint64_t allocator_active = 0;
  uint64_t allocator_resident = 0;
  bool filters_fit = true;  // in the engine's cache, with all keys that there are

  uint64_t overhead() const { return startup + clients + scripts + functions; }
  // Caches of the data, and what of it is not in tables yet.
  uint64_t dataset() const { return used > overhead() ? used - overhead() : 0; }
};

// Work on all of the data that goes on beside the server's.
struct BackgroundWork {
  bool running = false;
  int64_t running_s = -1;  // for so long; -1: it is not
  int64_t last_s = -1;     // how long the last one took; -1: there was none
  bool last_ok = true;
  uint64_t done = 0;             // that succeeded
  uint64_t failures_in_row = 0;  // since then
  uint64_t disk_bytes = 0;       // that the last one left, or that there were at the start
};

class Client;
class Replicas;

// What a client that wants to follow asks for.
struct FollowRequest {
  bool is_psync = true;            // else it is SYNC, which has no answer before the data
  std::string id;                  // of the stream that it knows
  std::optional<uint64_t> offset;  // up to which it has that; nothing: it needs all of the data
};

// What FAILOVER asks for.
struct FailoverRequest {
  std::optional<std::string> host;  // nothing: whichever replica has everything first
  int64_t port = 0;
  bool force = false;      // when the time is over, although it lacks something
  int64_t timeout_ms = 0;  // 0: for as long as it takes
};

class RunningServer {
 public:
  virtual ~RunningServer() = default;

  // Begins an orderly stop (flush, exit 0), which waits for replicas that lag, unless it is to be
  // `now`. The answer comes when that is called off; else the connections are closed by it.
  virtual std::unique_ptr<net::BodySource> request_shutdown(bool now) = 0;
  virtual bool call_off_shutdown() = 0;                         // false: none is under way
  virtual std::optional<int64_t> shutdown_left_ms() const = 0;  // nothing: nobody is waited for
  // SAVE: a checkpoint beside the data, in the place of the last one. Blocks. On an engine without
  // checkpoints it makes everything durable instead.
  virtual storage::Status save() = 0;
  // BGSAVE: begins one; kBusy when one is running already.
  virtual storage::Status save_in_background() = 0;
  virtual bool saving() const = 0;
  virtual int64_t last_save_s() const = 0;  // Unix seconds of the last one that succeeded, or start
  virtual bool last_save_ok() const = 0;
  virtual int64_t last_save_duration_s() const = 0;  // of BGSAVE; -1: none yet
  virtual int64_t current_save_s() const = 0;        // of a running BGSAVE; -1: none runs
  // BGREWRITEAOF: begins one; kBusy when one is running already.
  virtual storage::Status rewrite_in_background() = 0;
  virtual BackgroundWork rewriting() const = 0;
  // DEBUG RELOAD: moves what is in memory into tables. Blocks.
  virtual storage::Status flush_engine() = 0;

  // INFO's text; `keys` counts keys, and may read the disk for that.
  virtual std::string info(types::KeyReader& keys, std::span<const std::string_view> sections) = 0;
  virtual MemoryFigures memory_figures() = 0;
  virtual metrics::Stats& stats() = 0;  // for SLOWLOG and LATENCY
  virtual void reset_statistics() = 0;  // CONFIG RESETSTAT

  // Forgets what the client watches, after every write that was sent before.
  virtual void unwatch(uint64_t client_id) = 0;
  virtual void set_active_expire(bool active) = 0;  // DEBUG SET-ACTIVE-EXPIRE
  virtual types::KeyCursors& cursors() = 0;         // of SCAN

  // What a client that follows is sent from now on. On its I/O thread. Null, with the error reply:
  // it cannot follow.
  virtual std::unique_ptr<net::BodySource> follow(Client& client, FollowRequest request,
                                                  std::string* error) = 0;
  virtual Replicas& replicas() = 0;
  // REPLICAOF. False: that is the master already.
  virtual bool follow_master(std::string host, int port) = 0;
  virtual void follow_nobody() = 0;
  // The error reply; empty: it has begun.
  virtual std::string fail_over(FailoverRequest request) = 0;
  virtual bool abort_failover() = 0;                          // false: there is none
  virtual std::string_view failover_state() const = 0;        // as INFO names it
  virtual std::optional<MasterLink> master_link() const = 0;  // nothing: this is a master
  virtual int64_t stream_offset() const = 0;                  // of what replicas are told

  virtual int64_t now_ms() const = 0;             // Unix
  virtual const std::string& run_id() const = 0;  // 40 hex digits
  // That of the stream of changes; while it is off one that a start, and DEBUG CHANGE-REPL-ID,
  // make.
  virtual std::string replication_id() const = 0;
  virtual void change_replication_id() = 0;
  virtual const std::string& executable() const = 0;
  virtual const std::string& config_file() const = 0;
  virtual uint64_t memory_limit_bytes() const = 0;  // maxmemory, or what was chosen for 0
};

}  // namespace ingot::contract
