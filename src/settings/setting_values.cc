// Parsing and printing of settings by the kind of their row.
#include "src/settings/setting_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <expected>

namespace ingot::settings {
namespace {

// One unit after a number of bytes, or nothing.
std::optional<uint64_t> unit_bytes(std::string_view unit) {
  struct Unit {
    std::string_view name;
    uint64_t bytes;
  };
  static constexpr Unit kUnits[] = {{"", 1},
                                    {"b", 1},
                                    {"k", 1000},
                                    {"kb", 1ull << 10},
                                    {"m", 1000 * 1000},
                                    {"mb", 1ull << 20},
                                    {"g", 1000ull * 1000 * 1000},
                                    {"gb", 1ull << 30}};
  for (const Unit& known : kUnits) {
    if (same_word(known.name, unit)) return known.bytes;
  }
  return {};
}

std::string enum_text(std::span<const EnumName> names, int64_t value) {
  for (const EnumName& name : names) {
    if (name.value == value) return std::string(name.name);
  }
  return "unknown";
}

std::string number_text(const SettingRow& row, int64_t value) {
  switch (row.kind) {
    case Kind::kBool:
      return value != 0 ? "yes" : "no";
    case Kind::kEnum:
      return enum_text(row.names, value);
    case Kind::kOctal:
      return fmt::format("{:o}", value);
    case Kind::kMemoryOrPercent:
      if (value < 0) return fmt::format("{}%", -value);
      [[fallthrough]];
    case Kind::kMemory:
      return fmt::format("{}", static_cast<uint64_t>(value));
    default:
      return fmt::format("{}", value);
  }
}

Error range_error(const SettingRow& row, int64_t value) {
  constexpr std::string_view kBetween = "argument must be between {} and {} inclusive";
  if (row.is(kUnsigned)) {
    const auto min = static_cast<uint64_t>(row.min);
    const auto max = static_cast<uint64_t>(row.max);
    const auto given = static_cast<uint64_t>(value);
    if (given >= min && given <= max) return {};
    if (row.kind == Kind::kOctal) {
      return fmt::format("argument must be between {:o} and {:o} inclusive", min, max);
    }
    return fmt::format(fmt::runtime(kBetween), min, max);
  }
  if (row.kind == Kind::kMemoryOrPercent && value < 0) {
    if (value >= row.min) return {};
    return fmt::format("percentage argument must be less or equal to {}", -row.min);
  }
  if (value >= row.min && value <= row.max) return {};
  return fmt::format(fmt::runtime(kBetween), row.min, row.max);
}

using Parsed = std::expected<int64_t, std::string>;

Parsed parse_number(const SettingRow& row, const std::string& text) {
  if (row.kind == Kind::kBool) {
    if (same_word(text, "yes")) return 1;
    if (same_word(text, "no")) return 0;
    return std::unexpected("argument must be 'yes' or 'no'");
  }
  if (row.kind == Kind::kOctal) {
    if (const auto value = parse_c_number(text, 8)) return *value;
    return std::unexpected("argument couldn't be parsed as an octal number");
  }
  if (row.kind == Kind::kInteger) {
    if (const auto value = parse_strict_number(text)) return *value;
    return std::unexpected("argument couldn't be parsed into an integer");
  }
  if (const auto bytes = parse_memory(text)) return static_cast<int64_t>(*bytes);
  if (row.kind == Kind::kMemory) return std::unexpected("argument must be a memory value");
  if (text.size() > 1 && text.back() == '%') {
    const auto percent = parse_strict_number(std::string_view(text).substr(0, text.size() - 1));
    if (percent && *percent >= 0) return -*percent;
  }
  return std::unexpected("argument must be a memory or percent value");
}

Parsed parse_enum(const SettingRow& row, std::string_view text) {
  std::string all;
  for (const EnumName& name : row.names) {
    if (same_word(name.name, text)) return name.value;
    all += all.empty() ? "" : ", ";
    all += name.name;
  }
  return std::unexpected("argument(s) must be one of the following: " + all);
}

void store_text(const SettingRow& row, Settings& settings, std::string value) {
  if (const auto* member = std::get_if<TextMember>(&row.member)) {
    settings.** member = std::move(value);
  } else {
    keep_value(row, settings, std::move(value));
  }
}

void store_number(const SettingRow& row, Settings& settings, int64_t value) {
  if (const auto* member = std::get_if<NumberMember>(&row.member)) {
    member->set(settings, value);
  } else {
    store_text(row, settings, number_text(row, value));
  }
}

}  // namespace

Error set_value(const SettingRow& row, Settings& settings, std::span<const std::string> values,
                bool add) {
  if (row.custom != nullptr) return row.custom->parse(row, settings, values, add);
  if (values.size() != 1) return "wrong number of arguments";
  if (row.kind == Kind::kText) {
    if (row.check != nullptr) {
      if (Error error = row.check(values[0])) return error;
    }
    store_text(row, settings, values[0]);
    return {};
  }
  const bool is_enum = row.kind == Kind::kEnum;
  const Parsed value = is_enum ? parse_enum(row, values[0]) : parse_number(row, values[0]);
  if (!value) return value.error();
  if (!is_enum && row.kind != Kind::kBool) {
    if (Error error = range_error(row, *value)) return error;
  }
  if (row.check != nullptr) {
    if (Error error = row.check(number_text(row, *value))) return error;
  }
  store_number(row, settings, *value);
  return {};
}

std::string print_value(const SettingRow& row, const Settings& settings) {
  if (row.custom != nullptr) return row.custom->print(row, settings);
  if (const auto* number = std::get_if<NumberMember>(&row.member)) {
    return number_text(row, number->get(settings));
  }
  if (const auto* text = std::get_if<TextMember>(&row.member)) return settings.**text;
  const auto kept = settings.kept.find(row.name);
  return kept == settings.kept.end() ? std::string(row.default_value) : kept->second;
}

// Settings that are unset when empty: then they have no line, as in Redis.
bool is_unset_when_empty(std::string_view name) {
  return name == "requirepass" || name == "masterauth" || name == "masteruser" ||
         name == "unixsocket";
}

std::vector<std::string> file_lines(const SettingRow& row, const Settings& settings) {
  std::vector<std::string> values;
  if (row.custom != nullptr && row.custom->lines != nullptr) {
    values = row.custom->lines(row, settings);
  } else {
    std::string value = print_value(row, settings);
    if (value.empty() && is_unset_when_empty(row.name)) return {};
    if (row.kind == Kind::kText) value = quote_word(value);
    const bool is_memory = row.kind == Kind::kMemory || row.kind == Kind::kMemoryOrPercent;
    if (is_memory && value.back() != '%') value = format_memory(*parse_memory(value));
    values.push_back(std::move(value));
  }
  for (std::string& value : values) value.insert(0, fmt::format("{} ", row.name));
  return values;
}

void keep_value(const SettingRow& row, Settings& settings, std::string value) {
  if (value == row.default_value) {
    settings.kept.erase(std::string(row.name));
  } else {
    settings.kept.insert_or_assign(std::string(row.name), std::move(value));
  }
}

std::optional<uint64_t> parse_memory(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto unit = unit_bytes(text.substr(digits));
  if (!unit) return {};
  const std::string number(text.substr(0, digits));
  return std::strtoull(number.c_str(), nullptr, 10) * *unit;
}

std::string format_memory(uint64_t bytes) {
  if (bytes != 0 && bytes % (1ull << 30) == 0) return fmt::format("{}gb", bytes >> 30);
  if (bytes != 0 && bytes % (1ull << 20) == 0) return fmt::format("{}mb", bytes >> 20);
  if (bytes != 0 && bytes % (1ull << 10) == 0) return fmt::format("{}kb", bytes >> 10);
  return fmt::format("{}", bytes);
}

std::optional<int64_t> parse_c_number(const std::string& text, int base) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, base);
  if (errno != 0 || *end != '\0') return {};
  return value;
}

std::optional<int64_t> parse_strict_number(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return {};
  const std::string_view digits = text.substr(text[0] == '-' ? 1 : 0);
  if (digits[0] == '0' && text.size() > 1) return {};
  return value;
}

std::string quote_word(std::string_view text) {
  static constexpr std::string_view kEscaped = "\n\r\t\a\b\\\"";
  static constexpr std::string_view kLetters = "nrtab\\\"";
  std::string made = "\"";
  for (const char c : text) {
    const size_t at = kEscaped.find(c);
    if (at != kEscaped.npos) {
      made += {'\\', kLetters[at]};
    } else if (c >= ' ' && c <= '~') {
      made += c;
    } else {
      made += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return made + '"';
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && lower_case(a) == lower_case(b);
}

}  // namespace ingot::settings
