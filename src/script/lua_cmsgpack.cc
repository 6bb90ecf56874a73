// The library cmsgpack of scripts: MessagePack as https://github.com/msgpack/msgpack specifies it,
// with the choices of Redis' library: no binary and no extension types, numbers as short as they
// can be, tables of 1..n as arrays, nil for what cannot be said and for what is nested too deep.
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/script/lua_parts.h"

namespace ingot::script {

namespace {

constexpr int kNestedMax = 16;

class Packer {
 public:
  explicit Packer(lua_State* lua) : lua_(lua), bytes_max_(LuaHost::of(lua).bytes_max()) {}

  // Takes the value on top off the stack.
  void pack(int depth) {
    luaL_checkstack(lua_, 5, "in function cmsgpack.pack");
    if (out_.size() > bytes_max_) luaL_error(lua_, "not enough memory");
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        pack_string();
        break;
      case LUA_TBOOLEAN:
        put(lua_toboolean(lua_, -1) != 0 ? 0xc3 : 0xc2);
        break;
      case LUA_TNUMBER:
        pack_number(lua_tonumber(lua_, -1));
        break;
      case LUA_TTABLE:
        depth == kNestedMax ? put(0xc0) : pack_table(depth);
        break;
      default:
        put(0xc0);
    }
    lua_pop(lua_, 1);
  }

  const std::string& bytes() const { return out_; }

 private:
  void put(unsigned byte) { out_ += static_cast<char>(byte); }

  template <std::unsigned_integral Number>
  void put_big_endian(unsigned type, Number number) {
    put(type);
    for (int shift = static_cast<int>(sizeof(Number)) * 8 - 8; shift >= 0; shift -= 8) {
      put(static_cast<unsigned>(number >> shift) & 0xff);
    }
  }

  void pack_string() {
    size_t bytes = 0;
    const char* text = lua_tolstring(lua_, -1, &bytes);
    if (bytes < 32) {
      put(0xa0 | static_cast<unsigned>(bytes));
    } else if (bytes <= UINT8_MAX) {
      put_big_endian(0xd9, static_cast<uint8_t>(bytes));
    } else if (bytes <= UINT16_MAX) {
      put_big_endian(0xda, static_cast<uint16_t>(bytes));
    } else {
      put_big_endian(0xdb, static_cast<uint32_t>(bytes));
    }
    out_.append(text, bytes);
  }

  void pack_number(lua_Number number) {
    constexpr lua_Number kLimit = 9223372036854775808.0;
    if (number >= -kLimit && number < kLimit && std::trunc(number) == number) {
      return pack_integer(static_cast<int64_t>(number));
    }
    if (const auto single = static_cast<float>(number); static_cast<lua_Number>(single) == number) {
      return put_big_endian(0xca, std::bit_cast<uint32_t>(single));
    }
    put_big_endian(0xcb, std::bit_cast<uint64_t>(number));
  }

  void pack_integer(int64_t number) {
    const auto bits = static_cast<uint64_t>(number);
    if (number >= 0) {
      if (bits < 128) return put(static_cast<unsigned>(bits));
      if (bits <= UINT8_MAX) return put_big_endian(0xcc, static_cast<uint8_t>(bits));
      if (bits <= UINT16_MAX) return put_big_endian(0xcd, static_cast<uint16_t>(bits));
      if (bits <= UINT32_MAX) return put_big_endian(0xce, static_cast<uint32_t>(bits));
      return put_big_endian(0xcf, bits);
    }
    if (number >= -32) return put(static_cast<unsigned>(bits & 0xff));
    if (number >= INT8_MIN) return put_big_endian(0xd0, static_cast<uint8_t>(bits));
    if (number >= INT16_MIN) return put_big_endian(0xd1, static_cast<uint16_t>(bits));
    if (number >= INT32_MIN) return put_big_endian(0xd2, static_cast<uint32_t>(bits));
    put_big_endian(0xd3, bits);
  }

