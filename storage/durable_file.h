// Small files that must survive a power loss. Any thread; all wait for the disk.
#pragma once

#include <string>
#include <string_view>

#include "storage/status.h"

namespace ingot::storage {

// What a system call on `path` has just failed with: kNoSpace for a full disk, else kIo.
Status file_failure(std::string_view what, const std::string& path);

// Makes the names in a directory durable.
Status sync_directory(const std::string& path);

// Reads all of the file `path`. kIo when that cannot be done, as when there is none.
Status read_file(const std::string& path, std::string* bytes);

// Writes the file `path` anew and makes it durable, with its name: after a crash at any time it is
// there whole, or what was there before is. kNoSpace on a full disk.
Status write_durably(const std::string& path, std::string_view bytes);

}  // namespace ingot::storage
