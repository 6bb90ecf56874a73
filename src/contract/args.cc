// Numbers out of texts by the rules of Redis, and the errors that a reader latches.
#include "src/contract/args.h"

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace ingot::contract {

std::optional<int64_t> parse_integer(std::string_view text) {
  if (text.empty() || text.size() > 20) return std::nullopt;
  std::string_view digits = text[0] == '-' ? text.substr(1) : text;
  if (digits.empty() || digits[0] < '0' || digits[0] > '9') return std::nullopt;
  if (digits[0] == '0' && text.size() > 1) return std::nullopt;
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<long double> parse_long_double(std::string_view text) {
  constexpr size_t kLongest = 5 * 1024;  // Redis' buffer
  if (text.empty() || text.size() >= kLongest ||
      std::isspace(static_cast<unsigned char>(text[0]))) {
    return std::nullopt;
  }
  std::string copy(text);
  char* end = nullptr;
  errno = 0;
  long double value = std::strtold(copy.c_str(), &end);
  bool overflow = errno == ERANGE && (std::fabs(value) == HUGE_VALL || value == 0);
  if (end != copy.c_str() + copy.size() || overflow || errno == EINVAL || std::isnan(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> parse_double(std::string_view text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0]))) return std::nullopt;
  std::string copy(text);
  char* end = nullptr;
  errno = 0;
  double value = std::strtod(copy.c_str(), &end);
  bool overflow = errno == ERANGE && (std::fabs(value) == HUGE_VAL || value == 0);
  if (end != copy.c_str() + copy.size() || overflow || std::isnan(value)) return std::nullopt;
  return value;
}

bool equals_ignore_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (to_lower(a[i]) != to_lower(b[i])) return false;
  }
  return true;
}

std::string_view ArgReader::text() {
  if (next_ >= args_.size()) {
    fail(error::kSyntax);
    return {};
  }
  return args_[next_++];
}

int64_t ArgReader::integer(std::string_view error) {
  std::optional<int64_t> value = parse_integer(text());
  if (!value) fail(error);
  return value.value_or(0);
}

int64_t ArgReader::integer_between(int64_t min, int64_t max, std::string_view error) {
  int64_t value = integer(error);
  if (value < min || value > max) fail(error);
  return value;
}

double ArgReader::real(std::string_view error) {
  std::optional<double> value = parse_double(text());
  if (!value) fail(error);
  return value.value_or(0);
}

bool ArgReader::word(std::string_view word, size_t values) {
  if (!more() || left() <= values || !equals_ignore_case(args_[next_], word)) return false;
  ++next_;
  return true;
}

bool ArgReader::flag(std::initializer_list<Flag> flags) {
  for (const Flag& each : flags) {
    if (word(each.word)) return *each.given = true;
  }
  return false;
}

Args ArgReader::counted(const CountErrors& errors) {
  const int64_t count = integer(errors.not_number);
  if (count < 1) fail(errors.too_few);
  if (!failed() && static_cast<uint64_t>(count) > left()) fail(errors.too_many);
  if (failed()) return {};
  const Args taken = args_.subspan(next_, static_cast<size_t>(count));
  next_ += taken.size();
  return taken;
}

bool ArgReader::done() {
  if (next_ < args_.size()) fail(error::kSyntax);
  return error_.empty();
}

std::string wrong_arity_error(std::string_view full_name) {
  return "ERR wrong number of arguments for '" + std::string(full_name) + "' command";
}

}  // namespace ingot::contract
