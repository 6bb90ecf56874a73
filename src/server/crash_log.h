// What a crash leaves in the log: the signal, the address and the stack (crash-log-enabled). Not in
// builds with sanitizers, which tell more themselves.
#pragma once

#include <string>

namespace ingot::server {

// From now on, or not any more. `file`: the log, an absolute path or one from where the process
// works; empty: standard output. Any thread, one at a time.
void write_crash_log(bool enabled, const std::string& file);

}  // namespace ingot::server
