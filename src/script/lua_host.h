// One Lua state in which scripts run: the sandbox, the API `redis`, and what it has compiled. What
// a script does to it is gone when the script ends, but for what Redis keeps, too (the settings of
// cjson, the local variables of a library).
//
// One thread at a time. Lua is linked as C++ (liblua5.1-c++): its errors are exceptions, so that
// the functions that it calls may have locals with destructors.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <lua5.1/lua.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/contract/command_caller.h"
#include "src/contract/reply.h"
#include "src/metrics/log.h"
#include "src/script/library.h"
#include "src/script/memory_budget.h"
#include "src/script/script.h"

namespace ingot::script {

// What one run is given.
struct Invocation {
  contract::CommandCaller& caller;
  contract::ScriptRun& run;
  contract::ReplySink& reply;
  contract::Args keys;
  contract::Args argv;
  bool no_writes = false;
  bool allow_oom = false;
  uint64_t reply_bytes_max = UINT64_MAX;
};

class LuaHost {
 public:
  // Scripts and functions see different globals, so each kind has hosts of its own.
  enum class Kind : uint8_t { kScripts, kFunctions };

  // Null when there is no memory for one.
  static std::unique_ptr<LuaHost> make(Kind kind, MemoryBudget& budget);
  ~LuaHost();
  LuaHost(const LuaHost&) = delete;
  LuaHost& operator=(const LuaHost&) = delete;

  // Why it cannot be compiled, as an error reply; empty: it can.
  std::string compile(const Script& script);
  // Runs it and replies. False: the run was given up (CommandCaller::call), and nothing was
  // replied.
  [[nodiscard]] bool run(const Script& script, const Invocation& invocation);
  void forget_scripts();

  // Runs a function of a library that load() of some host has found sound.
  [[nodiscard]] bool run(const Libraries::Found& function, const Invocation& invocation);
  // Runs the code of a library, which tells its functions. The error reply, or empty.
  std::string load(Library* library);
  // Forgets libraries that are no longer among these.
  void keep_only(const Libraries& libraries);

  uint64_t bytes() const { return used_; }
  // It holds memory that nobody counts: better end it than run in it again.
  bool is_worn() const { return is_worn_; }

  // --- for the functions that Lua calls, in the other files of this folder

  static LuaHost& of(lua_State* lua);
  Kind kind() const { return kind_; }
  // The run, or null while a library is loaded.
  const Invocation* invocation() const { return invocation_; }
  Library* loading() const { return loading_; }
  // Whether the run must end: no pcall() holds that up.
  bool over() const { return over_; }
  [[noreturn]] void give_up(lua_State* lua);
  int end(lua_State* lua, std::string_view error);        // the same with an error for the client
  int raise_over(lua_State* lua);                         // once more
  uint64_t bytes_max() const { return budget_.limit(); }  // of anything that is held whole
  // Raises the end of the run if it must end: it was killed, or the server stops.
  void end_if_due(lua_State* lua);
  // Whether there is so much memory, what can be collected included.
  [[nodiscard]] bool make_room(uint64_t bytes);
  // lua_pcall() of C that leaks when memory ends under it: it may take what the budget does not
  // have.
  int call_exceeding(lua_State* lua, int arguments);
  // A buffer has become so large that the budget does not count.
  void note_buffer(uint64_t bytes) { is_worn_ = is_worn_ || bytes > kBufferBytesMax; }
  void log(settings::LogLevel level, std::string_view line);
  void keep_reference(lua_State* lua, std::string_view name);  // takes the function off the stack

  static constexpr size_t kLineBytesMax = 1024;  // of the log

  int resp = 2;         // as redis.setresp() wants it
  bool is_told = true;  // to replicas, as redis.set_repl() wants it
  uint64_t random = 0;  // the state of math.random()
  std::string reply;    // of the command that was called
  std::vector<std::string_view> args;

 private:
  static constexpr uint64_t kBufferBytesMax = 1 << 20;
  using Loaded = std::vector<std::pair<std::string, int>>;  // function -> reference

  LuaHost(Kind kind, MemoryBudget& budget) : kind_(kind), budget_(budget) {}
  static void* allocate(void* self, void* block, size_t old_bytes, size_t bytes);
  bool grant(uint64_t bytes);
  template <typename Body>
  bool protect(const Body& body, std::string* error);
  void begin();
  void clean_up();
  std::string push_script(const Script& script);
  std::string run_library(const Library& library, Library* told);
  bool run_pushed(std::string_view name, const Invocation& invocation, int arguments);
  void write_lines();

  const Kind kind_;
  MemoryBudget& budget_;
  lua_State* lua_ = nullptr;
  uint64_t used_ = 0;
  uint64_t granted_ = 0;     // of the budget
  bool may_exceed_ = false;  // while something is done that may not fail half way

  boost::unordered_flat_map<std::string, int> compiled_;  // sha -> reference
  struct LoadedLibrary {
    std::shared_ptr<const Library> library;
    Loaded functions;
  };
  boost::unordered_flat_map<std::string, LoadedLibrary> loaded_;

  const Invocation* invocation_ = nullptr;
  Library* loading_ = nullptr;
  Loaded* references_ = nullptr;  // of the library that is loaded
  int64_t ends_ms_ = 0;
  bool over_ = false;
  std::string over_error_;
  bool given_up_ = false;
  bool is_dry_ = false;
  bool is_worn_ = false;
  std::vector<std::pair<settings::LogLevel, std::string>> lines_;
};

}  // namespace ingot::script
