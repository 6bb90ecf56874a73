// How failures of storage are told to clients. Pure.
#pragma once

#include <string>

#include "storage/status.h"

namespace ingot::contract {

inline constexpr char kOutOfMemory[] = "OOM command not allowed when used memory > 'maxmemory'.";
inline constexpr char kTooFewReplicas[] = "NOREPLICAS Not enough good replicas to write.";
inline constexpr char kTransactionTooLarge[] =
    "EXECABORT Transaction discarded because of: OOM command not allowed when used memory > "
    "'maxmemory'.";
// Why a write is not taken, or was not kept.
inline std::string write_error(const storage::Status& status) {
  const bool heals = status.code() == storage::Status::Code::kNoSpace;
  return "MISCONF Errors writing to the AOF file: " +
         (heals ? std::string("No space left on device")
                : status.message() + " (no write is taken until a restart)");
}

inline std::string storage_error(const storage::Status& status) {
  if (status.code() == storage::Status::Code::kNoSpace) return write_error(status);
  return "ERR storage error: " + status.message();
}

}  // namespace ingot::contract
