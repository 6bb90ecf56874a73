// What scripts find in their global variables, and why they cannot change it.
//
// Lua 5.1 has no tables that are read-only. So scripts see empty tables in the place of the real
// ones: reads go through to them, writes are refused, and the few functions that pass by metatables
// (next, rawget, rawset ...) are replaced by ones that know of it. Nothing hands out a real table.
#include <array>
#include <string>

#include "src/script/lua_parts.h"

extern "C" {
#include <lua5.1/lua-bitop.h>
#include <lua5.1/lua-cjson.h>
}

namespace ingot::script {

namespace {

// Keys of the registry, by their addresses.
const char kRealTables = 0;       // proxy -> the table behind it
const char kShownMetatables = 0;  // proxy or "" -> what getmetatable() answers
const char kGlobals = 0;          // the real table of globals
const char kLoadingGlobals = 0;
const char kGlobalsProxy = 0;

// The compiler counts the signs of long brackets in an int.
constexpr size_t kCodeBytesMax = size_t{1} << 29;
constexpr char kCodeTooLong[] = "chunk has too many bytes";

constexpr char kReadOnly[] = "Attempt to modify a readonly table";

void push_registered(lua_State* lua, const char& key) {
  lua_pushlightuserdata(lua, const_cast<char*>(&key));
  lua_rawget(lua, LUA_REGISTRYINDEX);
}

// Registers what stands on top, and takes it off.
void set_registered(lua_State* lua, const char& key) {
  lua_pushlightuserdata(lua, const_cast<char*>(&key));
  lua_insert(lua, -2);
  lua_rawset(lua, LUA_REGISTRYINDEX);
}

// Pushes the table behind the proxy at `index`; nothing and false when it is no proxy.
bool push_real(lua_State* lua, int index) {
  if (lua_type(lua, index) != LUA_TTABLE) return false;
  push_registered(lua, kRealTables);
  lua_pushvalue(lua, index);
  lua_rawget(lua, -2);
  lua_remove(lua, -2);
  if (!lua_isnil(lua, -1)) return true;
  lua_pop(lua, 1);
  return false;
}

int refuse_write(lua_State* lua) {
  return luaL_error(lua, kReadOnly);
}

int refuse_unknown(lua_State* lua) {
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    lua_tostring(lua, 2));
}

// Replaces the table on top by one through which it can only be read.
void protect_top(lua_State* lua) {
  const int real = lua_gettop(lua);
  lua_newtable(lua);
  const int proxy = real + 1;
  lua_newtable(lua);
  lua_pushvalue(lua, real);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, refuse_write);
  lua_setfield(lua, -2, "__newindex");
  lua_setmetatable(lua, proxy);
  push_registered(lua, kRealTables);
  lua_pushvalue(lua, proxy);
  lua_pushvalue(lua, real);
  lua_rawset(lua, -3);
  lua_pop(lua, 1);
  lua_remove(lua, real);
}

// What getmetatable() answers for the value below the table on top, which it takes off.
void show_metatable(lua_State* lua) {
  protect_top(lua);
  push_registered(lua, kShownMetatables);
  lua_pushvalue(lua, -3);
  lua_pushvalue(lua, -3);
  lua_rawset(lua, -3);
  lua_pop(lua, 2);
}

// --- functions that pass by metatables; upvalue 1 is the one of Lua

int call_original(lua_State* lua) {
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

int with_real_table(lua_State* lua) {
  if (push_real(lua, 1)) lua_replace(lua, 1);
  return call_original(lua);
}

int with_own_table(lua_State* lua) {
  if (push_real(lua, 1)) {
    lua_pushstring(lua, kReadOnly);
    return lua_error(lua);
  }
  return call_original(lua);
}

int pairs(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_getfield(lua, LUA_GLOBALSINDEX, "next");
  lua_pushvalue(lua, 1);
  lua_pushnil(lua);
  return 3;
}

int get_metatable(lua_State* lua) {
  luaL_checkany(lua, 1);
  push_registered(lua, kShownMetatables);
  if (lua_type(lua, 1) == LUA_TSTRING) {
    lua_pushliteral(lua, "");
  } else {
    lua_pushvalue(lua, 1);
  }
  if (!lua_isnil(lua, -1)) {
    lua_rawget(lua, -2);
    if (!lua_isnil(lua, -1)) return 1;
  }
  if (push_real(lua, 1)) {
    lua_pushnil(lua);
    return 1;
  }
  lua_settop(lua, 1);
  return call_original(lua);
}

// --- functions that catch errors: not that which ends a run

int rethrow_if_over(lua_State* lua, int results) {
  LuaHost& host = LuaHost::of(lua);
  return host.over() ? host.raise_over(lua) : results;
}

// As Lua's, but an error of redis.call() is told as its text.
int protected_call(lua_State* lua) {
  luaL_checkany(lua, 1);
  const int failed = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0);
  if (failed != 0) {
    rethrow_if_over(lua, 0);
    if (lua_istable(lua, -1)) {
      lua_getfield(lua, -1, "err");
      if (!lua_isstring(lua, -1)) lua_pop(lua, 1);
    }
    lua_pushboolean(lua, 0);
    lua_pushvalue(lua, -2);
    return 2;
  }
  lua_pushboolean(lua, 1);
  lua_insert(lua, 1);
  return lua_gettop(lua);
}

