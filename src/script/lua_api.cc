// The table `redis` of scripts and functions, and the functions of math that draw by chance.
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "src/script/lua_parts.h"

namespace ingot::script {

namespace {

int raise(lua_State* lua, std::string_view text) {
  push_error(lua, text);
  return lua_error(lua);
}

// Reads the arguments of redis.call() and its relatives. False: they are none.
bool read_args(lua_State* lua, LuaHost& host, std::string* numbers) {
  const int count = lua_gettop(lua);
  host.args.clear();
  // Numbers are written here first: none may move what stands before it.
  numbers->reserve(static_cast<size_t>(count) * 32);
  for (int i = 1; i <= count; ++i) {
    if (lua_type(lua, i) == LUA_TNUMBER) {
      // With all digits, unlike lua_tolstring().
      std::array<char, 32> digits;
      const int length = std::snprintf(digits.data(), digits.size(), "%.17g", lua_tonumber(lua, i));
      const size_t begin = numbers->size();
      numbers->append(digits.data(), static_cast<size_t>(length));
      host.args.emplace_back(numbers->data() + begin, static_cast<size_t>(length));
    } else if (lua_type(lua, i) == LUA_TSTRING) {
      size_t bytes = 0;
      const char* text = lua_tolstring(lua, i, &bytes);
      host.args.emplace_back(text, bytes);
    } else {
      return false;
    }
  }
  return true;
}

// Pushes the reply, or what is wrong with the call.
int call_command(lua_State* lua, bool raises) {
  LuaHost& host = LuaHost::of(lua);
  const auto answer = [&](std::string_view error) {
    push_error(lua, error);
    return raises ? lua_error(lua) : 1;
  };
  if (host.over()) return host.raise_over(lua);
  if (lua_gettop(lua) == 0) {
    return answer("Please specify at least one argument for this redis lib call");
  }
  if (host.invocation() == nullptr) {
    return answer("redis.call/pcall can only be called inside a script invocation");
  }
  std::string numbers;
  if (!read_args(lua, host, &numbers)) {
    return answer("Lua redis lib command arguments must be strings or integers");
  }
  const Invocation& invocation = *host.invocation();
  if (invocation.run.killed()) return host.end(lua, kKilled);
  if (invocation.run.stopped()) host.give_up(lua);
  host.reply.clear();
  const bool replied = invocation.caller.call({.args = host.args,
                                               .run = invocation.run,
                                               .resp = host.resp,
                                               .no_writes = invocation.no_writes,
                                               .allow_oom = invocation.allow_oom,
                                               .is_told = host.is_told},
                                              &host.reply);
  if (!replied) {
    if (invocation.run.killed()) return host.end(lua, kKilled);
    host.give_up(lua);
  }
  lua_settop(lua, 0);  // unpack() may have filled the stack
  const bool failed = push_reply(lua, host.reply);
  return failed && raises ? lua_error(lua) : 1;
}

int call(lua_State* lua) {
  return call_command(lua, /*raises=*/true);
}

int pcall(lua_State* lua) {
  return call_command(lua, /*raises=*/false);
}

// status_reply() and error_reply() answer their errors instead of raising them.
bool has_one_string(lua_State* lua) {
  if (lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING) return true;
  push_error(lua, "wrong number or type of arguments");
  return false;
}

std::string_view string_at(lua_State* lua, int index) {
  size_t bytes = 0;
  const char* text = lua_tolstring(lua, index, &bytes);
  return {text, bytes};
}

int error_reply(lua_State* lua) {
  if (!has_one_string(lua)) return 1;
  std::string text = lua_tostring(lua, 1);  // up to a zero byte, as in Redis
  if (!text.starts_with('-')) text.insert(0, "-");
  push_error(lua, text);
  return 1;
}

int status_reply(lua_State* lua) {
  if (!has_one_string(lua)) return 1;
  lua_createtable(lua, 0, 1);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, "ok");
  return 1;
}

int sha1hex(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise(lua, "wrong number of arguments");
  const std::string hex = sha1_hex(lua_isstring(lua, 1) != 0 ? string_at(lua, 1) : "");
  lua_pushlstring(lua, hex.data(), hex.size());
  return 1;
}

constexpr settings::LogLevel kLogLevels[] = {
    settings::LogLevel::kDebug, settings::LogLevel::kVerbose, settings::LogLevel::kNotice,
    settings::LogLevel::kWarning};

int log(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count < 2) return raise(lua, "redis.log() requires two arguments or more.");
  if (lua_isnumber(lua, 1) == 0) return raise(lua, "First argument must be a number (log level).");
  const lua_Number level = lua_tonumber(lua, 1);
  if (!(level >= 0 && level <= 3)) return raise(lua, "Invalid debug level.");
  std::string line;
  for (int i = 2; i <= count; ++i) {
    if (lua_isstring(lua, i) == 0) continue;
    if (i > 2) line += ' ';
    line += string_at(lua, i).substr(0, LuaHost::kLineBytesMax);
    if (line.size() > LuaHost::kLineBytesMax) break;
  }
  LuaHost::of(lua).log(kLogLevels[static_cast<size_t>(level)], line);
  return 0;
}

