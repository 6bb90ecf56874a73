// A large value from a dump, made past the writer: decoded and written in the pool, then linked.
//
// Threads: the constructor on any, then the writer.
#pragma once

#include <memory>
#include <string_view>

#include "src/command/context.h"
#include "src/types/fresh_collection.h"
#include "src/types/rdb_store.h"

namespace ingot::types {

class RestoredValue : public command::Prepared {
 public:
  RestoredValue(exec::Services& services, std::string_view payload, const rdb::StoreLimits& limits);

  const storage::Status& status() const { return collection_.status(); }
  // What is wrong with the payload, as an error reply; empty: nothing.
  std::string_view error() const { return error_; }
  // Makes it the value of a key that is not there. False when the group has it already.
  [[nodiscard]] bool link(KeyWriter& keys, int db, std::string_view key, int64_t expire_ms);

 private:
  FreshCollection collection_;
  std::string_view error_;
  Record record_;
};

// The object of a payload, or the error reply.
std::optional<rdb::Object> read_payload(std::string_view payload, std::string_view* error);

// For WriteContext::needs(); `payload` is an argument of the command.
command::Prepare prepare_restored(exec::Services& services, std::string_view payload,
                                  const rdb::StoreLimits& limits);

}  // namespace ingot::types
