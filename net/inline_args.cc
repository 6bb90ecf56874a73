// Redis' quoting: "..." knows \xHH \n \r \t \b \a and takes any other escaped byte as it is; '...'
// knows only \'. A quote may open inside of a word, but must close at its end.
#include "net/inline_args.h"

namespace ingot::net {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
// Fewer than is_space: a vertical tab inside of a word belongs to it.
bool ends_word(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char unescape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// One line being read; `out` follows `in` through the same bytes.
struct Line {
  char* in;
  char* out;
  char* end;

  bool at_end() const { return in == end; }

  // After the opening quote: up to the closing one. False when there is none or it ends no word.
  bool take_double_quoted() {
    while (!at_end() && *in != '"') {
      if (*in == '\\' && end - in >= 4 && in[1] == 'x' && hex_digit(in[2]) >= 0 &&
          hex_digit(in[3]) >= 0) {
        *out++ = static_cast<char>(hex_digit(in[2]) * 16 + hex_digit(in[3]));
        in += 4;
      } else if (*in == '\\' && end - in >= 2) {
        *out++ = unescape(in[1]);
        in += 2;
      } else {
        *out++ = *in++;
      }
    }
    return take_closing_quote();
  }

  bool take_single_quoted() {
    while (!at_end() && *in != '\'') {
      if (*in == '\\' && end - in >= 2 && in[1] == '\'') ++in;
      *out++ = *in++;
    }
    return take_closing_quote();
  }

  bool take_closing_quote() {
    if (at_end()) return false;
    ++in;
    return at_end() || is_space(*in);
  }
};

}  // namespace

bool split_inline(char* begin, char* end, std::vector<std::string_view>& args) {
  Line line{.in = begin, .out = begin, .end = end};
  for (;;) {
    while (!line.at_end() && is_space(*line.in)) ++line.in;
    if (line.at_end()) return true;
    line.out = line.in;
    const char* word = line.out;
    while (!line.at_end() && !ends_word(*line.in)) {
      const char c = *line.in++;
      if (c == '"' || c == '\'') {
        if (!(c == '"' ? line.take_double_quoted() : line.take_single_quoted())) return false;
        break;
      }
      *line.out++ = c;
    }
    args.emplace_back(word, line.out);
  }
}

}  // namespace ingot::net
