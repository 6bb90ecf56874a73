// The handler of the signals that end a process by its own fault. It does only what a signal
// handler may: the text is put together without the heap, and written to a descriptor.
#include "src/server/crash_log.h"

#include <execinfo.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include "src/settings/log_file.h"

namespace ingot::server {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kFramesMax = 100;

// Empty: standard output. It is opened by the handler, as it may have been rotated since.
std::array<char, PATH_MAX> log_path;
int log_fd = STDOUT_FILENO;  // of the handler

template <typename... Args>
void print(fmt::format_string<const Args&...> format, const Args&... args) {
  std::array<char, 256> text;
  const auto made = fmt::format_to_n(text.data(), text.size(), format, args...);
  (void)!write(log_fd, text.data(), std::min(made.size, text.size()));
}

// The signal's own action follows: it is raised again, as when there was no handler.
void on_crash(int signal, siginfo_t* info, void*) {
  if (log_path[0] != '\0') {
    const int fd = settings::open_log_file(log_path.data());
    log_fd = fd < 0 ? STDERR_FILENO : fd;
  }
  print("\n=== INGOT BUG REPORT START: Cut & paste starting from here ===\n");
  print("{}:M # Ingot {} crashed by signal: {}, si_code: {}\n", getpid(), INGOT_VERSION, signal,
        info->si_code);
  if (signal == SIGSEGV || signal == SIGBUS) {
    print("Accessing address: {}\n", static_cast<const void*>(info->si_addr));
  }
  if (info->si_code <= 0) print("Sent by the process {}\n", info->si_pid);
  print("\n------ STACK TRACE ------\n");
  std::array<void*, kFramesMax> frames;
  backtrace_symbols_fd(frames.data(), backtrace(frames.data(), kFramesMax), log_fd);
  print("\n=== INGOT BUG REPORT END. addr2line -Cfe ingot-server tells what stands there ===\n");
  raise(signal);
}

}  // namespace

void write_crash_log(bool enabled, const std::string& file) {
  if (kIsSanitized) return;
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = SIG_DFL;
  if (enabled) {
    *std::copy_n(file.begin(), std::min(file.size(), log_path.size() - 1), log_path.begin()) = 0;
    std::array<void*, 1> loaded;
    (void)backtrace(loaded.data(), 1);  // loads a library, which the handler may not
    action.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER;
    action.sa_sigaction = on_crash;
  }
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

}  // namespace ingot::server
