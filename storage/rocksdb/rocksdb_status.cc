// RocksDB's statuses in Ingot's terms.
#include "storage/rocksdb/rocksdb_status.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "storage/rocksdb/table_file_system.h"

namespace ingot::storage {

Status to_status(const rocksdb::Status& status) {
  using Code = Status::Code;
  if (status.ok()) return {};
  Code code = Code::kIo;
  // A write that was held back until something in the background failed gets that one's text alone.
  const bool held_back = status.IsIncomplete() && status.ToString().contains(std::strerror(ENOSPC));
  if (status.IsCompactionTooLarge()) {  // and says no more
    return {Code::kNoSpace, "the disk has too little room for this compaction"};
  }
  if (status.IsNoSpace() || status.subcode() == rocksdb::Status::kSpaceLimit || held_back) {
    code = Code::kNoSpace;
  } else if (status.IsCorruption()) {
    code = Code::kCorruption;
  } else if (status.IsInvalidArgument()) {
    code = Code::kInvalid;
  } else if (status.IsNotSupported()) {
    code = Code::kUnsupported;
  }
  return {code, status.ToString()};
}

Status to_stop(const rocksdb::Status& status) {
  Status stop = to_status(status);
  const bool for_good =
      status.severity() >= rocksdb::Status::Severity::kFatalError || status.IsShutdownInProgress();
  if (!for_good || stop.code() == Status::Code::kCorruption) return stop;
  return {Status::Code::kIo, "RocksDB cannot go on before a restart: " + stop.message()};
}

Status to_open_status(const rocksdb::Status& status, const std::string& path) {
  // RocksDB has no code for it: "lock hold by current process" or "While lock file: ...".
  const std::string text = status.ToString();
  if (status.IsIOError() && (text.contains("lock hold by") || text.contains("While lock file"))) {
    return {Status::Code::kBusy,
            fmt::format("the data directory '{}' is in use by another process ({})", path, text)};
  }
  return to_status(status);
}

bool is_conflict(const rocksdb::Status& status) {
  return status.IsAborted() || status.IsInvalidArgument() || status.IsIncomplete();
}

Lookup to_lookup(const rocksdb::Status& status, Tier tier, bool empty, Status* error) {
  if (status.ok()) return empty && tier == Tier::kCacheOnly ? Lookup::kMiss : Lookup::kFound;
  if (status.IsNotFound()) return Lookup::kAbsent;
  if (status.IsIncomplete() && tier == Tier::kCacheOnly) return Lookup::kMiss;
  if (is_wanted(status)) return Lookup::kMiss;
  if (error != nullptr) *error = to_status(status);
  return Lookup::kError;
}

}  // namespace ingot::storage
