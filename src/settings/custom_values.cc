// The settings with a syntax of their own: lists, classes, flags, the directory.
#include "src/settings/custom_values.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "src/settings/config_file.h"
#include "src/settings/setting_values.h"

namespace ingot::settings {
namespace {

using Values = std::span<const std::string>;

std::string print_kept(const SettingRow& row, const Settings& settings) {
  const auto kept = settings.kept.find(row.name);
  return kept == settings.kept.end() ? std::string(row.default_value) : kept->second;
}

// A single empty value stands for none.
Values without_empty(Values values) {
  return values.size() == 1 && values[0].empty() ? Values{} : values;
}

std::string empty_quoted(const std::string& text) {
  return text.empty() ? "\"\"" : text;
}

// bind: addresses and host names; each one word, because CONFIG GET and REWRITE join them.

Error parse_bind(const SettingRow&, Settings& settings, Values values, bool) {
  constexpr size_t kAddressesMax = 16;
  if (values.size() > kAddressesMax) return "Too many bind addresses specified.";
  values = without_empty(values);
  for (const std::string& value : values) {
    if (split_words(value) != std::vector{value}) return "Invalid bind address";
  }
  settings.bind.assign(values.begin(), values.end());
  return {};
}

std::string print_bind(const SettingRow&, const Settings& settings) {
  return fmt::format("{}", fmt::join(settings.bind, " "));
}

std::vector<std::string> bind_lines(const SettingRow& row, const Settings& settings) {
  return {empty_quoted(print_bind(row, settings))};
}

// dir: must exist, as for Redis, which changes to it while it reads the file.

Error parse_dir(const SettingRow&, Settings& settings, Values values, bool) {
  if (values.size() != 1) return "wrong number of arguments";
  const auto path = std::filesystem::path(settings.dir) / values[0];
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  if (values[0].empty()) return std::strerror(ENOENT);
  if (error) return std::strerror(error.value());
  if (!std::filesystem::is_directory(real, error)) return std::strerror(ENOTDIR);
  if (::access(real.c_str(), X_OK) != 0) return std::strerror(errno);
  settings.dir = real.string();
  return {};
}

std::string print_dir(const SettingRow&, const Settings& settings) {
  std::error_code error;
  const auto path = std::filesystem::absolute(settings.dir, error);
  return error ? settings.dir : path.lexically_normal().string();
}

std::vector<std::string> dir_lines(const SettingRow& row, const Settings& settings) {
  return {quote_word(print_dir(row, settings))};
}

// client-output-buffer-limit: any number of "<class> <hard> <soft> <seconds>".

constexpr std::string_view kClassNames[] = {"normal", "slave", "pubsub"};

std::optional<size_t> client_class(std::string_view name) {
  if (same_word(name, "replica")) return kReplicaClients;
  for (size_t i = 0; i < std::size(kClassNames); i++) {
    if (same_word(name, kClassNames[i])) return i;
  }
  return {};
}

Error parse_output_limits(const SettingRow&, Settings& settings, Values values, bool) {
  if (values.size() % 4 != 0) return "Wrong number of arguments in buffer limit configuration.";
  auto limits = settings.output_limits;
  for (size_t i = 0; i < values.size(); i += 4) {
    const auto client = client_class(values[i]);
    if (!client) return "Invalid client class specified in buffer limit configuration.";
    const auto hard = parse_memory(values[i + 1]);
    const auto soft = parse_memory(values[i + 2]);
    const auto seconds = parse_c_number(values[i + 3]);
    if (!hard || !soft || !seconds || *seconds < 0) {
      return "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
    }
    limits[*client] = {.hard_bytes = *hard, .soft_bytes = *soft, .soft_seconds = *seconds};
  }
  settings.output_limits = limits;
  return {};
}

std::string print_output_limits(const SettingRow&, const Settings& settings) {
  std::string made;
  for (size_t i = 0; i < std::size(kClassNames); i++) {
    const OutputLimit& limit = settings.output_limits[i];
    made += fmt::format("{}{} {} {} {}", i == 0 ? "" : " ", kClassNames[i], limit.hard_bytes,
                        limit.soft_bytes, limit.soft_seconds);
  }
  return made;
}

std::vector<std::string> output_limit_lines(const SettingRow&, const Settings& settings) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::size(kClassNames); i++) {
    const OutputLimit& limit = settings.output_limits[i];
    const std::string_view name = i == kReplicaClients ? "replica" : kClassNames[i];
    lines.push_back(fmt::format("{} {} {} {}", name, format_memory(limit.hard_bytes),
                                format_memory(limit.soft_bytes), limit.soft_seconds));
  }
  return lines;
}

// notify-keyspace-events: letters.

