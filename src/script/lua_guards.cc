// Guards around functions of Debian's Lua, cjson and bitop that a script could use to end the
// process: unpack() and bit.tohex() calculate past the ends of their numbers, patterns recurse as
// deep as they are complex, and cjson takes memory that no budget counts, and loses it when there
// is no more.
#include <algorithm>
#include <climits>
#include <cmath>
#include <string>
#include <string_view>

#include "src/script/lua_parts.h"

namespace ingot::script {

namespace {

int unpack(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const int64_t first = luaL_optint(lua, 2, 1);
  const int64_t last =
      lua_isnoneornil(lua, 3) ? static_cast<int64_t>(lua_objlen(lua, 1)) : luaL_checkint(lua, 3);
  if (first > last) return 0;
  const int64_t count = last - first + 1;
  if (count >= INT_MAX || lua_checkstack(lua, static_cast<int>(count)) == 0) {
    return luaL_error(lua, "too many results to unpack");
  }
  for (int64_t i = first; i <= last; ++i) lua_rawgeti(lua, 1, static_cast<int>(i));
  return static_cast<int>(count);
}

int tohex(lua_State* lua) {
  constexpr lua_Number kDigitsMax = 8;
  if (lua_isnumber(lua, 2) != 0) {  // or a string that is one
    lua_pushnumber(lua, std::clamp(lua_tonumber(lua, 2), -kDigitsMax, kDigitsMax));
    lua_replace(lua, 2);
  }
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

// Nothing, repeated two thousand million times, takes seconds.
int repeat(lua_State* lua) {
  size_t bytes = 0;
  luaL_checklstring(lua, 1, &bytes);
  if (bytes > 0) return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
  luaL_checkint(lua, 2);
  lua_pushliteral(lua, "");
  return 1;
}

// Of find, match, gmatch and gsub. Each of the signs that are counted may cost a call of C.
int with_simple_pattern(lua_State* lua) {
  constexpr size_t kSignsMax = 5000;
  if (lua_type(lua, 2) == LUA_TSTRING && lua_objlen(lua, 2) > kSignsMax) {
    size_t bytes = 0;
    const char* text = lua_tolstring(lua, 2, &bytes);
    const auto is_sign = [](char c) {
      return std::string_view("?*+-()").find(c) != std::string_view::npos;
    };
    const auto signs = std::ranges::count_if(std::string_view(text, bytes), is_sign);
    if (static_cast<size_t>(signs) > kSignsMax) return luaL_error(lua, "pattern too complex");
  }
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

// --- cjson. Upvalue 1 is its function, 2 its encode_sparse_array(), 3 its encode_max_depth().

// How long the JSON of a value will be, at least; counted no further than `max`.
class JsonLength {
 public:
  JsonLength(lua_State* lua, uint64_t max) : lua_(lua), max_(max) {
    lua_pushvalue(lua_, lua_upvalueindex(3));
    lua_call(lua_, 0, 1);
    depth_left_ = lua_tointeger(lua_, -1);
    lua_pop(lua_, 1);
  }

  // Of the value on top, which stays.
  void add() {
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        return add_string();
      case LUA_TTABLE:
        --depth_left_;
        add_table();
        ++depth_left_;
        return;
      default:
        bytes_ += kOtherBytes;
    }
  }

  bool is_too_long() const { return bytes_ > max_; }

 private:
  static constexpr uint64_t kOtherBytes = 16;

  void add_string() {
    size_t bytes = 0;
    const char* text = lua_tolstring(lua_, -1, &bytes);
    bytes_ += bytes + 2;
    for (const char c : std::string_view(text, bytes)) {
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') bytes_ += 5;
      if (c == '"' || c == '\\' || c == '/') bytes_ += 1;
    }
  }

  void add_table() {
    // cjson ends there. A table in itself would never end.
    is_refused_ = is_refused_ || depth_left_ < 0;
    if (is_refused_) return;
    if (lua_checkstack(lua_, 8) == 0) luaL_error(lua_, "Cannot serialise, excessive depth");
    uint64_t count = 0;
    lua_Number largest = 0;
    bool all_indexes = true;
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      ++count;
      add();
      lua_pop(lua_, 1);
      if (lua_type(lua_, -1) == LUA_TSTRING) add_string();
      const lua_Number key = lua_type(lua_, -1) == LUA_TNUMBER ? lua_tonumber(lua_, -1) : 0;
      all_indexes = all_indexes && key >= 1 && std::floor(key) == key;
      largest = std::max(largest, key);
      ++bytes_;
      if (!is_too_long() && !is_refused_) continue;
      lua_pop(lua_, 1);
      return;
    }
    if (all_indexes && fills_holes(static_cast<lua_Number>(count), largest)) {
      constexpr lua_Number kNullBytes = 5;
      bytes_ +=
          static_cast<uint64_t>(std::min(largest * kNullBytes, static_cast<lua_Number>(max_) + 1));
    }
  }

  // Whether an array of so many elements up to this index is written with all that it lacks.
  bool fills_holes(lua_Number count, lua_Number largest) {
    if (largest <= count) return false;
    lua_pushvalue(lua_, lua_upvalueindex(2));
    lua_call(lua_, 0, 3);
    const lua_Number ratio = lua_tonumber(lua_, -2);
    const lua_Number safe = lua_tonumber(lua_, -1);
    lua_pop(lua_, 3);
    return !(ratio > 0 && largest > count * ratio && largest > safe);
  }

  lua_State* lua_;
  const uint64_t max_;
  lua_Integer depth_left_ = 0;
  bool is_refused_ = false;
  uint64_t bytes_ = 0;
};

// What the values of a JSON text take in Lua, about, and not less.
uint64_t decoded_bytes(std::string_view json) {
  constexpr uint64_t kTableBytes = 64;
  constexpr uint64_t kElementBytes = 32;  // an array has room for twice as many
  constexpr uint64_t kFieldBytes = 80;    // and so has a hash
  constexpr uint64_t kStringBytes = 40;
  uint64_t bytes = json.size();  // the strings' own
  std::string open;              // the brackets around
  for (size_t at = 0; at < json.size(); ++at) {
    switch (json[at]) {
      case '"':
        bytes += kStringBytes;
        for (++at; at < json.size() && json[at] != '"'; ++at) at += json[at] == '\\';
        break;
      case '[':
      case '{':
        bytes += kTableBytes + kElementBytes;
        open += json[at];
        break;
      case ']':
      case '}':
        if (!open.empty()) open.pop_back();
        break;
      case ',':
        if (open.ends_with('[')) bytes += kElementBytes;
        break;
      case ':':
        bytes += kFieldBytes;
        break;
      default:
        break;
    }
  }
  return bytes;
}

// Calls upvalue 1 with all arguments. Its errors are told at the place of the caller. When Lua has
// no memory for it, it loses its own: so Lua always has.
int call_placed(lua_State* lua) {
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  const int failed = LuaHost::of(lua).call_exceeding(lua, lua_gettop(lua) - 1);
  if (failed == 0) return lua_gettop(lua);
  luaL_where(lua, 1);
  lua_insert(lua, -2);
  lua_concat(lua, 2);
  return lua_error(lua);
}

int encode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  LuaHost& host = LuaHost::of(lua);
  JsonLength length(lua, host.bytes_max());
  length.add();
  if (length.is_too_long()) return luaL_error(lua, "not enough memory");
  const int results = call_placed(lua);
  // The buffer of cjson stays as large as its longest text was.
  host.note_buffer(lua_objlen(lua, -1));
  return results;
}

int decode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  size_t bytes = 0;
  const char* text = luaL_checklstring(lua, 1, &bytes);
  if (!LuaHost::of(lua).make_room(decoded_bytes({text, bytes}))) {
    return luaL_error(lua, "not enough memory");
  }
  return call_placed(lua);
}