  void put_count(uint64_t count, unsigned short_type, unsigned type16) {
    if (count < 16) return put(short_type | static_cast<unsigned>(count));
    if (count <= UINT16_MAX) return put_big_endian(type16, static_cast<uint16_t>(count));
    put_big_endian(type16 + 1, static_cast<uint32_t>(count));
  }

  // Whether the keys of the table on top are 1..n. Counts them.
  bool is_array(uint64_t* count) {
    lua_Number largest = 0;
    bool all_indexes = true;
    *count = 0;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      ++*count;
      const lua_Number key = lua_type(lua_, -2) == LUA_TNUMBER ? lua_tonumber(lua_, -2) : 0;
      all_indexes = all_indexes && key >= 1 && std::trunc(key) == key;
      largest = std::max(largest, key);
    }
    return all_indexes && largest == static_cast<lua_Number>(*count);
  }

  void pack_table(int depth) {
    uint64_t count = 0;
    if (is_array(&count)) {
      put_count(count, 0x90, 0xdc);
      for (uint64_t i = 1; i <= count; ++i) {
        lua_rawgeti(lua_, -1, static_cast<int>(i));
        pack(depth + 1);
      }
      return;
    }
    put_count(count, 0x80, 0xde);
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      lua_pushvalue(lua_, -2);
      pack(depth + 1);
      pack(depth + 1);
    }
  }

  lua_State* lua_;
  const uint64_t bytes_max_;
  std::string out_;
};

class Unpacker {
 public:
  Unpacker(lua_State* lua, std::string_view bytes) : lua_(lua), rest_(bytes) {}

  bool more() const { return !rest_.empty(); }
  size_t left() const { return rest_.size(); }

  // Pushes the next value.
  void unpack() {
    luaL_checkstack(lua_, 5, "in function cmsgpack.unpack");
    const uint8_t type = take_number<uint8_t>();
    if (type < 0x80) return push_number(type);
    if (type < 0x90) return unpack_map(type & 0x0f);
    if (type < 0xa0) return unpack_array(type & 0x0f);
    if (type < 0xc0) return push_string(type & 0x1f);
    if (type >= 0xe0) return push_number(static_cast<int8_t>(type));
    switch (type) {
      case 0xc0:
        return lua_pushnil(lua_);
      case 0xc2:
      case 0xc3:
        return lua_pushboolean(lua_, type == 0xc3);
      case 0xca:
        return push_number(std::bit_cast<float>(take_number<uint32_t>()));
      case 0xcb:
        return push_number(std::bit_cast<double>(take_number<uint64_t>()));
      case 0xcc:
        return push_number(take_number<uint8_t>());
      case 0xcd:
        return push_number(take_number<uint16_t>());
      case 0xce:
        return push_number(take_number<uint32_t>());
      case 0xcf:
        return push_number(take_number<uint64_t>());
      case 0xd0:
        return push_number(static_cast<int8_t>(take_number<uint8_t>()));
      case 0xd1:
        return push_number(static_cast<int16_t>(take_number<uint16_t>()));
      case 0xd2:
        return push_number(static_cast<int32_t>(take_number<uint32_t>()));
      case 0xd3:
        return push_number(static_cast<int64_t>(take_number<uint64_t>()));
      case 0xd9:
        return push_string(take_number<uint8_t>());
      case 0xda:
        return push_string(take_number<uint16_t>());
      case 0xdb:
        return push_string(take_number<uint32_t>());
      case 0xdc:
        return unpack_array(take_number<uint16_t>());
      case 0xdd:
        return unpack_array(take_number<uint32_t>());
      case 0xde:
        return unpack_map(take_number<uint16_t>());
      case 0xdf:
        return unpack_map(take_number<uint32_t>());
      default:
        luaL_error(lua_, "Bad data format in input.");
    }
  }

