// Reads a command's arguments one by one and latches the first error, so that a handler parses
// everything and checks once. Borrows the arguments; one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
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
// Of ASCII; the library's goes by the locale, and is a call.
constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}
// ASCII case-insensitive.
bool equals_ignore_case(std::string_view a, std::string_view b);

class ArgReader {
 public:
  // Starts behind the command's name (and `skip - 1` more arguments).
  explicit ArgReader(Args args, size_t skip = 1) : args_(args), next_(skip) {}

  bool more() const { return error_.empty() && next_ < args_.size(); }
  size_t left() const { return args_.size() - next_; }
  Args rest() const { return args_.last(left()); }  // what is not read yet

  // The next argument; past the end latches a syntax error and answers "".
  std::string_view text();
  // Latches `error` (a default is Redis' sentence) when it is not a number.
  int64_t integer(std::string_view error = error::kNotInteger);
  int64_t integer_between(int64_t min, int64_t max, std::string_view error);
  double real(std::string_view error = error::kNotFloat);

  // Takes the next argument when it is this word in any case and `values` more stand behind it.
  bool word(std::string_view word, size_t values = 0);

  // Takes the next argument when it is one of these words, and answers what that one means.
  template <typename Meaning>
  struct Word {
    std::string_view word;
    Meaning meaning;
  };
  template <typename Meaning>
  std::optional<Meaning> choice(std::initializer_list<Word<Meaning>> words) {
    for (const Word<Meaning>& each : words) {
      if (word(each.word)) return each.meaning;
    }
    return std::nullopt;
  }

  // The same for words that stand alone: sets what was given to true.
  struct Flag {
    std::string_view word;
    bool* given;
  };
  bool flag(std::initializer_list<Flag> flags);

  // A number and as many arguments: "numkeys key [key ...]".
  struct CountErrors {
    std::string_view not_number;
    std::string_view too_few;  // less than one
    std::string_view too_many = error::kSyntax;
  };
  Args counted(const CountErrors& errors);

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
