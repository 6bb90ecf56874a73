// Numbers with a fraction as INCRBYFLOAT and HINCRBYFLOAT write them.
#pragma once

#include <cstdio>
#include <string>

namespace ingot::commands {

// As Redis prints for people: 17 decimals at most, no exponent, no trailing zeros.
inline std::string print_decimal(long double value) {
  char digits[5 * 1024];
  const int length = std::snprintf(digits, sizeof(digits), "%.17Lf", value);
  std::string text(digits, static_cast<size_t>(length));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace ingot::commands
