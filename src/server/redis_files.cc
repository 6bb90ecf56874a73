// Looking for Redis' files, and reading its manifest.
#include "src/server/redis_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "src/contract/args.h"
#include "src/settings/setting_rows.h"
#include "src/settings/setting_values.h"

namespace ingot::server {

namespace {

namespace fs = std::filesystem;

std::string setting(const settings::Settings& settings, std::string_view name) {
  return settings::print_value(*settings::find_setting(name).row, settings);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  const bool empty = fs::is_empty(path, ignored);
  return !ignored && !empty;
}

// The words of a line of the manifest; a name with spaces stands in quotes.
std::optional<std::vector<std::string>> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> std::ws && !in.eof();) {
    if (in.peek() != '"') {
      in >> word;
    } else {
      in.get();
      if (!std::getline(in, word, '"') || in.eof()) return std::nullopt;
    }
    words.push_back(word);
  }
  return words;
}

// What the lines before have named.
struct Named {
  bool base = false;
  int64_t appended = 0;  // the number of the last file
};

// file <name> seq <number> type b|i|h, in any order. One base, and the files behind it in the order
// of their numbers: else something would be run twice, or too early.
bool read_line(const std::string& line, const fs::path& dir, Named* named, RedisFiles* files) {
  const auto words = words_of(line);
  if (!words || words->size() < 6 || words->size() % 2 != 0) return false;
  std::string name, type;
  int64_t number = 0;
  for (size_t i = 0; i < words->size(); i += 2) {
    if ((*words)[i] == "file") name = (*words)[i + 1];
    if ((*words)[i] == "type") type = (*words)[i + 1];
    if ((*words)[i] == "seq") number = contract::parse_integer((*words)[i + 1]).value_or(0);
  }
  if (name.empty() || name.find('/') != name.npos || type.size() != 1 || number == 0) {
    return false;
  }
  if (type == "h") return true;  // history: to be deleted
  if (type == "b" ? std::exchange(named->base, true)
                  : type != "i" || number <= std::exchange(named->appended, number)) {
    return false;
  }
  const fs::path path = dir / name;
  std::error_code gone;
  if (!fs::exists(path, gone)) {
    files->error = fmt::format("the manifest names {}, which is not there", path.string());
    return true;
  }
  RedisFiles::Part part{.path = path.string()};
  // A base stands before what was appended.
  type == "b" ? void(files->parts.insert(files->parts.begin(), part))
              : files->parts.push_back(part);
  return true;
}

void read_manifest(const fs::path& manifest, RedisFiles* files) {
  std::ifstream in(manifest);
  int number = 0;
  Named named;
  for (std::string line; files->error.empty() && std::getline(in, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.starts_with('#')) continue;
    if (!read_line(line, manifest.parent_path(), &named, files)) {
      files->error = fmt::format("line {} of {} is none of a manifest", number, manifest.string());
    }
  }
  if (files->error.empty() && files->parts.empty()) {
    files->error = fmt::format("{} names no file", manifest.string());
  }
}

}  // namespace

RedisFiles find_redis_files(const settings::Settings& settings) {
  const fs::path dir = settings.dir;
  const fs::path dump = dir / settings.dbfilename;
  const std::string log_name = setting(settings, "appendfilename");
  const fs::path log_dir = dir / setting(settings, "appenddirname");
  const fs::path manifest = log_dir / (log_name + ".manifest");
  const fs::path old_log = dir / log_name;
  std::error_code ignored;
  const bool has_dump = fs::exists(dump, ignored);  // an empty one is a damaged one
  const bool has_manifest = is_there(manifest);
  const bool has_log = has_manifest || is_there(log_dir) || is_there(old_log);
  const bool uses_log = setting(settings, "appendonly") == "yes";

  RedisFiles files;
  if (has_dump && !fs::is_regular_file(dump, ignored)) {
    files.error = fmt::format("{} is no file", dump.string());
    return files;
  }
  if (!uses_log) {
    if (has_dump) files.parts.push_back({.path = dump.string()});
    if (!has_log) return files;
    const std::string log = is_there(log_dir) ? log_dir.string() : old_log.string();
    if (has_dump) {
      files.passed_over =
          fmt::format("{} is passed over, as Redis does: 'appendonly yes' would load it and not {}",
                      log, dump.string());
    } else {
      files.error = fmt::format("Redis would start empty beside {} with 'appendonly no'", log);
    }
    return files;
  }
  if (has_manifest) {
    read_manifest(manifest, &files);
  } else if (is_there(old_log)) {
    files.parts.push_back({.path = old_log.string()});
  } else if (has_log) {
    files.error = fmt::format("{} has no manifest ({})", log_dir.string(), log_name + ".manifest");
  } else if (has_dump) {
    files.error =
        fmt::format("Redis would start empty beside {} with 'appendonly yes'", dump.string());
  }
  if (!files.parts.empty()) {
    files.parts.back().may_be_cut_off = true;
    if (has_dump)
      files.passed_over = fmt::format("{} is passed over, as Redis does", dump.string());
  }
  return files;
}

}  // namespace ingot::server
