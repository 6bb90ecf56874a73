// One setting is one row: its names, what values it takes, where its value is kept and who may
// change it. The configuration file, CONFIG GET, SET and REWRITE all follow from the rows, which
// are constant data with static lifetime.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/settings/settings.h"

namespace ingot::settings {

// What is wrong, in Redis' words; nothing when all is well.
using Error = std::optional<std::string>;

enum class Kind : uint8_t {
  kBool,
  kInteger,
  kMemory,           // with units: 1k is 1000 bytes, 1kb is 1024
  kMemoryOrPercent,  // a percentage is kept as a negative number
  kOctal,
  kEnum,
  kText,
  kCustom,
};

// Flags of a row.
enum : uint8_t {
  kImmutable = 1u << 0,       // only before the server starts
  kProtected = 1u << 1,       // CONFIG SET needs enable-protected-configs
  kUnsigned = 1u << 2,        // the range is one of unsigned numbers
  kHidden = 1u << 3,          // CONFIG GET answers it only by its exact name
  kManyValues = 1u << 4,      // takes a list of values
  kWithoutMeaning = 1u << 5,  // accepted and answered, and nothing else
  kVolatile = 1u << 6,        // names a file, which is read anew even if the name stays
};

struct EnumName {
  std::string_view name;
  int64_t value;  // of several names with one value the first is printed
};

// Reads and changes one numeric, boolean or enumerated member.
struct NumberMember {
  int64_t (*get)(const Settings& settings);
  void (*set)(Settings& settings, int64_t value);
};
using TextMember = std::string Settings::*;

struct SettingRow;

// A setting with a syntax of its own.
struct CustomValue {
  // `add`: an earlier line of the same load has set it, and lists may grow.
  Error (*parse)(const SettingRow& row, Settings& settings, std::span<const std::string> values,
                 bool add);
  std::string (*print)(const SettingRow& row, const Settings& settings);
  // What stands behind the name in each of its lines of the file; null: one line, as printed.
  std::vector<std::string> (*lines)(const SettingRow& row, const Settings& settings) = nullptr;
};

struct SettingRow {
  std::string_view name;
  std::string_view alias = {};  // empty: none
  Kind kind = Kind::kText;
  uint8_t flags = 0;
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
  std::span<const EnumName> names = {};
  std::variant<std::monostate, NumberMember, TextMember> member = {};  // none: Settings::kept
  std::string_view default_value = {};               // of a kept setting; Settings has the others'
  Error (*check)(std::string_view value) = nullptr;  // a further rule
  const CustomValue* custom = nullptr;

  bool is(uint8_t flag) const { return (flags & flag) != 0; }
};

std::span<const SettingRow> used_rows();               // with a member in Settings
std::span<const SettingRow> rows_without_meaning();    // kept only
const std::vector<const SettingRow*>& setting_rows();  // all, in the order of CONFIG GET

struct FoundSetting {
  const SettingRow* row = nullptr;
  std::string_view name;  // the row's name or its alias, whichever was asked for
};
// By name or alias in any case; row is null when there is none.
FoundSetting find_setting(std::string_view name);

}  // namespace ingot::settings
