// INGOT_CHECK guards what only a mistake of our own can break, and stays on in release: a server
// that is wrong about its data stops before it writes that down. What a client, a disk or a file
// can cause is a returned error instead. Any thread.
#pragma once

namespace ingot::storage {

// Says which invariant broke, and where, on standard error; then aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace ingot::storage

#define INGOT_CHECK(condition)                         \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::ingot::storage::check_failed(#condition, __FILE__, __LINE__))