int setresp(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise(lua, "redis.setresp() requires one argument.");
  const lua_Number version = lua_tonumber(lua, 1);
  if (version != 2 && version != 3) return raise(lua, "RESP version must be 2 or 3.");
  LuaHost::of(lua).resp = static_cast<int>(version);
  return 0;
}

// There is no append-only file; one commit holds all that a script wrote.
constexpr int kToReplicas = 2;

int set_repl(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise(lua, "redis.set_repl() requires two arguments.");
  const auto flags = static_cast<int>(lua_tonumber(lua, 1));
  if ((flags & ~3) != 0) {
    return raise(lua,
                 "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
  }
  LuaHost::of(lua).is_told = (flags & kToReplicas) != 0;
  return 0;
}

int acl_check_cmd(lua_State* lua) {
  LuaHost& host = LuaHost::of(lua);
  if (lua_gettop(lua) == 0) {
    return raise(lua, "Please specify at least one argument for this redis lib call");
  }
  std::string numbers;
  if (!read_args(lua, host, &numbers)) {
    return raise(lua, "redis.acl_check_cmd() command arguments must be strings or integers");
  }
  const std::optional<bool> allowed = host.invocation()->caller.allows(host.args);
  if (!allowed) return raise(lua, "Invalid command passed to redis.acl_check_cmd()");
  lua_pushboolean(lua, *allowed);
  return 1;
}

// There is no debugger: as in Redis when none is attached.
int breakpoint(lua_State* lua) {
  lua_pushboolean(lua, 0);
  return 1;
}

int debug(lua_State*) {
  return 0;
}

int replicate_commands(lua_State* lua) {
  lua_pushboolean(lua, 1);
  return 1;
}

// --- redis.register_function(), of libraries

// The function, on top of the stack, under this name. Takes it off.
int register_named(lua_State* lua, Function function) {
  LuaHost& host = LuaHost::of(lua);
  if (!is_function_name(function.name)) return raise(lua, kBadFunctionName);
  for (const Function& other : host.loading()->functions) {
    if (other.name == function.name) return raise(lua, "Function already exists in the library");
  }
  host.keep_reference(lua, function.name);
  host.loading()->functions.push_back(std::move(function));
  return 0;
}

// The flags in the table on top.
uint32_t read_flags(lua_State* lua) {
  uint32_t flags = 0;
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    if (lua_isnil(lua, -1)) break;
    const uint32_t flag = lua_type(lua, -1) == LUA_TSTRING ? flag_of(string_at(lua, -1)) : 0;
    if (flag == 0) raise(lua, "unknown flag given");
    flags |= flag;
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
  return flags;
}

int register_described(lua_State* lua) {
  Function function;
  bool named = false;
  bool has_callback = false;
  lua_settop(lua, 1);
  lua_pushnil(lua);  // at 2: the callback
  for (lua_pushnil(lua); lua_next(lua, 1) != 0; lua_pop(lua, 1)) {
    const std::string key(lua_type(lua, -2) == LUA_TSTRING ? string_at(lua, -2) : "");
    const bool is_text = lua_isstring(lua, -1) != 0;
    lua_pushvalue(lua, -1);  // so that a number stays one in the table
    if (key == "function_name") {
      if (!is_text) {
        raise(lua, "function_name argument given to redis.register_function must be a string");
      }
      function.name = string_at(lua, -1);
      named = true;
    } else if (key == "description") {
      if (!is_text) {
        raise(lua, "description argument given to redis.register_function must be a string");
      }
      function.description = string_at(lua, -1);
    } else if (key == "callback") {
      if (lua_type(lua, -1) != LUA_TFUNCTION) {
        raise(lua, "callback argument given to redis.register_function must be a function");
      }
      lua_pushvalue(lua, -1);
      lua_replace(lua, 2);
      has_callback = true;
    } else if (key == "flags") {
      if (lua_type(lua, -1) != LUA_TTABLE) {
        raise(lua,
              "flags argument to redis.register_function must be a table representing function "
              "flags");
      }
      function.flags = read_flags(lua);
    } else {
      raise(lua, "unknown argument given to redis.register_function");
    }
    lua_pop(lua, 1);
  }
  if (!named) return raise(lua, "redis.register_function must get a function name argument");
  if (!has_callback) return raise(lua, "redis.register_function must get a callback argument");
  return register_named(lua, std::move(function));
}

int register_function(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count < 1 || count > 2) {
    return raise(lua, "wrong number of arguments to redis.register_function");
  }
  if (LuaHost::of(lua).loading() == nullptr) {
    return raise(lua, "redis.register_function can only be called on FUNCTION LOAD command");
  }
  if (count == 1) {
    if (lua_type(lua, 1) == LUA_TTABLE) return register_described(lua);
    return raise(lua,
                 "calling redis.register_function with a single argument is only applicable to Lua "
                 "table (representing named arguments).");
  }
  if (lua_isstring(lua, 1) == 0) {
    return raise(lua, "first argument to redis.register_function must be a string");
  }
  if (lua_type(lua, 2) != LUA_TFUNCTION) {
    return raise(lua, "second argument to redis.register_function must be a function");
  }
  Function function;
  function.name = string_at(lua, 1);
  return register_named(lua, std::move(function));
}

