// The library struct of scripts: numbers and strings to and from the bytes of C structures.
//
// A format is letters: > < big and little endian, !n alignment to at most n, x a byte of padding;
// b B h H i I l L T integers (a small letter is signed; i and I may have a number of bytes behind
// them), f d floating point numbers, s a string that a zero ends, cn one of n bytes, c0 one whose
// length is the number before it (when packed: all of it); blanks mean nothing.
#include <fmt/format.h>

#include <bit>
#include <climits>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "src/script/lua_parts.h"

namespace ingot::script {

namespace {

constexpr size_t kIntegerBytesMax = 32;
constexpr size_t kNativeAlignment = 8;  // of "!" alone

class Format {
 public:
  Format(lua_State* lua, const char* text) : lua_(lua), next_(text) {}

  bool more() const { return *next_ != '\0'; }
  char take() { return *next_++; }

  // How many bytes the option has, of which it was the letter.
  size_t size(char option) {
    switch (option) {
      case 'B':
      case 'b':
      case 'x':
        return 1;
      case 'H':
      case 'h':
        return sizeof(short);
      case 'L':
      case 'l':
        return sizeof(long);
      case 'T':
        return sizeof(size_t);
      case 'f':
        return sizeof(float);
      case 'd':
        return sizeof(double);
      case 'c':
        return number(1);
      case 'I':
      case 'i': {
        const size_t bytes = number(sizeof(int));
        if (bytes > kIntegerBytesMax) {
          luaL_error(lua_, "integral size %d is larger than limit of %d", static_cast<int>(bytes),
                     static_cast<int>(kIntegerBytesMax));
        }
        return bytes;
      }
      default:
        return 0;
    }
  }

  // Bytes of padding before something of this size.
  size_t padding(size_t size, char option, size_t at) const {
    if (size == 0 || option == 'c') return 0;
    size = std::min(size, alignment_);
    return size > 1 ? (size - (at & (size - 1))) & (size - 1) : 0;
  }

  // What only changes how the others are read.
  void control(char option) {
    switch (option) {
      case ' ':
        return;
      case '>':
        is_little_ = false;
        return;
      case '<':
        is_little_ = true;
        return;
      case '!': {
        const size_t alignment = number(kNativeAlignment);
        if (!std::has_single_bit(alignment)) {
          luaL_error(lua_, "alignment %d is not a power of 2", static_cast<int>(alignment));
        }
        alignment_ = alignment;
        return;
      }
      default: {
        const std::string text = fmt::format("invalid format option '{}'", option);
        luaL_argerror(lua_, 1, text.c_str());
      }
    }
  }

  bool is_little() const { return is_little_; }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  size_t number(size_t otherwise) {
    if (!is_digit(*next_)) return otherwise;
    int value = 0;
    for (; is_digit(*next_); ++next_) {
      const int digit = *next_ - '0';
      if (value > INT_MAX / 10 || value * 10 > INT_MAX - digit) {
        luaL_error(lua_, "integral size overflow");
      }
      value = value * 10 + digit;
    }
    return static_cast<size_t>(value);
  }

  lua_State* lua_;
  const char* next_;
  bool is_little_ = std::endian::native == std::endian::little;
  size_t alignment_ = 1;
};

bool is_integer(char option) {
  return std::strchr("bBhHlLTiI", option) != nullptr;
}

bool is_signed(char option) {
  return option >= 'a' && option <= 'z';
}

void append_ordered(std::string* out, std::string bytes, bool is_little) {
  if (!is_little) bytes.assign(bytes.rbegin(), bytes.rend());
  out->append(bytes);
}

// As C converts it, where that says something.
uint64_t bits_of(lua_Number number) {
  constexpr lua_Number kLimit = 9223372036854775808.0;
  if (number < 0) {
    return number < -kLimit ? uint64_t{1} << 63
                            : static_cast<uint64_t>(static_cast<int64_t>(number));
  }
  if (number < 2 * kLimit) return static_cast<uint64_t>(number);
  return 0;
}

void pack_integer(std::string* out, const Format& format, size_t size, lua_Number number) {
  const uint64_t bits = bits_of(number);
  std::string bytes;
  for (size_t i = 0; i < size; ++i) {
    bytes += static_cast<char>(i < sizeof(bits) ? bits >> (8 * i) & 0xff : 0);
  }
  append_ordered(out, std::move(bytes), format.is_little());
}

template <typename Real>
void pack_real(std::string* out, const Format& format, lua_Number number) {
  const auto real = static_cast<Real>(number);
  std::string bytes(sizeof(real), '\0');
  std::memcpy(bytes.data(), &real, sizeof(real));
  append_ordered(out, std::move(bytes), format.is_little());
}

int pack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  std::string out;
  lua_pushnil(lua);  // stands for the arguments that are missing
  int argument = 2;
  const uint64_t bytes_max = LuaHost::of(lua).bytes_max();
  while (format.more()) {
    if (out.size() > bytes_max) luaL_error(lua, "not enough memory");
    const char option = format.take();
    const size_t size = format.size(option);
    out.append(format.padding(size, option, out.size()), '\0');
    if (is_integer(option)) {
      pack_integer(&out, format, size, luaL_checknumber(lua, argument++));
    } else if (option == 'x') {
      out += '\0';
    } else if (option == 'f') {
      pack_real<float>(&out, format, luaL_checknumber(lua, argument++));
    } else if (option == 'd') {
      pack_real<double>(&out, format, luaL_checknumber(lua, argument++));
    } else if (option == 'c' || option == 's') {
      size_t bytes = 0;
      const char* text = luaL_checklstring(lua, argument++, &bytes);
      const size_t wanted = size == 0 ? bytes : size;
      luaL_argcheck(lua, bytes >= wanted, argument, "string too short");
      out.append(text, wanted);
      if (option == 's') out += '\0';
    } else {
      format.control(option);
    }
  }
  lua_pushlstring(lua, out.data(), out.size());
  return 1;
}

lua_Number unpack_integer(const Format& format, char option, std::string_view bytes) {
  uint64_t bits = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t place = format.is_little() ? i : bytes.size() - 1 - i;
    if (i < sizeof(bits))
      bits |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[place])) << (8 * i);
  }
  if (!is_signed(option) || bytes.empty()) return static_cast<lua_Number>(bits);
  if (bytes.size() < sizeof(bits)) {
    const size_t unused = 64 - 8 * bytes.size();
    return static_cast<lua_Number>(static_cast<int64_t>(bits << unused) >> unused);
  }
  return static_cast<lua_Number>(static_cast<int64_t>(bits));
}

