// Encoding of replies; the forms are those of Redis 7.0, byte for byte.
#include "net/resp_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace ingot::net {
namespace {

constexpr size_t kHeaderMax = 24;

// Type byte, decimal number, CR LF; answers where they end.
template <typename Number>
char* write_header(char* text, char type, Number value) {
  *text++ = type;
  char* end = std::to_chars(text, text + kHeaderMax - 3, value).ptr;
  *end++ = '\r';
  *end++ = '\n';
  return end;
}

template <typename Number>
void append_header(std::string& out, char type, Number value) {
  char text[kHeaderMax];
  out.append(text, static_cast<size_t>(write_header(text, type, value) - text));
}

void append_line(std::string& out, char type, std::string_view text) {
  out += type;
  out += text;
  out += "\r\n";
}

}  // namespace

void RespWriter::simple(std::string_view text) {
  append_line(*out_, '+', text);
}

void RespWriter::error(std::string_view text) {
  *out_ += '-';
  const size_t start = out_->size();
  *out_ += text;
  for (size_t i = start; i < out_->size(); ++i) {
    char& c = (*out_)[i];
    if (c == '\r' || c == '\n') c = ' ';
  }
  *out_ += "\r\n";
}

void RespWriter::integer(int64_t value) {
  append_header(*out_, ':', value);
}

void RespWriter::bulk(std::string_view bytes) {
  constexpr size_t kShort = 64;
  if (bytes.size() > kShort) {
    append_header(*out_, '$', bytes.size());
    *out_ += bytes;
    *out_ += "\r\n";
    return;
  }
  // Of long replies most is this: one append instead of three.
  char text[kHeaderMax + kShort + 2];
  char* end = write_header(text, '$', bytes.size());
  end = std::copy(bytes.begin(), bytes.end(), end);
  *end++ = '\r';
  *end++ = '\n';
  out_->append(text, static_cast<size_t>(end - text));
}

void RespWriter::bulk_header(uint64_t bytes) {
  append_header(*out_, '$', bytes);
}

void RespWriter::bulk_end() {
  *out_ += "\r\n";
}

void RespWriter::null() {
  *out_ += version_ == 2 ? "$-1\r\n" : "_\r\n";
}

void RespWriter::null_array() {
  *out_ += version_ == 2 ? "*-1\r\n" : "_\r\n";
}

void RespWriter::array(uint64_t count) {
  append_header(*out_, '*', count);
}

void RespWriter::map(uint64_t pairs) {
  if (version_ == 2) {
    append_header(*out_, '*', 2 * pairs);
  } else {
    append_header(*out_, '%', pairs);
  }
}

void RespWriter::set(uint64_t count) {
  append_header(*out_, version_ == 2 ? '*' : '~', count);
}

void RespWriter::push(uint64_t count) {
  append_header(*out_, version_ == 2 ? '*' : '>', count);
}

void RespWriter::boolean(bool value) {
  if (version_ == 2) {
    *out_ += value ? ":1\r\n" : ":0\r\n";
  } else {
    *out_ += value ? "#t\r\n" : "#f\r\n";
  }
}

void RespWriter::real(double value) {
  // As printf's "%.17g".
  char text[40];
  const char* end =
      std::to_chars(text, text + sizeof(text), value, std::chars_format::general, 17).ptr;
  const std::string_view digits(text, end);
  if (version_ == 2) {
    bulk(digits);
  } else {
    append_line(*out_, ',', digits);
  }
}

void RespWriter::decimal(double value) {
  std::array<char, 400> text;  // the largest double has 309 digits before the point
  const int length =
      std::snprintf(text.data(), text.size(), "%.17Lf", static_cast<long double>(value));
  std::string_view digits(text.data(), static_cast<size_t>(length));
  if (digits.find('.') != std::string_view::npos) {
    digits = digits.substr(0, digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.remove_suffix(1);
  }
  if (digits == "-0") digits = "0";
  if (version_ == 2) {
    bulk(digits);
  } else {
    append_line(*out_, ',', digits);
  }
}

void RespWriter::big_number(std::string_view digits) {
  if (version_ == 2) {
    bulk(digits);
  } else {
    append_line(*out_, '(', digits);
  }
}

void RespWriter::verbatim(std::string_view format, std::string_view text) {
  if (version_ == 2) return bulk(text);
  append_header(*out_, '=', format.size() + 1 + text.size());
  *out_ += format;
  *out_ += ':';
  *out_ += text;
  *out_ += "\r\n";
}

void RespWriter::attribute(uint64_t pairs) {
  if (version_ != 2) append_header(*out_, '|', pairs);
}

}  // namespace ingot::net
