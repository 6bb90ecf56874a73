// Configuration files, CONFIG SET and CONFIG REWRITE: whatever is accepted can be said again. The
// values that are printed, set or loaded again, are the same, and so are those of the file that is
// written.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "src/settings/config.h"
#include "src/settings/config_file.h"
#include "src/settings/config_loader.h"
#include "src/settings/setting_values.h"
#include "storage/check.h"
#include "tests/fuzz/targets.h"
#include "tests/storage/temporary_directory.h"

namespace ingot::fuzz {
namespace {

using settings::Config;
using settings::Error;
using settings::Loader;
using settings::SettingRow;

[[noreturn]] void differ(const SettingRow& row, const std::string& before,
                         const std::string& after) {
  std::fprintf(stderr, "%s: \"%s\" became \"%s\"\n", std::string(row.name).c_str(), before.c_str(),
               after.c_str());
  std::abort();
}

void check_same(const settings::Settings& before, const settings::Settings& after) {
  for (const SettingRow* row : settings::setting_rows()) {
    const std::string value = print_value(*row, before);
    if (print_value(*row, after) != value) differ(*row, value, print_value(*row, after));
  }
}

// As CONFIG REWRITE writes them.
void load_lines_again(const settings::Settings& loaded) {
  std::string text;
  for (const SettingRow* row : settings::setting_rows()) {
    for (const std::string& line : file_lines(*row, loaded)) text += line + '\n';
  }
  Loader again("0");
  const Error error = again.load(text);
  if (error) std::fprintf(stderr, "%s\n", error->c_str());
  INGOT_CHECK(!error);
  check_same(loaded, again.settings());
}

void rewrite_file(std::string_view text) {
  static const storage::TemporaryDirectory directory;
  const std::string path = directory.file("ingot.conf");
  std::ofstream(path, std::ios::binary) << text;
  Config config("0");
  const std::vector<std::string> arguments = {path};
  INGOT_CHECK(!config.load(arguments));
  INGOT_CHECK(!config.rewrite());
  Config again("0");
  const Error error = again.load(arguments);
  if (error) std::fprintf(stderr, "%s\n", error->c_str());
  INGOT_CHECK(!error);
  check_same(*config.settings(), *again.settings());
  INGOT_CHECK(config.settings()->renamed_commands == again.settings()->renamed_commands);
}

// What CONFIG GET answers, CONFIG SET takes.
void set_again(Config& config, std::string_view name) {
  const auto pairs = config.get(std::span(&name, 1));
  INGOT_CHECK(pairs.size() == 1);
  const std::pair<std::string_view, std::string_view> change = pairs[0];
  const Error error = config.set(std::span(&change, 1), true);
  if (error) std::fprintf(stderr, "%s\n", error->c_str());
  INGOT_CHECK(!error);
  INGOT_CHECK(config.get(std::span(&name, 1)) == pairs);
}

void set_each_line(std::string_view text) {
  Config config("0");
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t space = line.find(' ');
    if (space == line.npos) continue;
    const std::pair change(line.substr(0, space), line.substr(space + 1));
    if (!config.set(std::span(&change, 1), true)) set_again(config, change.first);
  }
}

}  // namespace

void config(std::string_view input) {
  // To include what lies on this machine would be another input on the next one.
  const std::string lower = settings::lower_case(input);
  if (lower.find("include") != lower.npos) return;
  set_each_line(input);
  Loader loader("0");
  if (const Error error = loader.load(input)) {
    INGOT_CHECK(error->find("FATAL CONFIG FILE ERROR") != error->npos);
    return;
  }
  load_lines_again(loader.settings());
  // A log file would be made.
  if (loader.settings().logfile.empty()) rewrite_file(input);
}

}  // namespace ingot::fuzz
