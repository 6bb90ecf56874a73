// From replies to Lua's values and back. A command's reply is read in its encoded form, which has
// the types that the script's protocol version knows.
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

#include "src/script/lua_parts.h"
#include "storage/check.h"

namespace ingot::script {

namespace {

class ReplyReader {
 public:
  ReplyReader(lua_State* lua, std::string_view encoded) : lua_(lua), rest_(encoded) {}

  // Pushes one value; of an attribute, what it stands before.
  void push() {
    luaL_checkstack(lua_, 6, "reply");
    const char type = rest_.front();
    const std::string_view line = take_line().substr(1);
    switch (type) {
      case '+':
        return push_field("ok", line);
      case '-':
        lua_createtable(lua_, 0, 2);
        set_field("err", line);
        lua_pushboolean(lua_, 1);
        return lua_setfield(lua_, -2, "ignore_error_stats_update");
      case ':':
        return lua_pushnumber(lua_, static_cast<lua_Number>(number(line)));
      case '$':
        return line == "-1" ? lua_pushboolean(lua_, 0) : push_text(take(number(line)));
      case '*':
      case '>':
        return line == "-1" ? lua_pushboolean(lua_, 0) : push_array(number(line));
      case '_':
        return lua_pushnil(lua_);
      case '#':
        return lua_pushboolean(lua_, line == "t");
      case ',':
        lua_createtable(lua_, 0, 1);
        lua_pushnumber(lua_, std::strtod(std::string(line).c_str(), nullptr));
        return lua_setfield(lua_, -2, "double");
      case '(':
        return push_field("big_number", line);
      case '=': {
        const std::string_view text = take(number(line));
        lua_createtable(lua_, 0, 1);
        lua_createtable(lua_, 0, 2);
        set_field("format", text.substr(0, 3));
        set_field("string", text.substr(4));
        return lua_setfield(lua_, -2, "verbatim_string");
      }
      case '%':
        return push_map(number(line));
      case '~':
        return push_set(number(line));
      case '|':
        for (int64_t left = 2 * number(line); left > 0; --left) {
          push();
          lua_pop(lua_, 1);
        }
        return push();
      default:
        INGOT_CHECK(false);
    }
  }

 private:
  std::string_view take_line() {
    const size_t end = rest_.find("\r\n");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 2);
    return line;
  }

  std::string_view take(int64_t bytes) {
    const std::string_view taken = rest_.substr(0, static_cast<size_t>(bytes));
    rest_.remove_prefix(taken.size() + 2);
    return taken;
  }