struct NotifyLetter {
  char letter;
  uint32_t bits;
};
constexpr NotifyLetter kClassLetters[] = {
    {'g', notify::kGeneric}, {'$', notify::kString},  {'l', notify::kList},
    {'s', notify::kSet},     {'h', notify::kHash},    {'z', notify::kZset},
    {'x', notify::kExpired}, {'e', notify::kEvicted}, {'t', notify::kStream},
    {'d', notify::kModule},  {'n', notify::kNew}};
constexpr NotifyLetter kOtherLetters[] = {
    {'K', notify::kKeyspace}, {'E', notify::kKeyevent}, {'m', notify::kKeyMiss}};

Error parse_notify(const SettingRow&, Settings& settings, Values values, bool) {
  if (values.size() != 1) return "wrong number of arguments";
  uint32_t bits = 0;
  for (const char c : values[0]) {
    uint32_t bit = c == 'A' ? static_cast<uint32_t>(notify::kAll) : 0u;
    for (const NotifyLetter& known : kClassLetters) bit |= known.letter == c ? known.bits : 0;
    for (const NotifyLetter& known : kOtherLetters) bit |= known.letter == c ? known.bits : 0;
    if (bit == 0) return "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
    bits |= bit;
  }
  settings.notify_keyspace_events = bits;
  return {};
}

std::string print_notify(const SettingRow&, const Settings& settings) {
  const uint32_t bits = settings.notify_keyspace_events;
  std::string made;
  if ((bits & notify::kAll) == notify::kAll) {
    made = "A";  // and, as in Redis, without the n
  } else {
    for (const NotifyLetter& known : kClassLetters) {
      if ((bits & known.bits) != 0) made += known.letter;
    }
  }
  for (const NotifyLetter& known : kOtherLetters) {
    if ((bits & known.bits) != 0) made += known.letter;
  }
  return made;
}

std::vector<std::string> notify_lines(const SettingRow& row, const Settings& settings) {
  std::string letters = print_notify(row, settings);
  const bool hides_new =
      letters.starts_with('A') && (settings.notify_keyspace_events & notify::kNew) != 0;
  return {quote_word(hides_new ? letters + 'n' : letters)};
}

// reader-threads: a number, or auto.

Error parse_reader_threads(const SettingRow&, Settings& settings, Values values, bool) {
  constexpr int64_t kThreadsMax = 1024;
  if (values.size() != 1) return "wrong number of arguments";
  if (same_word(values[0], "auto")) {
    settings.reader_threads = 0;
    return {};
  }
  const auto threads = parse_strict_number(values[0]);
  if (!threads) return "argument couldn't be parsed into an integer";
  if (*threads < 1 || *threads > kThreadsMax) {
    return "argument must be between 1 and 1024 inclusive";
  }
  settings.reader_threads = static_cast<int>(*threads);
  return {};
}

std::string print_reader_threads(const SettingRow&, const Settings& settings) {
  return settings.reader_threads == 0 ? "auto" : fmt::format("{}", settings.reader_threads);
}

// latency-tracking-info-percentiles: numbers from 0 to 100.

Error parse_percentiles(const SettingRow&, Settings& settings, Values values, bool) {
  std::vector<double> made;
  for (const std::string& value : without_empty(values)) {
    char* end = nullptr;
    const double percentile = std::strtod(value.c_str(), &end);
    const bool starts_well =
        !value.empty() && std::isspace(static_cast<unsigned char>(value[0])) == 0;
    if (!starts_well || *end != '\0' || std::isnan(percentile)) {
      return "Invalid latency-tracking-info-percentiles parameters";
    }
    if (percentile < 0 || percentile > 100) {
      return "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]";
    }
    made.push_back(percentile);
  }
  settings.latency_tracking_percentiles = std::move(made);
  return {};
}

std::string print_percentiles(const SettingRow&, const Settings& settings) {
  std::string text;
  for (const double percentile : settings.latency_tracking_percentiles) {
    text += (text.empty() ? "" : " ") + format_percentile(percentile);
  }
  return text;
}

std::vector<std::string> percentile_lines(const SettingRow& row, const Settings& settings) {
  return {empty_quoted(print_percentiles(row, settings))};
}

// save: pairs of seconds and changes; several lines of a file add up.

Error parse_save(const SettingRow& row, Settings& settings, Values values, bool add) {
  values = without_empty(values);
  if (values.size() % 2 != 0) return "Invalid save parameters";
  std::string made = add && !values.empty() ? print_kept(row, settings) : "";
  for (size_t i = 0; i < values.size(); i++) {
    const auto number = parse_c_number(values[i]);
    if (!number || *number < (i % 2 == 0 ? 1 : 0)) return "Invalid save parameters";
    made += fmt::format("{}{}", made.empty() ? "" : " ", *number);
  }
  keep_value(row, settings, std::move(made));
  return {};
}

