// LevelDB's statuses in Ingot's terms.
#include "storage/leveldb/leveldb_status.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace ingot::storage {

Status to_status(const leveldb::Status& status) {
  using Code = Status::Code;
  if (status.ok()) return {};
  const std::string text = status.ToString();
  Code code = Code::kIo;
  if (status.IsCorruption()) {
    code = Code::kCorruption;
  } else if (status.IsInvalidArgument()) {
    code = Code::kInvalid;
  } else if (status.IsNotSupportedError()) {
    code = Code::kUnsupported;
  } else if (text.contains(std::strerror(ENOSPC))) {
    code = Code::kNoSpace;  // LevelDB keeps of errno only the text
  }
  return {code, text};
}

Status to_open_status(const leveldb::Status& status, const std::string& path) {
  // "lock <path>/LOCK: already held by process" or "... Resource temporarily unavailable".
  const std::string text = status.ToString();
  if (status.IsIOError() && text.contains("lock " + path)) {
    return {Status::Code::kBusy,
            fmt::format("the data directory '{}' is in use by another process ({})", path, text)};
  }
  return to_status(status);
}

}  // namespace ingot::storage