  static int64_t number(std::string_view digits) {
    int64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  void push_text(std::string_view text) { lua_pushlstring(lua_, text.data(), text.size()); }

  void set_field(const char* name, std::string_view text) {
    push_text(text);
    lua_setfield(lua_, -2, name);
  }

  void push_field(const char* name, std::string_view text) {
    lua_createtable(lua_, 0, 1);
    set_field(name, text);
  }

  static int size_hint(int64_t count) {
    return static_cast<int>(std::min<int64_t>(count, 1 << 20));
  }

  void push_array(int64_t count) {
    lua_createtable(lua_, size_hint(count), 0);
    for (int64_t i = 1; i <= count; ++i) {
      push();
      lua_rawseti(lua_, -2, static_cast<int>(i));
    }
  }

  void push_map(int64_t pairs) {
    lua_createtable(lua_, 0, 1);
    lua_createtable(lua_, 0, size_hint(pairs));
    for (; pairs > 0; --pairs) {
      push();
      push();
      lua_rawset(lua_, -3);
    }
    lua_setfield(lua_, -2, "map");
  }

  void push_set(int64_t count) {
    lua_createtable(lua_, 0, 1);
    lua_createtable(lua_, 0, size_hint(count));
    for (; count > 0; --count) {
      push();
      lua_pushboolean(lua_, 1);
      lua_rawset(lua_, -3);
    }
    lua_setfield(lua_, -2, "set");
  }

  lua_State* lua_;
  std::string_view rest_;
};

// Numbers lose their fraction, and what is no int64_t is the least of them, as where Redis runs.
int64_t integer_of(lua_Number number) {
  constexpr lua_Number kLimit = 9223372036854775808.0;
  if (number >= -kLimit && number < kLimit) return static_cast<int64_t>(number);
  return std::numeric_limits<int64_t>::min();
}

std::string without_line_breaks(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\r' || c == '\n') c = ' ';
  }
  return line;
}

// What a table stands for.
enum class Form : uint8_t { kError, kStatus, kDouble, kMap, kSet, kBigNumber, kVerbatim, kArray };

struct NamedForm {
  const char* field;
  int type;
  Form form;
};
constexpr NamedForm kForms[] = {
    {"err", LUA_TSTRING, Form::kError},     {"ok", LUA_TSTRING, Form::kStatus},
    {"double", LUA_TNUMBER, Form::kDouble}, {"map", LUA_TTABLE, Form::kMap},
    {"set", LUA_TTABLE, Form::kSet},        {"big_number", LUA_TSTRING, Form::kBigNumber},
};

// Both passes over a value, first the one that only measures: a reply cannot be taken back.
class ReplyWriter {
 public:
  // `reply` null: only measures.
  ReplyWriter(lua_State* lua, int resp, contract::ReplySink* reply, uint64_t bytes_left)
      : lua_(lua), resp_(resp), reply_(reply), bytes_left_(bytes_left) {}

  // Takes the value on top off the stack. False: there is no room for it.
  bool write() {
    if (lua_checkstack(lua_, 6) == 0) return write_error("ERR reached lua stack limit");
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        return take(text().size()) && done([&] { reply_->bulk(text()); });
      case LUA_TNUMBER:
        return done([&] { reply_->integer(integer_of(lua_tonumber(lua_, -1))); });
      case LUA_TBOOLEAN: {
        const bool value = lua_toboolean(lua_, -1) != 0;
        if (resp_ == 3) return done([&] { reply_->boolean(value); });
        return done([&] { value ? reply_->integer(1) : reply_->null(); });
      }
      case LUA_TTABLE:
        return write_table();
      default:
        return done([&] { reply_->null(); });
    }
  }

 private:
  static constexpr uint64_t kElementBytes = 16;

  bool take(uint64_t bytes) {
    if (bytes + kElementBytes > bytes_left_) return false;
    bytes_left_ -= bytes + kElementBytes;
    return true;
  }

  template <typename Reply>
  bool done(const Reply& reply) {
    if (!take(0)) return false;
    if (reply_ != nullptr) reply();
    lua_pop(lua_, 1);
    return true;
  }

  bool write_error(std::string_view text) {
    return take(text.size()) && done([&] { reply_->error(text); });
  }

  std::string_view text() const {
    size_t bytes = 0;
    const char* text = lua_tolstring(lua_, -1, &bytes);
    return {text, bytes};
  }

  // Pushes the field of the table on top; false, and nothing pushed, if it is of another type.
  bool push_field(const char* name, int type) {
    lua_pushstring(lua_, name);
    lua_rawget(lua_, -2);
    if (lua_type(lua_, -1) == type) return true;
    lua_pop(lua_, 1);
    return false;
  }

  bool write_table() {
    for (const NamedForm& named : kForms) {
      if (!push_field(named.field, named.type)) continue;
      const bool fits = write_form(named.form);
      lua_pop(lua_, 2);
      return fits;
    }
    if (push_field("verbatim_string", LUA_TTABLE)) {
      const bool is_one = push_field("format", LUA_TSTRING);
      if (is_one && (lua_insert(lua_, -2), push_field("string", LUA_TSTRING))) {
        // Stack: the table, its format, the inner table, its text.
        const std::string_view said = text();
        std::string format = lua_tostring(lua_, -3);
        format.resize(3, ' ');
        const bool fits = take(said.size());
        if (fits && reply_ != nullptr) reply_->verbatim(format, said);
        lua_pop(lua_, 4);
        return fits;
      }
      lua_pop(lua_, is_one ? 2 : 1);
    }
    return write_array();
  }

