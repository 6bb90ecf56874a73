// What a daemon owes its system: detaching, the pid file, file limits, readiness for systemd.
// Called by the main thread.
#pragma once

#include <cstdint>
#include <string>

namespace ingot::server {

// Detaches from the terminal; before any thread is started. The parent exits.
void daemonize();
// False with a reason in `*error`. The file is removed by remove_pidfile().
[[nodiscard]] bool write_pidfile(const std::string& path, std::string* error);
void remove_pidfile(const std::string& path);
// Raises the limit of open files as far as it goes without privileges (the engine keeps every table
// open), and to `wanted` if that is more and allowed. Answers what it is now.
uint64_t raise_file_limit(uint64_t wanted);
// No page of 2 MB for this process, whatever the system's default is; before any thread is started,
// as each stack would begin with one. False if the kernel refuses.
[[nodiscard]] bool disable_huge_pages();
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
