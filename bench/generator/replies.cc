// The parser of replies: a count of open elements is all it has to know of nesting.
#include "bench/generator/replies.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace generator {

uint64_t Replies::feed(std::string_view bytes) {
  const uint64_t before = counts_.all;
  while (!bytes.empty()) {
    if (skip_ > 0) {
      const size_t now = std::min<uint64_t>(skip_, bytes.size());
      bytes.remove_prefix(now);
      skip_ -= now;
      if (skip_ == 0) element_done();
      continue;
    }
    const size_t end = bytes.find('\n');
    if (end == bytes.npos) {
      partial_ += bytes;
      break;
    }
    if (partial_.empty()) {
      line(bytes.substr(0, end));
    } else {
      partial_ += bytes.substr(0, end);
      line(partial_);
      partial_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  return counts_.all - before;
}

// A line without its \n.
void Replies::line(std::string_view text) {
  if (text.size() < 2 || text.back() != '\r') throw std::runtime_error("this is no RESP");
  text.remove_suffix(1);
  const char kind = text.front();
  const bool is_reply = open_ == 0;
  if (is_reply) open_ = 1;
  if (kind == '-' || kind == '!') {
    ++counts_.errors;
    if (first_error_.empty()) first_error_ = text.substr(1);
  }
  if (std::string_view("+-:_,#(").find(kind) != std::string_view::npos) {
    if (kind == '_' && is_reply) ++counts_.nil;
    return element_done();
  }
  int64_t length = 0;
  if (std::string_view("$!=*~>%").find(kind) == std::string_view::npos ||
      std::from_chars(text.data() + 1, text.data() + text.size(), length).ec != std::errc()) {
    throw std::runtime_error("this is no RESP");
  }
  if (length < 0) {
    if (is_reply) ++counts_.nil;
    return element_done();
  }
  if (kind == '$' || kind == '!' || kind == '=') {
    skip_ = static_cast<uint64_t>(length) + 2;
    return;
  }
  open_ += static_cast<uint64_t>(kind == '%' ? 2 * length : length);
  element_done();
}

void Replies::element_done() {
  if (--open_ == 0) ++counts_.all;
}

}  // namespace generator