  // Of the field on top, which stays.
  bool write_form(Form form) {
    if (form == Form::kMap || form == Form::kSet) return write_members(form == Form::kMap);
    if (form == Form::kDouble) {
      if (!take(0)) return false;
      if (reply_ != nullptr) reply_->real(lua_tonumber(lua_, -1));
      return true;
    }
    if (!take(text().size())) return false;
    if (reply_ == nullptr) return true;
    const std::string_view given = text();
    // A big number alone does not end at a zero byte.
    const size_t length = form == Form::kBigNumber ? given.npos : given.find('\0');
    const std::string said = without_line_breaks(given.substr(0, length));
    if (form == Form::kError) {
      is_counted_error(lua_, -2) ? reply_->repeated_error(said) : reply_->partial_error(said);
    }
    if (form == Form::kStatus) reply_->simple(said);
    if (form == Form::kBigNumber) reply_->big_number(said);
    return true;
  }

  bool write_members(bool is_map) {
    uint64_t count = 0;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) ++count;
    if (!take(0)) return false;
    if (reply_ != nullptr) is_map ? reply_->map(count) : reply_->set(count);
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      lua_pushvalue(lua_, -2);
      if (!write()) return false;
      if (is_map) {
        lua_pushvalue(lua_, -1);
        if (!write()) return false;
      }
      lua_pop(lua_, 1);
    }
    return true;
  }

  bool write_array() {
    int count = 0;
    for (bool more = true; more; lua_pop(lua_, 1)) {
      lua_rawgeti(lua_, -1, count + 1);
      more = !lua_isnil(lua_, -1);
      count += more;
    }
    if (!take(0)) return false;
    if (reply_ != nullptr) reply_->array(static_cast<uint64_t>(count));
    for (int i = 1; i <= count; ++i) {
      lua_rawgeti(lua_, -1, i);
      if (!write()) return false;
    }
    lua_pop(lua_, 1);
    return true;
  }

  lua_State* lua_;
  const int resp_;
  contract::ReplySink* const reply_;
  uint64_t bytes_left_;
};

}  // namespace

bool is_counted_error(lua_State* lua, int index) {
  if (!lua_istable(lua, index)) return false;
  lua_pushvalue(lua, index);
  lua_pushliteral(lua, "ignore_error_stats_update");
  lua_rawget(lua, -2);
  const bool is_counted = lua_toboolean(lua, -1) != 0;
  lua_pop(lua, 2);
  return is_counted;
}

bool push_reply(lua_State* lua, std::string_view encoded) {
  ReplyReader(lua, encoded).push();
  return encoded.front() == '-';
}

void push_error(lua_State* lua, std::string_view text) {
  const size_t end = text.find_last_not_of("\r\n");
  const size_t begin = text.find_first_not_of("\r\n");
  text = begin == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin + 1);
  bool has_code = text.starts_with('-');
  if (has_code) text.remove_prefix(1);
  has_code = has_code && text.find(' ') != std::string_view::npos;
  const std::string said = (has_code ? "" : "ERR ") + std::string(text);
  lua_createtable(lua, 0, 1);
  lua_pushlstring(lua, said.data(), said.size());
  lua_setfield(lua, -2, "err");
}

bool reply_value(lua_State* lua, int resp, uint64_t bytes_max, contract::ReplySink& reply) {
  const int top = lua_gettop(lua);
  lua_pushvalue(lua, -1);
  const bool fits = ReplyWriter(lua, resp, nullptr, bytes_max).write();
  lua_settop(lua, top);
  if (!fits) return false;
  ReplyWriter(lua, resp, &reply, bytes_max).write();
  return true;
}

}  // namespace ingot::script
