// What a daemon owes its system: detaching, the pid file, limits of files and threads, readiness
// for systemd. Called by the main thread, where nothing else is said.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "storage/status.h"

namespace ingot::server {

// What is closed of standard input, output and error would be the number of the next file, a log of
// the data maybe, and what is printed would go there. First of all.
void open_standard_files();
// Detaches from the terminal; before any thread is started. The parent exits.
void daemonize();
// False with a reason in `*error`. The file is removed by remove_pidfile().
[[nodiscard]] bool write_pidfile(const std::string& path, std::string* error);
void remove_pidfile(const std::string& path);
// Raises the limit of open files as far as it goes without privileges (the engine keeps every table
// open), and to `wanted` if that is more and allowed. Answers what it is now.
uint64_t raise_file_limit(uint64_t wanted);
// No transparent huge pages for this process, whatever the system's default is. What it has already
// stays, so call this early. False if the kernel refuses.
[[nodiscard]] bool disable_huge_pages();
// Runs `work` on a thread; a failure, which is logged, if the system gives the process no more of
// them. Any thread.
storage::Status start_thread(std::thread* thread, std::function<void()> work);
// Lets a thread that cannot be started where the server cannot do without it end the process with a
// line in the log.
void expect_too_few_threads();
// Files that are no client's: tables, logs, sockets.
inline constexpr uint64_t kReservedFiles = 512;
// How many clients there may be of `wanted`: what they leave is the engine's, which would refuse
// writes until a restart without it. Raises the limit of open files. Any thread.
uint64_t clients_that_fit(uint64_t wanted);
// Of the thread that started the program, which rests while it serves.
struct MainThreadTimes {
  double system_s = 0;
  double user_s = 0;
};
MainThreadTimes main_thread_times();  // any thread
// Tells systemd ("READY=1", "STOPPING=1") if it started us and asked to be told.
void notify_systemd(const std::string& state);

}  // namespace ingot::server
