// Reads a command's arguments one by one and latches the first error, so that a handler parses
// everything and checks once. Borrows the arguments; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/contract/row.h"

namespace ingot::contract {

// Redis' error sentences that more than one command uses.
namespace error {
inline constexpr std::string_view kSyntax = "ERR syntax error";
inline constexpr std::string_view kNotInteger = "ERR value is not an integer or out of range";
inline constexpr std::string_view kNotFloat = "ERR value is not a valid float";
inline constexpr std::string_view kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr std::string_view kNoSuchKey = "ERR no such key";
inline constexpr std::string_view kSameObject = "ERR source and destination objects are the same";
inline constexpr std::string_view kOutOfRange = "ERR index out of range";
inline constexpr std::string_view kInvalidDb = "ERR invalid DB index";
inline constexpr std::string_view kDbOutOfRange = "ERR DB index is out of range";
}  // namespace error

// Redis' sentence for a wrong number of arguments; `full_name` as "client|kill".
std::string wrong_arity_error(std::string_view full_name);

// The whole of `text` as Redis' string2ll takes it: no spaces, no plus sign, no leading zeros.
std::optional<int64_t> parse_integer(std::string_view text);
// As Redis' getLongDoubleFromObject: no spaces around it, "inf" taken, "nan" refused.
std::optional<long double> parse_long_double(std::string_view text);
std::optional<double> parse_double(std::string_view text);
// ASCII case-insensitive.
bool equals_ignore_case(std::string_view a, std::string_view b);

class ArgReader {
 public:
  // Starts behind the command's name (and `skip - 1` more arguments).
  explicit ArgReader(Args args, size_t skip = 1) : args_(args), next_(skip) {}

  bool more() const { return error_.empty() && next_ < args_.size(); }
  size_t left() const { return args_.size() - next_; }

  // The next argument; past the end latches a syntax error and answers "".
  std::string_view text();
  // Latches `error` (a default is Redis' sentence) when it is not a number.
  int64_t integer(std::string_view error = error::kNotInteger);
  int64_t integer_between(int64_t min, int64_t max, std::string_view error);
  double real(std::string_view error = error::kNotFloat);

  // Takes the next argument when it is this word in any case.
  bool word(std::string_view word);

  // Latches a syntax error unless all was read. Returns whether everything was well.
  bool done();

  void fail(std::string_view error) {
    if (error_.empty()) error_ = error;
  }
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }

 private:
  Args args_;
  size_t next_;
  std::string error_;
};

}  // namespace ingot::contract