// No handler is called once the run is over: hooks do not fire in it, so it might never end.
int handle_unless_over(lua_State* lua) {
  if (LuaHost::of(lua).over()) return 1;
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, 1, 1);
  return 1;
}

int handled_call(lua_State* lua) {
  luaL_checkany(lua, 2);
  lua_settop(lua, 2);
  lua_pushcclosure(lua, handle_unless_over, 1);
  lua_insert(lua, 1);
  const int failed = lua_pcall(lua, 0, LUA_MULTRET, 1);
  if (failed != 0) rethrow_if_over(lua, 0);
  lua_pushboolean(lua, failed == 0);
  lua_replace(lua, 1);
  return lua_gettop(lua);
}

// Coroutines count their instructions for themselves: very many short ones would never be looked
// at.
int resume(lua_State* lua) {
  LuaHost::of(lua).end_if_due(lua);
  return rethrow_if_over(lua, call_original(lua));
}

// Resumes upvalue 2, by Lua's resume(), and raises its error.
int resume_wrapped(lua_State* lua) {
  lua_pushvalue(lua, lua_upvalueindex(2));
  lua_insert(lua, 1);
  const int results = resume(lua);
  if (lua_toboolean(lua, -results) != 0) return results - 1;
  if (lua_isstring(lua, -1) != 0) {
    luaL_where(lua, 1);
    lua_insert(lua, -2);
    lua_concat(lua, 2);
  }
  return lua_error(lua);
}

// coroutine.wrap(); upvalue 1 is Lua's resume(), 2 its create().
int wrap(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  lua_settop(lua, 1);
  lua_pushvalue(lua, lua_upvalueindex(2));
  lua_insert(lua, 1);
  lua_call(lua, 1, 1);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, -2);
  lua_pushcclosure(lua, resume_wrapped, 2);
  return 1;
}

int load_string(lua_State* lua) {
  size_t bytes = 0;
  const char* code = luaL_checklstring(lua, 1, &bytes);
  const char* name = luaL_optstring(lua, 2, code);
  if (load_text(lua, {code, bytes}, name) == 0) return 1;
  lua_pushnil(lua);
  lua_insert(lua, -2);
  return 2;
}

struct Pieces {
  size_t bytes = 0;  // of all so far
  std::string piece = {};
};

// The next piece of the code that the function at index 1 gives.
const char* next_piece(lua_State* lua, void* state, size_t* bytes) {
  auto& pieces = *static_cast<Pieces*>(state);
  luaL_checkstack(lua, 2, "too many nested functions");
  lua_pushvalue(lua, 1);
  lua_call(lua, 0, 1);
  *bytes = 0;
  if (lua_isnil(lua, -1)) return nullptr;
  if (!lua_isstring(lua, -1)) luaL_error(lua, "reader function must return a string");
  const char* text = lua_tolstring(lua, -1, bytes);
  if (*bytes > kCodeBytesMax - pieces.bytes) luaL_error(lua, kCodeTooLong);
  pieces.piece.assign(text, *bytes);
  lua_pop(lua, 1);
  // The compiler refuses what begins so, behind a blank.
  if (pieces.bytes == 0 && pieces.piece.starts_with(LUA_SIGNATURE[0])) pieces.piece.insert(0, " ");
  *bytes = pieces.piece.size();
  pieces.bytes += *bytes;
  return pieces.piece.data();
}

