// All that has to do with scripts in one server: those that EVAL and SCRIPT LOAD have brought, the
// libraries of functions, the Lua states to run them in, and which of them run right now.
//
// Any thread.
#pragma once

#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/contract/command_caller.h"
#include "src/script/lua_host.h"

namespace ingot::script {

// Redis' sentences.
inline constexpr std::string_view kNoScript = "NOSCRIPT No matching script. Please use EVAL.";
inline constexpr std::string_view kReadOnlyRefused =
    "ERR Can not execute a script with write flag using *_ro command.";

// What a script may have of the memory.
struct Bounds {
  uint64_t memory_bytes = UINT64_MAX;  // of all Lua states of a kind together
  uint64_t cache_bytes = UINT64_MAX;   // of the bodies of scripts; of libraries as much
  uint64_t reply_bytes = UINT64_MAX;   // of one reply
  int64_t busy_ms = 0;                 // from then on others are answered BUSY; 0: never
};

// A run as FUNCTION STATS tells it.
struct RunInfo {
  uint64_t client_id = 0;
  LuaHost::Kind kind = LuaHost::Kind::kScripts;
  std::string_view name = {};
  contract::Args command = {};  // for as long as it runs
  bool holds_writer = false;    // others' writes wait for it
  bool is_dry = false;          // nobody kills it: it ends by itself
};

class Scripts {
 public:
  Scripts() = default;
  void set_bounds(const Bounds& bounds);
  uint64_t reply_bytes_max() const { return reply_bytes_max_; }
  uint64_t library_bytes_max() const { return cache_bytes_max_; }

  // --- scripts, by name

  // Null: there is none. `sha` in any case of letters.
  std::shared_ptr<const Script> find(std::string_view sha) const;
  // Why it cannot be compiled, as an error reply; empty: it can.
  std::string compile(const Script& script);
  // Tells the library's functions. The error reply, or empty.
  std::string load(Library* library);
  // Keeps it. False: those that SCRIPT LOAD has brought leave no room. (Those of EVAL alone make
  // room for others, the oldest first.)
  [[nodiscard]] bool add(std::shared_ptr<const Script> script);
  // Of SCRIPT LOAD, and its name. The error reply, or empty.
  std::string keep(std::string_view body, std::string* sha);
  void flush();

  // --- libraries: what is committed. FUNCTION's changes are effects of their unit until then.

  std::shared_ptr<const Libraries> libraries() const { return libraries_.load(); }
  void publish(std::shared_ptr<const Libraries> libraries) {
    libraries_.store(std::move(libraries));
  }

  // --- running

  // A host for one run, and the run itself for others to see. Given back when it goes.
  class Lease {
   public:
    Lease(Scripts& scripts, RunInfo info);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    LuaHost* host() const { return host_.get(); }  // null: there is no memory for one
    contract::ScriptRun& run() { return run_; }

   private:
    friend class Scripts;
    Scripts& scripts_;
    const RunInfo info_;
    const int64_t since_ms_;
    contract::ScriptRun run_;
    std::unique_ptr<LuaHost> host_;
    std::list<Lease*>::iterator place_;
  };

  // Ends what runs, if it has not written. An error reply, or empty.
  std::string kill(LuaHost::Kind kind);
  // Ends what runs, whatever it has written, and all that comes; for the server's end.
  void stop();
  bool is_stopped() const { return stopped_; }

  // Whether one runs in the writer at the moment.
  bool holds_writer() const { return writer_since_ms_.load(std::memory_order_relaxed) != 0; }
  // The error reply for clients other than that of a script which has held the writer for too long;
  // empty: there is none.
  std::string_view busy(uint64_t client_id) const;

  // From then on; zero: never.
  std::chrono::milliseconds busy_after() const { return std::chrono::milliseconds(busy_ms_); }
  // The error reply for a script that has found no place beside those that run in the pool.
  std::string_view busy_in_pool() const;

  struct Running {
    std::string name;
    std::vector<std::string> command;
    int64_t duration_ms;
  };
  // The function that runs, the writer's before all others.
  std::optional<Running> running_function() const;

  struct Figures {
    size_t scripts = 0;
    uint64_t script_bytes = 0;  // of their bodies
    uint64_t function_bytes = 0;
    uint64_t script_lua_bytes = 0;  // of all states
    uint64_t function_lua_bytes = 0;
  };
  Figures figures() const;

 private:
  static constexpr uint64_t kScriptBytes = 200;  // of one, beside its body
  static constexpr size_t kIdleHostsMax = 16;

  struct Kept {
    std::shared_ptr<const Script> script;
    std::list<std::string>::iterator age;  // in by_age_; means nothing of what SCRIPT LOAD brought
  };
  void remove(const std::string& sha);
  MemoryBudget& memory_of(LuaHost::Kind kind) { return memory_[static_cast<size_t>(kind)]; }
  std::unique_ptr<LuaHost> take_host(LuaHost::Kind kind);
  void give_back(std::unique_ptr<LuaHost> host, LuaHost::Kind kind);

  MemoryBudget memory_[2];  // by kind
  std::atomic<uint64_t> cache_bytes_max_{UINT64_MAX};
  std::atomic<uint64_t> reply_bytes_max_{UINT64_MAX};
  std::atomic<int64_t> busy_ms_{0};
  std::atomic<std::shared_ptr<const Libraries>> libraries_{std::make_shared<Libraries>()};
  // Of the run that holds the writer, for busy(); 0: none.
  std::atomic<int64_t> writer_since_ms_{0};
  std::atomic<uint64_t> writer_client_{0};
  std::atomic<LuaHost::Kind> writer_kind_{LuaHost::Kind::kScripts};

  mutable std::mutex mutex_;
  // By mutex_:
  boost::unordered_flat_map<std::string, Kept> by_sha_;
  std::list<std::string> by_age_;  // names of those that EVAL alone has brought, the oldest first
  uint64_t cached_bytes_ = 0;
  uint64_t flushes_ = 0;
  struct Idle {
    std::unique_ptr<LuaHost> host;
    uint64_t flushes;  // when it was given back
  };
  std::vector<Idle> idle_[2];  // by kind
  std::list<Lease*> running_;
  std::atomic<bool> stopped_ = false;  // written by mutex_
};

}  // namespace ingot::script
