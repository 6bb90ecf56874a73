// How the log file is opened: to see at the start whether it can be, for each line, and for the
// report of a crash. Any thread, and signal handlers.
#pragma once

#include <fcntl.h>

namespace ingot::settings {

// A descriptor, which the caller closes; -1 and errno. Of a pipe that nobody reads nobody waits for
// a reader: what is written there is lost.
inline int open_log_file(const char* path) {
  return ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
}

}  // namespace ingot::settings
