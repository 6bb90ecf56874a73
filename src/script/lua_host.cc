// The life of a Lua state: its memory, what it has compiled, one run from its arguments to its
// reply.
#include "src/script/lua_host.h"

#include <openssl/sha.h>

#include <cstdlib>
#include <ctime>

#include "src/script/lua_parts.h"
#include "storage/check.h"

namespace ingot::script {

namespace {

constexpr uint64_t kGrantBytes = 256 << 10;      // taken from the budget at a time
constexpr uint64_t kCollectBytes = 4 << 20;      // more is given back at once after a run
constexpr size_t kCompiledMax = 2000;            // scripts; then all are forgotten
constexpr int kInstructionsBetweenLooks = 1000;  // each may be a long call of C
constexpr int64_t kLoadMs = 500;
constexpr int64_t kDryMs = 1000;  // what it has not read by then is read in its turn
constexpr char kScriptName[] = "@user_script";
constexpr char kLibraryName[] = "@user_function";
const char kHostKey = 0;

int64_t steady_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

void push_strings(lua_State* lua, contract::Args strings) {
  lua_createtable(lua, static_cast<int>(strings.size()), 0);
  for (size_t i = 0; i < strings.size(); ++i) {
    lua_pushlstring(lua, strings[i].data(), strings[i].size());
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
}

// Of the table on top; never by a metatable, whose functions nobody could end any more.
std::string field(lua_State* lua, const char* name) {
  lua_pushstring(lua, name);
  lua_rawget(lua, -2);
  size_t bytes = 0;
  const char* text = lua_tolstring(lua, -1, &bytes);
  std::string value = text == nullptr ? std::string() : std::string(text, bytes);
  lua_pop(lua, 1);
  return value;
}

// What a failed lua_pcall() left on top, as an error reply.
std::string error_text(lua_State* lua, std::string_view name) {
  if (!lua_istable(lua, -1)) {
    const char* text = lua_tostring(lua, -1);
    return "ERR Error running script " + std::string(name) + ", " +
           (text == nullptr ? "execution failure" : std::string(text).substr(0, 100));
  }
  std::string said = field(lua, "err");
  if (said.empty()) said = "ERR unknown error";
  const std::string source = field(lua, "source");
  const std::string line = field(lua, "line");
  if (source.empty() || line.empty()) return said;
  return said + " script: " + std::string(name) + ", on " + source + ":" + line + ".";
}

}  // namespace

// Has the budget grant so much in all, or what it must if there is no more.
bool LuaHost::grant(uint64_t bytes) {
  const uint64_t wanted = (bytes - granted_ + kGrantBytes - 1) / kGrantBytes * kGrantBytes;
  if (!budget_.take(wanted)) {
    if (!may_exceed_) return false;
    budget_.force(wanted);
  }
  granted_ += wanted;
  return true;
}

void* LuaHost::allocate(void* self, void* block, size_t old_bytes, size_t bytes) {
  LuaHost& host = *static_cast<LuaHost*>(self);
  const bool grows = bytes > old_bytes && host.used_ + bytes - old_bytes > host.granted_;
  if (grows && !host.grant(host.used_ + bytes - old_bytes)) return nullptr;
  if (bytes == 0) {
    std::free(block);
    host.used_ -= old_bytes;
    return nullptr;
  }
  void* moved = std::realloc(block, bytes);
  if (moved != nullptr) host.used_ += bytes - old_bytes;
  return moved;
}

std::unique_ptr<LuaHost> LuaHost::make(Kind kind, MemoryBudget& budget) {
  std::unique_ptr<LuaHost> host(new LuaHost(kind, budget));
  host->lua_ = lua_newstate(allocate, host.get());
  if (host->lua_ == nullptr) return nullptr;
  std::string error;
  const bool opened = host->protect(
      [&host](lua_State* lua) {
        lua_pushlightuserdata(lua, const_cast<char*>(&kHostKey));
        lua_pushlightuserdata(lua, host.get());
        lua_rawset(lua, LUA_REGISTRYINDEX);
        open_sandbox(lua, host->kind_);
      },
      &error);
  return opened ? std::move(host) : nullptr;
}

LuaHost::~LuaHost() {
  if (lua_ != nullptr) lua_close(lua_);
  budget_.give(granted_);
}

LuaHost& LuaHost::of(lua_State* lua) {
  lua_pushlightuserdata(lua, const_cast<char*>(&kHostKey));
  lua_rawget(lua, LUA_REGISTRYINDEX);
  auto* host = static_cast<LuaHost*>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  return *host;
}

// Runs `body(lua)`, in which Lua errors may be raised. False: one was, usually for lack of memory.
template <typename Body>
bool LuaHost::protect(const Body& body, std::string* error) {
  const int top = lua_gettop(lua_);
  const int failed = lua_cpcall(
      lua_,
      [](lua_State* lua) {
        const auto* called = static_cast<const Body*>(lua_touserdata(lua, 1));
        lua_settop(lua, 0);
        (*called)(lua);
        return 0;
      },
      const_cast<Body*>(&body));
  if (failed != 0) {
    const char* text = lua_tostring(lua_, -1);
    *error = text == nullptr ? "unknown error" : text;
  }
  lua_settop(lua_, top);
  return failed == 0;
}

void LuaHost::give_up(lua_State* lua) {
  given_up_ = true;
  end(lua, "given up");
  std::abort();  // lua_error() does not return
}

int LuaHost::end(lua_State* lua, std::string_view error) {
  over_ = true;
  over_error_ = error;
  return raise_over(lua);
}

int LuaHost::raise_over(lua_State* lua) {
  push_error(lua, over_error_);
  return lua_error(lua);
}

void LuaHost::log(settings::LogLevel level, std::string_view line) {
  constexpr size_t kLinesMax = 1000;  // of one run
  if (lines_.size() < kLinesMax) lines_.emplace_back(level, line.substr(0, kLineBytesMax));
}

void LuaHost::keep_reference(lua_State* lua, std::string_view name) {
  references_->emplace_back(name, luaL_ref(lua, LUA_REGISTRYINDEX));
}

void LuaHost::end_if_due(lua_State* lua) {
  if (over_) raise_over(lua);
  const bool is_late = steady_ms() > ends_ms_;
  if (loading_ != nullptr && is_late) end(lua, "FUNCTION LOAD timeout");
  if (invocation_ == nullptr) return;
  const contract::ScriptRun& run = invocation_->run;
  const bool is_in_vain = (is_dry_ && is_late) || !invocation_->caller.is_wanted();
  if (run.stopped() || is_in_vain) give_up(lua);
  if (run.killed()) end(lua, kKilled);
}

bool LuaHost::make_room(uint64_t bytes) {
  for (const bool again : {false, true}) {
    if (again) lua_gc(lua_, LUA_GCCOLLECT, 0);
    if (used_ + bytes <= granted_) return true;
    if (grant(used_ + bytes)) return true;
  }
  return false;
}

int LuaHost::call_exceeding(lua_State* lua, int arguments) {
  may_exceed_ = true;
  const int failed = lua_pcall(lua, arguments, LUA_MULTRET, 0);
  may_exceed_ = false;
  return failed;
}

void LuaHost::begin() {
  over_ = given_up_ = false;
  resp = 2;
  is_told = true;
  lua_sethook(
      lua_, [](lua_State* lua, lua_Debug*) { of(lua).end_if_due(lua); }, LUA_MASKCOUNT,
      kInstructionsBetweenLooks);
}

void LuaHost::clean_up() {
  // A script may have changed how garbage is collected.
  lua_gc(lua_, LUA_GCRESTART, 0);
  lua_gc(lua_, LUA_GCSETPAUSE, 200);
  lua_gc(lua_, LUA_GCSETSTEPMUL, 200);
  if (used_ > kCollectBytes) lua_gc(lua_, LUA_GCCOLLECT, 0);
  if (granted_ > used_ + kCollectBytes) {
    const uint64_t spare = (granted_ - used_) / kGrantBytes * kGrantBytes;
    budget_.give(spare);
    granted_ -= spare;
  }
  reply.clear();
  if (reply.capacity() > kCollectBytes) reply.shrink_to_fit();
  args.clear();
}

void LuaHost::write_lines() {
  for (const auto& [level, line] : lines_) metrics::log::write(level, line);
  lines_.clear();
}

// Pushes the compiled script; else answers the error, and pushes nothing.
std::string LuaHost::push_script(const Script& script) {
  if (const auto found = compiled_.find(script.sha); found != compiled_.end()) {
    lua_rawgeti(lua_, LUA_REGISTRYINDEX, found->second);
    return {};
  }
  const std::string_view code =
      script.declares ? code_behind_shebang(script.body) : std::string_view(script.body);
  if (load_text(lua_, code, kScriptName) != 0) {
    std::string error = "ERR Error compiling script (new function): ";
    error += lua_tostring(lua_, -1);
    lua_pop(lua_, 1);
    return error;
  }
  if (compiled_.size() >= kCompiledMax) forget_scripts();
  lua_pushvalue(lua_, -1);
  compiled_.emplace(script.sha, luaL_ref(lua_, LUA_REGISTRYINDEX));
  return {};
}

void LuaHost::forget_scripts() {
  for (const auto& [sha, reference] : compiled_) luaL_unref(lua_, LUA_REGISTRYINDEX, reference);
  compiled_.clear();
}

std::string LuaHost::compile(const Script& script) {
  std::string compile_error;
  std::string error;
  if (!protect([&](lua_State*) { compile_error = push_script(script); }, &error)) {
    compile_error = "ERR Error compiling script (new function): " + error;
  }
  clean_up();
  return compile_error;
}

bool LuaHost::run(const Script& script, const Invocation& invocation) {
  begin();
  bool ran = true;
  std::string error;
  const bool went_well = protect(
      [&](lua_State* lua) {
        if (const std::string problem = push_script(script); !problem.empty()) {
          return invocation.reply.error(problem);
        }
        push_strings(lua, invocation.keys);
        set_global(lua, "KEYS");
        push_strings(lua, invocation.argv);
        set_global(lua, "ARGV");
        ran = run_pushed(script.sha, invocation, /*arguments=*/0);
      },
      &error);
  if (!went_well) invocation.reply.error("ERR Error running script " + script.sha + ", " + error);
  clean_up();
  return ran;
}

// On top of the stack: the function and its arguments. False: given up.
bool LuaHost::run_pushed(std::string_view name, const Invocation& invocation, int arguments) {
  push_error_handler(lua_);
  lua_insert(lua_, 1);
  invocation_ = &invocation;
  random = invocation.caller.seed();
  is_dry_ = invocation.caller.place() == contract::CommandCaller::Place::kDry;
  ends_ms_ = steady_ms() + kDryMs;
  const int failed = lua_pcall(lua_, arguments, 1, 1);
  invocation_ = nullptr;
  if (given_up_) {
    lines_.clear();
    return false;
  }
  // From here on a failure would leave half a reply.
  may_exceed_ = true;
  if (failed != 0) {
    // Whatever it has written stays.
    const std::string text = error_text(lua_, name);
    is_counted_error(lua_, -1) ? invocation.reply.repeated_error(text)
                               : invocation.reply.partial_error(text);
  } else if (!reply_value(lua_, resp, invocation.reply_bytes_max, invocation.reply)) {
    invocation.reply.partial_error("ERR Error running script " + std::string(name) +
                                   ", its reply is too large");
  }
  may_exceed_ = false;
  if (is_dry_) lines_.clear();
  write_lines();
  return true;
}

bool LuaHost::run(const Libraries::Found& function, const Invocation& invocation) {
  std::string error;
  auto& loaded = loaded_[function.library->name];
  if (loaded.library != function.library) {
    for (const auto& [name, reference] : loaded.functions) {
      luaL_unref(lua_, LUA_REGISTRYINDEX, reference);
    }
    loaded.functions.clear();
    loaded.library = nullptr;
    references_ = &loaded.functions;
    Library again;
    error = run_library(*function.library, &again);
    if (error.empty()) loaded.library = function.library;
  }
  begin();
  bool ran = true;
  const auto& functions = loaded.functions;
  const bool went_well =
      error.empty() && protect(
                           [&](lua_State* lua) {
                             for (const auto& [name, reference] : functions) {
                               if (name == function.function->name)
                                 lua_rawgeti(lua, LUA_REGISTRYINDEX, reference);
                             }
                             INGOT_CHECK(lua_gettop(lua) == 1);
                             push_strings(lua, invocation.keys);
                             push_strings(lua, invocation.argv);
                             ran = run_pushed(function.function->name, invocation, /*arguments=*/2);
                           },
                           &error);
  if (!went_well) {
    invocation.reply.error("ERR Error running script " + function.function->name + ", " + error);
  }
  clean_up();
  return ran;
}

std::string LuaHost::load(Library* library) {
  Loaded functions;
  references_ = &functions;
  std::string error = run_library(*library, library);
  if (error.empty() && library->functions.empty()) error = "ERR No functions registered";
  for (const auto& [name, reference] : functions) {
    luaL_unref(lua_, LUA_REGISTRYINDEX, reference);
  }
  return error;
}

std::string LuaHost::run_library(const Library& library, Library* told) {
  begin();
  loading_ = told;
  ends_ms_ = steady_ms() + kLoadMs;
  std::string said;
  std::string error;
  const bool went_well = protect(
      [&](lua_State* lua) {
        push_error_handler(lua);
        if (load_text(lua, code_behind_shebang(library.code), kLibraryName) != 0) {
          said = "ERR Error compiling function: " + std::string(lua_tostring(lua, -1));
          return;
        }
        show_globals(lua, /*of_loading=*/true);
        if (lua_pcall(lua, 0, 0, 1) == 0) return;
        const char* text = lua_tostring(lua, -1);
        said =
            "ERR Error registering functions: " +
            (lua_istable(lua, -1) ? field(lua, "err") : std::string(text == nullptr ? "" : text));
      },
      &error);
  if (!went_well) said = "ERR Error registering functions: " + error;
  loading_ = nullptr;
  if (!protect([](lua_State* lua) { show_globals(lua, /*of_loading=*/false); }, &error)) {
    said = "ERR Error registering functions: " + error;
  }
  write_lines();
  clean_up();
  return said;
}

void LuaHost::keep_only(const Libraries& libraries) {
  boost::unordered::erase_if(loaded_, [&](auto& entry) {
    const auto found = libraries.all().find(entry.first);
    if (found != libraries.all().end()) return false;
    for (const auto& [name, reference] : entry.second.functions) {
      luaL_unref(lua_, LUA_REGISTRYINDEX, reference);
    }
    return true;
  });
}

}  // namespace ingot::script