template <typename Real>
lua_Number unpack_real(const Format& format, std::string_view bytes) {
  std::string ordered(bytes);
  if (!format.is_little()) ordered.assign(bytes.rbegin(), bytes.rend());
  Real real = 0;
  std::memcpy(&real, ordered.data(), sizeof(real));
  return static_cast<lua_Number>(real);
}

// Pushes what the option stands for, and answers how many bytes it took.
size_t unpack_string(lua_State* lua, char option, size_t size, std::string_view rest, int* count) {
  const auto check_size = [&](size_t wanted) {
    luaL_argcheck(lua, wanted <= rest.size(), 2, "data string too short");
  };
  if (option == 's') {
    const size_t end = rest.find('\0');
    if (end == std::string_view::npos) luaL_error(lua, "unfinished string in data");
    lua_pushlstring(lua, rest.data(), end);
    return end + 1;
  }
  if (size == 0) {
    if (*count == 0 || lua_isnumber(lua, -1) == 0) {
      luaL_error(lua, "format 'c0' needs a previous size");
    }
    size = static_cast<size_t>(bits_of(lua_tonumber(lua, -1)));
    lua_pop(lua, 1);
    --*count;
    check_size(size);
  }
  lua_pushlstring(lua, rest.data(), size);
  return size;
}

int unpack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  size_t length = 0;
  const char* text = luaL_checklstring(lua, 2, &length);
  const std::string_view data(text, length);
  const lua_Integer first = luaL_optinteger(lua, 3, 1);
  luaL_argcheck(lua, first != 0, 3, "offset must be 1 or greater");
  size_t at = static_cast<size_t>(first) - 1;
  int count = 0;
  while (format.more()) {
    const char option = format.take();
    const size_t size = format.size(option);
    const size_t padding = format.padding(size, option, at);
    const bool fits = at <= length && padding <= length - at && size <= length - at - padding;
    luaL_argcheck(lua, fits, 2, "data string too short");
    at += padding;
    luaL_checkstack(lua, 2, "too many results");
    const std::string_view bytes = data.substr(at, size);
    if (is_integer(option)) {
      lua_pushnumber(lua, unpack_integer(format, option, bytes));
      ++count;
    } else if (option == 'f' || option == 'd') {
      lua_pushnumber(lua, option == 'f' ? unpack_real<float>(format, bytes)
                                        : unpack_real<double>(format, bytes));
      ++count;
    } else if (option == 'c' || option == 's') {
      at += unpack_string(lua, option, size, data.substr(at), &count) - size;
      ++count;
    } else if (option != 'x') {
      format.control(option);
    }
    at += size;
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(at) + 1);
  return count + 1;
}

int size(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  size_t at = 0;
  while (format.more()) {
    const char option = format.take();
    const size_t bytes = format.size(option);
    at += format.padding(bytes, option, at);
    if (option == 's') luaL_argerror(lua, 1, "option 's' has no fixed size");
    if (option == 'c' && bytes == 0) luaL_argerror(lua, 1, "option 'c0' has no fixed size");
    if (!is_integer(option) && std::strchr("xfdcs", option) == nullptr &&
        std::strchr("<>! ", option) != nullptr) {
      format.control(option);
    }
    at += bytes;
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(at));
  return 1;
}

constexpr luaL_Reg kFunctions[] = {
    {"pack", pack}, {"unpack", unpack}, {"size", size}, {nullptr, nullptr}};

}  // namespace

void push_struct(lua_State* lua) {
  lua_newtable(lua);
  luaL_register(lua, nullptr, kFunctions);
}

}  // namespace ingot::script