std::vector<std::string> save_lines(const SettingRow& row, const Settings& settings) {
  const std::string printed = print_kept(row, settings);
  const auto words = split_words(printed);
  if (!words || words->empty()) return {empty_quoted(printed)};
  std::vector<std::string> lines;
  for (size_t i = 0; i + 1 < words->size(); i += 2) {
    lines.push_back((*words)[i] + " " + (*words)[i + 1]);
  }
  return lines;
}

// hz: any number, kept within what makes sense.

Error parse_hz(const SettingRow& row, Settings& settings, Values values, bool) {
  if (values.size() != 1) return "wrong number of arguments";
  const auto hz = parse_strict_number(values[0]);
  if (!hz) return "argument couldn't be parsed into an integer";
  if (*hz < 0 || *hz > std::numeric_limits<int>::max()) {
    return "argument must be between 0 and 2147483647 inclusive";
  }
  keep_value(row, settings, fmt::format("{}", std::clamp<int64_t>(*hz, 1, 500)));
  return {};
}

// oom-score-adj-values: three numbers.

Error parse_oom_scores(const SettingRow&, Settings& settings, Values values, bool) {
  std::array<int, 3> scores{};
  if (values.size() != scores.size()) return "wrong number of arguments";
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto number = parse_c_number(values[i]);
    if (!number || *number < -2000 || *number > 2000) {
      return "Invalid oom-score-adj-values, elements must be between -2000 and 2000.";
    }
    scores[i] = static_cast<int>(*number);
  }
  settings.oom_score_adj_values = scores;
  return {};
}

std::string print_oom_scores(const SettingRow&, const Settings& settings) {
  return fmt::format("{}", fmt::join(settings.oom_score_adj_values, " "));
}

// replicaof: "<host> <port>", or "no one".

Error parse_replica_of(const SettingRow&, Settings& settings, Values values, bool) {
  if (values.size() != 2) return "wrong number of arguments";
  if (same_word(values[0], "no") && same_word(values[1], "one")) {
    settings.master = {};
    return {};
  }
  const auto port = parse_c_number(values[1]);
  if (!port || *port < 0 || *port > 65535) return "Invalid master port";
  settings.master = {.host = values[0], .port = static_cast<int>(*port)};
  return {};
}

std::string print_replica_of(const SettingRow&, const Settings& settings) {
  const MasterAddress& master = settings.master;
  return master.host.empty() ? "" : fmt::format("{} {}", master.host, master.port);
}

std::vector<std::string> replica_of_lines(const SettingRow& row, const Settings& settings) {
  const std::string printed = print_replica_of(row, settings);
  return printed.empty() ? std::vector<std::string>() : std::vector{printed};
}

// shutdown-on-sigint, shutdown-on-sigterm: names that add up.

Error parse_shutdown_flags(const SettingRow& row, Settings& settings, Values values, bool) {
  constexpr std::string_view kWrong =
      "argument(s) must be one of the following: default, save, nosave, now, force";
  if (values.empty()) return std::string(kWrong);
  int64_t bits = 0;
  for (const std::string& value : values) {
    const auto known = std::ranges::find_if(
        row.names, [&](const EnumName& name) { return same_word(name.name, value); });
    if (known == row.names.end()) return std::string(kWrong);
    bits |= known->value;
  }
  constexpr int64_t kSaveAndNosave = 1 | 2;
  if ((bits & kSaveAndNosave) == kSaveAndNosave) {
    return "shutdown options SAVE and NOSAVE can't be used simultaneously";
  }
  std::string made;
  for (const EnumName& name : row.names) {
    if ((name.value & bits) != 0) made += (made.empty() ? "" : " ") + std::string(name.name);
  }
  settings.*std::get<TextMember>(row.member) = made.empty() ? "default" : made;
  return {};
}

std::string print_shutdown_flags(const SettingRow& row, const Settings& settings) {
  return settings.*std::get<TextMember>(row.member);
}

}  // namespace

const CustomValue kBindValue = {parse_bind, print_bind, bind_lines};
const CustomValue kDirValue = {parse_dir, print_dir, dir_lines};
const CustomValue kOutputLimitsValue = {parse_output_limits, print_output_limits,
                                        output_limit_lines};
const CustomValue kNotifyValue = {parse_notify, print_notify, notify_lines};
const CustomValue kReaderThreadsValue = {parse_reader_threads, print_reader_threads};
const CustomValue kPercentilesValue = {parse_percentiles, print_percentiles, percentile_lines};
const CustomValue kSaveValue = {parse_save, print_kept, save_lines};
const CustomValue kHzValue = {parse_hz, print_kept};
const CustomValue kOomScoresValue = {parse_oom_scores, print_oom_scores};
const CustomValue kReplicaOfValue = {parse_replica_of, print_replica_of, replica_of_lines};
const CustomValue kShutdownFlagsValue = {parse_shutdown_flags, print_shutdown_flags};

std::string format_percentile(double percentile) {
  std::string text = fmt::format("{:f}", percentile);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace ingot::settings