// Guards the cjson on top.
void guard_cjson(lua_State* lua) {
  constexpr luaL_Reg kGuards[] = {{"encode", encode}, {"decode", decode}};
  for (const auto& [name, guard] : kGuards) {
    lua_getfield(lua, -1, name);
    lua_getfield(lua, -2, "encode_sparse_array");
    lua_getfield(lua, -3, "encode_max_depth");
    lua_pushcclosure(lua, guard, 3);
    lua_setfield(lua, -2, name);
  }
}

int new_cjson(lua_State* lua) {
  const int results = lua_tocfunction(lua, lua_upvalueindex(1))(lua);
  guard_cjson(lua);
  return results;
}

struct Guarded {
  const char* library;
  const char* name;
  lua_CFunction by;  // gets the one that it guards as its upvalue
};
constexpr Guarded kGuarded[] = {
    {"bit", "tohex", tohex},
    {"string", "rep", repeat},
    {"string", "find", with_simple_pattern},
    {"string", "match", with_simple_pattern},
    {"string", "gmatch", with_simple_pattern},
    {"string", "gfind", with_simple_pattern},
    {"string", "gsub", with_simple_pattern},
    {"cjson", "new", new_cjson},
};

}  // namespace

void guard_libraries(lua_State* lua) {
  for (const Guarded& guarded : kGuarded) {
    lua_getglobal(lua, guarded.library);
    lua_getfield(lua, -1, guarded.name);
    lua_pushcclosure(lua, guarded.by, 1);
    lua_setfield(lua, -2, guarded.name);
    lua_pop(lua, 1);
  }
  lua_getglobal(lua, "cjson");
  guard_cjson(lua);
  lua_pop(lua, 1);
  lua_pushcfunction(lua, unpack);
  lua_setglobal(lua, "unpack");
}

}  // namespace ingot::script
