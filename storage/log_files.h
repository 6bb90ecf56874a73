// The write-ahead logs of an engine's directory, for the disk figures of INFO.
#pragma once

#include <cstdint>
#include <string>

namespace ingot::storage {

// Bytes of the files named *.log in `directory`, as both RocksDB and LevelDB name their logs; what
// cannot be read counts as nothing. Lists the directory: not for a hot path.
uint64_t log_file_bytes(const std::string& directory);

}  // namespace ingot::storage
