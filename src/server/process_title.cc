// Filling in the template; libbsd knows where the kernel looks for the title.
#include "src/server/process_title.h"

#include <bsd/unistd.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace ingot::server {
namespace {

std::string program;  // the name it was started by; set before there is a second thread

std::string value_of(std::string_view variable, const settings::Settings& settings,
                     const std::string& config_file) {
  if (variable == "title") return program;
  if (variable == "port") return std::to_string(settings.port);
  if (variable == "tls-port") return std::to_string(settings.tls_port);
  if (variable == "unixsocket") return settings.unixsocket;
  if (variable == "config-file") return config_file.empty() ? "-" : config_file;
  if (variable != "listen-addr") return {};  // server-mode: neither a cluster nor Sentinel
  const int port = settings.port != 0 ? settings.port : settings.tls_port;
  if (port == 0) return settings.unixsocket;
  return fmt::format("{}:{}", settings.bind.empty() ? "*" : settings.bind.front(), port);
}

}  // namespace

std::string process_title(const settings::Settings& settings, const std::string& config_file) {
  std::string_view left = settings.proc_title_template;
  std::string title;
  while (!left.empty()) {
    const bool is_brace = left.starts_with("{{");
    const bool is_variable = left.front() == '{' && !is_brace;
    const size_t end = is_variable ? left.find('}') + 1 : is_brace ? 2 : 1;
    if (is_variable) {
      title += value_of(left.substr(1, end - 2), settings, config_file);
    } else {
      title += left.front();
    }
    left.remove_prefix(end);
  }
  title.resize(title.find_last_not_of(' ') + 1);
  return title.substr(std::min(title.find_first_not_of(' '), title.size()));
}

void make_room_for_title(int argc, char** argv) {
  program = argv[0];
  setproctitle_init(argc, argv, environ);
}

void show_title(const settings::Settings& settings, const std::string& config_file) {
  if (!settings.set_proc_title) return;
  setproctitle("-%s", process_title(settings, config_file).c_str());
}

}  // namespace ingot::server