 private:
  std::string_view take(size_t bytes) {
    if (bytes > rest_.size()) luaL_error(lua_, "Missing bytes in input.");
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  template <std::unsigned_integral Number>
  Number take_number() {
    Number number = 0;
    for (const char byte : take(sizeof(Number))) {
      number = static_cast<Number>((static_cast<uint64_t>(number) << 8) |
                                   static_cast<unsigned char>(byte));
    }
    return number;
  }

  template <typename Number>
  void push_number(Number number) {
    lua_pushnumber(lua_, static_cast<lua_Number>(number));
  }

  void push_string(size_t bytes) {
    const std::string_view text = take(bytes);
    lua_pushlstring(lua_, text.data(), text.size());
  }

  void unpack_array(uint32_t count) {
    lua_newtable(lua_);
    for (uint32_t i = 1; i <= count; ++i) {
      unpack();
      lua_rawseti(lua_, -2, static_cast<int>(i));
    }
  }

  void unpack_map(uint32_t count) {
    lua_newtable(lua_);
    for (; count > 0; --count) {
      unpack();
      unpack();
      lua_settable(lua_, -3);
    }
  }

  lua_State* lua_;
  std::string_view rest_;
};

int pack(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count == 0) return luaL_argerror(lua, 0, "MessagePack pack needs input.");
  luaL_checkstack(lua, 1, "too many arguments for MessagePack pack");
  Packer packer(lua);
  for (int i = 1; i <= count; ++i) {
    lua_pushvalue(lua, i);
    packer.pack(/*depth=*/0);
  }
  lua_pushlstring(lua, packer.bytes().data(), packer.bytes().size());
  return 1;
}

// At most `limit` values from `offset` on, preceded by where they ended (-1: at the end of the
// text). Without limit and offset all values, alone; without limit alone none.
int unpack_some(lua_State* lua, int limit, int offset) {
  size_t bytes = 0;
  const char* text = luaL_checklstring(lua, 1, &bytes);
  if (offset < 0 || limit < 0) {
    return luaL_error(lua, "Invalid request to unpack with offset of %d and limit of %d.", offset,
                      static_cast<int>(bytes));
  }
  if (static_cast<size_t>(offset) > bytes) {
    return luaL_error(lua, "Start offset %d greater than input length %d.", offset,
                      static_cast<int>(bytes));
  }
  lua_settop(lua, 1);
  const bool is_all = limit == 0 && offset == 0;
  Unpacker unpacker(lua, std::string_view(text, bytes).substr(static_cast<size_t>(offset)));
  int count = 0;
  for (; unpacker.more() && (is_all || count < limit); ++count) unpacker.unpack();
  if (is_all) return count;
  luaL_checkstack(lua, 1, "in function cmsgpack.unpack");
  lua_pushinteger(lua, unpacker.more() ? static_cast<lua_Integer>(bytes - unpacker.left()) : -1);
  lua_insert(lua, 2);
  return count + 1;
}

int unpack(lua_State* lua) {
  return unpack_some(lua, 0, 0);
}

int unpack_one(lua_State* lua) {
  const int offset = luaL_optint(lua, 2, 0);
  return unpack_some(lua, 1, offset);
}

int unpack_limit(lua_State* lua) {
  const int limit = luaL_checkint(lua, 2);
  const int offset = luaL_optint(lua, 3, 0);
  return unpack_some(lua, limit, offset);
}

constexpr luaL_Reg kFunctions[] = {{"pack", pack},
                                   {"unpack", unpack},
                                   {"unpack_one", unpack_one},
                                   {"unpack_limit", unpack_limit},
                                   {nullptr, nullptr}};
// Scripts may ask what they have; so it says what Redis' says.
constexpr std::pair<const char*, const char*> kTexts[] = {
    {"_NAME", "cmsgpack"},
    {"_VERSION", "lua-cmsgpack 0.4.0"},
    {"_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"},
    {"_DESCRIPTION", "MessagePack C implementation for Lua"}};

}  // namespace

void push_cmsgpack(lua_State* lua) {
  lua_newtable(lua);
  luaL_register(lua, nullptr, kFunctions);
  for (const auto& [name, text] : kTexts) {
    lua_pushstring(lua, text);
    lua_setfield(lua, -2, name);
  }
}

}  // namespace ingot::script
