// The parts of a Lua host that stand in files of their own. All of them run inside a protected
// call: they raise Lua errors.
#pragma once

#include <cstdint>
#include <lua5.1/lua.hpp>
#include <string_view>

#include "src/contract/reply.h"
#include "src/script/lua_host.h"

namespace ingot::script {

inline constexpr char kKilled[] = "Script killed by user with SCRIPT KILL...";

// lua_sandbox.cc: the globals, which nobody can change. Leaves nothing on the stack.
void open_sandbox(lua_State* lua, LuaHost::Kind kind);
// Makes what stands on top a global all the same, and takes it off.
void set_global(lua_State* lua, const char* name);
// Of a host for functions: while a library is loaded it sees little.
void show_globals(lua_State* lua, bool of_loading);
// Pushes the function that completes errors with the place where they happened.
void push_error_handler(lua_State* lua);
// As luaL_loadbuffer(), but never byte code, which nobody checks.
int load_text(lua_State* lua, std::string_view code, const char* name);

// lua_guards.cc: replaces what must not be called as it is.
void guard_libraries(lua_State* lua);

// lua_api.cc: pushes the table `redis`; for loading, that of libraries.
void push_api(lua_State* lua, LuaHost::Kind kind);
void push_loading_api(lua_State* lua);
int draw_random(lua_State* lua);  // math.random()
int seed_random(lua_State* lua);  // math.randomseed()

// lua_replies.cc: pushes what an encoded reply, complete, is for Lua. True when it is an error.
bool push_reply(lua_State* lua, std::string_view encoded);
// Pushes {err = ...}; `text` as "-CODE message", or a message without a code.
void push_error(lua_State* lua, std::string_view text);
// Whether the value is an error that a command has told.
bool is_counted_error(lua_State* lua, int index);
// Replies with the value on top. False, and nothing was replied, if that is more than `bytes_max`.
bool reply_value(lua_State* lua, int resp, uint64_t bytes_max, contract::ReplySink& reply);

// lua_cmsgpack.cc, lua_struct.cc: push the tables of these libraries.
void push_cmsgpack(lua_State* lua);
void push_struct(lua_State* lua);

}  // namespace ingot::script