struct NamedFunction {
  const char* name;
  lua_CFunction function;
};
constexpr NamedFunction kForAll[] = {
    {"call", call},
    {"pcall", pcall},
    {"error_reply", error_reply},
    {"status_reply", status_reply},
    {"sha1hex", sha1hex},
    {"log", log},
    {"setresp", setresp},
    {"set_repl", set_repl},
    {"acl_check_cmd", acl_check_cmd},
};
constexpr NamedFunction kForScripts[] = {
    {"breakpoint", breakpoint}, {"debug", debug}, {"replicate_commands", replicate_commands}};

struct NamedNumber {
  const char* name;
  int value;
};
constexpr NamedNumber kReplication[] = {{"REPL_NONE", 0},
                                        {"REPL_AOF", 1},
                                        {"REPL_SLAVE", kToReplicas},
                                        {"REPL_REPLICA", kToReplicas},
                                        {"REPL_ALL", 3}};

void set_function(lua_State* lua, const NamedFunction& named) {
  lua_pushcfunction(lua, named.function);
  lua_setfield(lua, -2, named.name);
}

void set_number(lua_State* lua, const char* name, int value) {
  lua_pushinteger(lua, value);
  lua_setfield(lua, -2, name);
}

// What loading may use, too.
void set_constants(lua_State* lua) {
  constexpr const char* kLevels[] = {"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"};
  for (int level = 0; level < 4; ++level) set_number(lua, kLevels[level], level);
  // Scripts choose what they do by the version of Redis.
  lua_pushliteral(lua, "7.0.15");
  lua_setfield(lua, -2, "REDIS_VERSION");
  set_number(lua, "REDIS_VERSION_NUM", 0x0007000F);
}

}  // namespace

void push_api(lua_State* lua, LuaHost::Kind kind) {
  lua_newtable(lua);
  for (const NamedFunction& named : kForAll) set_function(lua, named);
  if (kind == LuaHost::Kind::kScripts) {
    for (const NamedFunction& named : kForScripts) set_function(lua, named);
  }
  for (const auto& [name, value] : kReplication) set_number(lua, name, value);
  set_constants(lua);
}

void push_loading_api(lua_State* lua) {
  lua_newtable(lua);
  set_function(lua, {"register_function", register_function});
  set_function(lua, {"log", log});
  set_constants(lua);
}

// The numbers of Redis' generator: lrand48() of POSIX.
int draw_random(lua_State* lua) {
  uint64_t& state = LuaHost::of(lua).random;
  constexpr uint64_t kMask = (uint64_t{1} << 48) - 1;
  state = (state * 0x5DEECE66D + 0xB) & kMask;
  constexpr auto kMax = static_cast<lua_Number>(0x7FFFFFFF);
  const lua_Number drawn = std::fmod(static_cast<lua_Number>(state >> 17), kMax) / kMax;
  switch (lua_gettop(lua)) {
    case 0:
      lua_pushnumber(lua, drawn);
      return 1;
    case 1: {
      const int upper = luaL_checkint(lua, 1);
      luaL_argcheck(lua, 1 <= upper, 1, "interval is empty");
      lua_pushnumber(lua, std::floor(drawn * upper) + 1);
      return 1;
    }
    case 2: {
      const int lower = luaL_checkint(lua, 1);
      const int upper = luaL_checkint(lua, 2);
      luaL_argcheck(lua, lower <= upper, 2, "interval is empty");
      lua_pushnumber(lua, std::floor(drawn * (upper - lower + 1)) + lower);
      return 1;
    }
    default:
      return luaL_error(lua, "wrong number of arguments");
  }
}

int seed_random(lua_State* lua) {
  const auto seed = static_cast<uint32_t>(luaL_checkint(lua, 1));
  LuaHost::of(lua).random = (static_cast<uint64_t>(seed) << 16) + 0x330E;
  return 0;
}

}  // namespace ingot::script
