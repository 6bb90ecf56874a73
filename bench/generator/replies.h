// Counts the replies in what a server sends, of RESP2 and RESP3, without keeping them. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace generator {

class Replies {
 public:
  struct Counts {
    uint64_t all = 0;
    uint64_t nil = 0;
    uint64_t errors = 0;
  };

  // What came, in pieces of any length; how many replies end in it. Throws std::runtime_error for
  // what is no RESP.
  uint64_t feed(std::string_view bytes);

  const Counts& counts() const { return counts_; }
  const std::string& first_error() const { return first_error_; }

 private:
  void line(std::string_view text);
  void element_done();

  Counts counts_;
  std::string first_error_;
  std::string partial_;  // a line that has not ended yet
  uint64_t skip_ = 0;    // bytes of a bulk string still to come
  uint64_t open_ = 0;    // elements still to come of the reply under way; 0: none is
};

}  // namespace generator
