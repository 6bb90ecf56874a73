// The program: reads the configuration, becomes what it asks for (a daemon, a systemd service),
// runs one server and stops it at SIGTERM, SIGINT or SHUTDOWN.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "src/access/user_file.h"
#include "src/commands/families.h"
#include "src/instance.h"
#include "src/metrics/log.h"
#include "src/server/crash_log.h"
#include "src/server/process.h"
#include "src/server/process_title.h"
#include "src/settings/config.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace {

using ingot::Instance;
using ingot::settings::Config;
using ingot::settings::MaxmemoryPolicy;
using ingot::settings::Settings;
using ingot::settings::Supervised;
namespace log = ingot::metrics::log;

constexpr const char* kUsage =
    "Usage: ingot-server [/path/to/ingot.conf] [options] [-]\n"
    "       ingot-server - (read the configuration from standard input)\n"
    "       ingot-server -v or --version\n"
    "       ingot-server -h or --help\n"
    "\n"
    "Any directive of the configuration file can stand on the command line:\n"
    "       ingot-server --port 7777 --dir /var/lib/ingot\n"
    "       ingot-server conf/ingot-ssd.conf --reader-threads 20 --loglevel verbose\n"
    "\n"
    "conf/ingot.conf explains every directive.\n";

// Signals are taken by one thread that waits for them; all others inherit the mask.
void block_signals(sigset_t* signals) {
  sigemptyset(signals);
  sigaddset(signals, SIGTERM);
  sigaddset(signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a failed write (EFBIG)
  signal(SIGHUP, SIG_IGN);
}

bool become_service(const Settings& settings) {
  std::error_code error;
  std::filesystem::create_directories(settings.dir, error);
  if (chdir(settings.dir.c_str()) != 0) {
    fmt::print(stderr, "Can't chdir to '{}': {}\n", settings.dir, std::strerror(errno));
    return false;
  }
  if (settings.daemonize) ingot::server::daemonize();
  if (std::string why = log::configure(settings); !why.empty()) {
    fmt::print(stderr, "{}\n", why);
    return false;
  }
  if (settings.disable_thp && !ingot::server::disable_huge_pages()) {
    log::warning("Cannot disable transparent huge pages: {}", std::strerror(errno));
  }
  ingot::server::expect_too_few_threads();
  ingot::server::write_crash_log(settings.crash_log_enabled, settings.logfile);
  return true;
}

std::string pidfile_of(const Settings& settings) {
  if (!settings.pidfile.empty()) return settings.pidfile;
  return settings.daemonize ? "/var/run/ingot.pid" : "";
}

void announce(const Config& config, const Settings& settings, const Instance& instance) {
  std::string ignored;
  for (const std::string& name : config.accepted_without_meaning()) ignored += " " + name;
  if (!ignored.empty()) log::notice("Accepted, without a meaning here:{}", ignored);
  if (settings.maxmemory_policy != MaxmemoryPolicy::kNoEviction) {
    log::warning(
        "No key is evicted, whatever maxmemory-policy says: data that exceed maxmemory stay on the "
        "disk, which max-disk and min-free-disk bound");
  }
  log::notice("Engine {} in {}, {} MB of memory, {} I/O threads, {} reader threads",
              settings.engine, ingot::settings::data_path(settings),
              instance.memory_limit_bytes() >> 20, settings.io_threads,
              settings.reader_threads == 0 ? "auto" : std::to_string(settings.reader_threads));
  log::notice("Ready to accept connections");
}

// The signal thread still waits and refers to the instance.
[[noreturn]] void end_process(int status) {
#ifdef __SANITIZE_ADDRESS__
  __lsan_do_leak_check();  // which _exit() would skip
#endif
  _exit(status);
}

int serve(Config& config, const sigset_t& signals) {
  auto settings = config.settings();
  if (!become_service(*settings)) return 1;
  log::notice("Ingot {} is starting, pid {}", INGOT_VERSION, getpid());
  Instance instance(config);
  // A load at the first start takes long, and can be ended as well.
  std::thread([&instance, &config, signals] {
    for (int signal = 0;;) {
      if (sigwait(&signals, &signal) != 0) continue;
      const bool is_int = signal == SIGINT;
      if (is_int && instance.insist_on_shutdown()) {
        log::warning("You insist... exiting now.");
        continue;
      }
      log::warning("Received {} scheduling shutdown...", is_int ? "SIGINT" : "SIGTERM");
      const auto now = config.settings();
      const std::string& flags = is_int ? now->shutdown_on_sigint : now->shutdown_on_sigterm;
      (void)instance.request_shutdown(flags.find("now") != flags.npos);
    }
  }).detach();
  const std::string pidfile = pidfile_of(*settings);
  bool has_pidfile = false;  // and not another server on this directory
  const auto write_pidfile = [&] {
    std::string why;
    has_pidfile = !pidfile.empty() && ingot::server::write_pidfile(pidfile, &why);
    if (!why.empty()) log::warning("{}", why);
  };
  if (auto error = instance.open(write_pidfile)) {
    log::warning("{}", *error);
    instance.close();
    if (has_pidfile) ingot::server::remove_pidfile(pidfile);
    end_process(instance.shutdown_requested() ? 0 : 1);
  }
  ingot::server::show_title(*settings, config.file());
  announce(config, *settings, instance);
  if (settings->supervised != Supervised::kNo) ingot::server::notify_systemd("READY=1");

  instance.wait();
  instance.close();
  if (has_pidfile) ingot::server::remove_pidfile(pidfile);
  log::warning("Ingot is now ready to exit, bye bye...");
  end_process(0);
}

}  // namespace

int main(int argc, char** argv) {
  ingot::server::open_standard_files();
  std::vector<std::string> arguments(argv + 1, argv + argc);
  ingot::server::make_room_for_title(argc, argv);
  if (arguments.size() == 1 && (arguments[0] == "-v" || arguments[0] == "--version")) {
    fmt::print("Ingot server v={} bits={}\n", INGOT_VERSION, sizeof(void*) * 8);
    return 0;
  }
  if (arguments.size() == 1 && (arguments[0] == "-h" || arguments[0] == "--help")) {
    fmt::print("{}", kUsage);
    return 0;
  }
  sigset_t signals;
  block_signals(&signals);
  Config config(INGOT_VERSION);
  const ingot::access::CommandIds commands(ingot::commands::all_families());
  config.check_users_by([&commands](const Settings& before, std::span<const std::string> words) {
    return ingot::access::check_user_line(commands, before, words);
  });
  if (auto error = config.load(arguments)) {
    fmt::print(stderr, "{}{}", *error, error->ends_with('\n') ? "" : "\n");
    return 1;
  }
  return serve(config, signals);
}
