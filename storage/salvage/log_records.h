// The records of a file in the log form (write-ahead logs and manifests of both engines; log_end.cc
// draws it), read on behind damage: whatever has a right checksum is found again, wherever in a
// block it begins. Pure but for the file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "storage/status.h"

namespace ingot::storage {

struct LogEvents {
  std::function<void(std::string_view record)> record;
  // Bytes [begin, end) of the file that are no part of a whole record, before the records that
  // follow. `at_end`: nothing follows, and the bytes may be a record that was never finished.
  std::function<void(uint64_t begin, uint64_t end, bool at_end)> damage;
};

// An error only when the file cannot be opened.
Status read_log(const std::string& path, const LogEvents& events);

}  // namespace ingot::storage