int load(lua_State* lua) {
  const char* given = luaL_optstring(lua, 2, "=(load)");
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  // At 2 for as long as the compiler needs it, as in load_text().
  lua_settop(lua, 2);
  lua_pushstring(lua, given);
  lua_replace(lua, 2);
  const char* name = lua_tostring(lua, 2);
  Pieces pieces;
  const int failed = lua_load(lua, next_piece, &pieces, name);
  if (failed == 0) return 1;
  rethrow_if_over(lua, 0);
  lua_pushnil(lua);
  lua_insert(lua, -2);
  return 2;
}

// "ERR " and the value at index 1, as tostring() has it.
void push_described(lua_State* lua) {
  lua_pushliteral(lua, "ERR ");
  if (luaL_callmeta(lua, 1, "__tostring") == 0) {
    if (lua_isstring(lua, 1)) {
      lua_pushvalue(lua, 1);
    } else if (lua_isboolean(lua, 1)) {
      lua_pushstring(lua, lua_toboolean(lua, 1) != 0 ? "true" : "false");
    } else if (lua_isnil(lua, 1)) {
      lua_pushliteral(lua, "nil");
    } else {
      lua_pushfstring(lua, "%s: %p", luaL_typename(lua, 1), lua_topointer(lua, 1));
    }
  }
  lua_concat(lua, 2);
}

// Completes an error by the place of the nearest function that is written in Lua.
int complete_error(lua_State* lua) {
  lua_settop(lua, 1);
  lua_Debug at{};
  bool found = lua_getstack(lua, 1, &at) != 0 && lua_getinfo(lua, "nSl", &at) != 0;
  if (found && std::string_view(at.what) == "C") {
    found = lua_getstack(lua, 2, &at) != 0 && lua_getinfo(lua, "nSl", &at) != 0;
  }
  // In one of the read-only tables it would stay for all scripts to come. In Redis that is an error
  // of the handler's own.
  if (push_real(lua, 1)) {
    lua_settop(lua, 0);
    lua_pushfstring(lua, "err_handler_def:10: %s", kReadOnly);
    at.source = "@err_handler_def";
    at.currentline = 10;
  }
  if (lua_type(lua, 1) != LUA_TTABLE) {
    lua_newtable(lua);
    push_described(lua);
    lua_setfield(lua, -2, "err");
    lua_replace(lua, 1);
  }
  if (found) {
    lua_pushliteral(lua, "source");
    lua_pushstring(lua, at.source);
    lua_rawset(lua, 1);
    lua_pushliteral(lua, "line");
    lua_pushinteger(lua, at.currentline);
    lua_rawset(lua, 1);
  }
  return 1;
}

struct Replaced {
  const char* library;  // null: global
  const char* name;
  lua_CFunction by;  // gets the one of Lua as its upvalue
};
constexpr Replaced kReplaced[] = {
    {nullptr, "next", with_real_table},
    {nullptr, "rawget", with_real_table},
    {"table", "foreach", with_real_table},
    {nullptr, "rawset", with_own_table},
    {nullptr, "setmetatable", with_own_table},
    {"table", "insert", with_own_table},
    {nullptr, "pairs", pairs},
    {nullptr, "getmetatable", get_metatable},
    {nullptr, "pcall", protected_call},
    {nullptr, "xpcall", handled_call},
    {"coroutine", "resume", resume},
    {nullptr, "loadstring", load_string},
    {nullptr, "load", load},
    {"math", "random", draw_random},
    {"math", "randomseed", seed_random},
};

constexpr const char* kRemoved[] = {"dofile", "loadfile", "module",  "newproxy",
                                    "print",  "require",  "getfenv", "setfenv"};

void replace_functions(lua_State* lua) {
  lua_getglobal(lua, "coroutine");
  lua_getfield(lua, -1, "resume");
  lua_getfield(lua, -2, "create");
  lua_pushcclosure(lua, wrap, 2);
  lua_setfield(lua, -2, "wrap");
  lua_pop(lua, 1);
  for (const Replaced& replaced : kReplaced) {
    if (replaced.library == nullptr) {
      lua_pushvalue(lua, LUA_GLOBALSINDEX);
    } else {
      lua_getglobal(lua, replaced.library);
    }
    lua_getfield(lua, -1, replaced.name);
    lua_pushcclosure(lua, replaced.by, 1);
    lua_setfield(lua, -2, replaced.name);
    lua_pop(lua, 1);
  }
  for (const char* name : kRemoved) {
    lua_pushnil(lua);
    lua_setglobal(lua, name);
  }
}

