// Forking away, writing the pid file, raising the file limit, and the datagram to systemd.
#include "src/server/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "src/metrics/log.h"

namespace ingot::server {

void open_standard_files() {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

void daemonize() {
  pid_t child = fork();
  if (child < 0) std::perror("fork");
  if (child != 0) _exit(child < 0 ? 1 : 0);
  setsid();
  int null = open("/dev/null", O_RDWR);
  if (null < 0) return;
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  if (null > STDERR_FILENO) close(null);
}

bool write_pidfile(const std::string& path, std::string* error) {
  std::ofstream out(path);
  out << getpid() << '\n';
  out.flush();
  if (out) return true;
  *error = "cannot write pid file " + path + ": " + std::strerror(errno);
  return false;
}

void remove_pidfile(const std::string& path) {
  unlink(path.c_str());
}

bool disable_huge_pages() {
  return prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0;
}

storage::Status start_thread(std::thread* thread, std::function<void()> work) {
  try {
    *thread = std::thread(std::move(work));
  } catch (const std::system_error& error) {
    metrics::log::warning("Can't start a thread: {}", error.what());
    return {storage::Status::Code::kIo, fmt::format("Can't start a thread: {}", error.what())};
  }
  return {};
}

void expect_too_few_threads() {
  static const std::terminate_handler otherwise = std::set_terminate([] {
    try {
      if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::resource_unavailable_try_again) {
        metrics::log::warning(
            "Can't start a thread: {}. The server needs more of them than the system allows it "
            "('ulimit -u', pids.max of a control group, TasksMax of systemd). Exiting.",
            error.what());
        _exit(1);
      }
    } catch (...) {
    }
    otherwise();
  });
}

uint64_t raise_file_limit(uint64_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_max < wanted) {
    // Past the hard limit only the privileged get.
    const rlimit raised{.rlim_cur = wanted, .rlim_max = wanted};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return wanted;
  }
  const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return limit.rlim_max;
  return limit.rlim_cur;
}

uint64_t clients_that_fit(uint64_t wanted) {
  constexpr uint64_t kLeast = 96;  // with fewer no engine works
  const uint64_t files = raise_file_limit(wanted + kReservedFiles);
  if (files >= wanted + kReservedFiles) return wanted;
  return files - std::min(files, std::clamp(files / 2, kLeast, kReservedFiles));
}

MainThreadTimes main_thread_times() {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", getpid()));
  std::string line;
  std::getline(file, line);
  // The name stands in brackets and may hold anything; the times are fields 14 and 15.
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user_ticks = 0;
  double system_ticks = 0;
  fields >> user_ticks >> system_ticks;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return {.system_s = system_ticks / ticks, .user_s = user_ticks / ticks};
}

void notify_systemd(const std::string& state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || std::strlen(path) < 2 || std::strlen(path) >= sizeof(address.sun_path)) {
    return;
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, std::strlen(path));
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // the abstract namespace
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  (void)sendto(fd, state.data(), state.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), length);
  close(fd);
}

}  // namespace ingot::server