void open_libraries(lua_State* lua) {
  constexpr std::array<std::pair<const char*, lua_CFunction>, 6> kLibraries = {{
      {"", luaopen_base},
      {LUA_STRLIBNAME, luaopen_string},
      {LUA_TABLIBNAME, luaopen_table},
      {LUA_MATHLIBNAME, luaopen_math},
      {"cjson", luaopen_cjson},
      {"bit", luaopen_bit},
  }};
  for (const auto& [name, open] : kLibraries) {
    lua_pushcfunction(lua, open);
    lua_pushstring(lua, name);
    lua_call(lua, 1, 1);
    if (*name != '\0') {
      lua_setglobal(lua, name);
    } else {
      lua_pop(lua, 1);
    }
  }
  push_cmsgpack(lua);
  lua_setglobal(lua, "cmsgpack");
  push_struct(lua);
  lua_setglobal(lua, "struct");
}

void new_registered_table(lua_State* lua, const char& key) {
  lua_newtable(lua);
  set_registered(lua, key);
}

// Names that are not there are refused, in the table on top.
void refuse_unknown_names(lua_State* lua) {
  lua_newtable(lua);
  lua_pushcfunction(lua, refuse_unknown);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, -2);
}

}  // namespace

int load_text(lua_State* lua, std::string_view code, const char* name) {
  if (code.size() > kCodeBytesMax) {
    lua_pushstring(lua, kCodeTooLong);
    return LUA_ERRSYNTAX;
  }
  const bool is_text = !code.starts_with(LUA_SIGNATURE[0]);
  const std::string refused = is_text ? "" : " " + std::string(code);
  if (!is_text) code = refused;
  lua_pushstring(lua, name);  // which the compiler would not keep from being collected
  const int failed = luaL_loadbuffer(lua, code.data(), code.size(), lua_tostring(lua, -1));
  lua_remove(lua, -2);
  return failed;
}

void push_error_handler(lua_State* lua) {
  lua_pushcfunction(lua, complete_error);
}

void set_global(lua_State* lua, const char* name) {
  push_registered(lua, kGlobals);
  lua_insert(lua, -2);
  lua_setfield(lua, -2, name);
  lua_pop(lua, 1);
}

void show_globals(lua_State* lua, bool of_loading) {
  push_registered(lua, kGlobalsProxy);
  lua_getmetatable(lua, -1);
  push_registered(lua, of_loading ? kLoadingGlobals : kGlobals);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 2);
}

void open_sandbox(lua_State* lua, LuaHost::Kind kind) {
  new_registered_table(lua, kRealTables);
  new_registered_table(lua, kShownMetatables);
  open_libraries(lua);
  guard_libraries(lua);
  replace_functions(lua);
  push_api(lua, kind);
  lua_setglobal(lua, "redis");
  if (kind == LuaHost::Kind::kScripts) {
    push_error_handler(lua);
    lua_setglobal(lua, "__redis__err__handler");
  }
  for (const char* name :
       {"bit", "cjson", "cmsgpack", "coroutine", "math", "redis", "string", "struct", "table"}) {
    lua_getglobal(lua, name);
    protect_top(lua);
    lua_setglobal(lua, name);
  }
  lua_pushliteral(lua, "");
  lua_newtable(lua);
  lua_getglobal(lua, "string");
  lua_setfield(lua, -2, "__index");
  show_metatable(lua);
  lua_pop(lua, 1);

  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  lua_pushvalue(lua, -1);
  set_registered(lua, kGlobals);
  refuse_unknown_names(lua);
  protect_top(lua);
  lua_newtable(lua);
  lua_pushcfunction(lua, refuse_unknown);
  lua_setfield(lua, -2, "__index");
  show_metatable(lua);
  lua_pushvalue(lua, -1);
  lua_setglobal(lua, "_G");
  lua_pushvalue(lua, -1);
  set_registered(lua, kGlobalsProxy);
  lua_replace(lua, LUA_GLOBALSINDEX);
  if (kind == LuaHost::Kind::kScripts) return;

  lua_newtable(lua);
  push_loading_api(lua);
  refuse_unknown_names(lua);
  protect_top(lua);
  lua_setfield(lua, -2, "redis");
  refuse_unknown_names(lua);
  set_registered(lua, kLoadingGlobals);
}

}  // namespace ingot::script
