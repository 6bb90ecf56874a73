// A large value in the bytes of an RDB file, piece by piece: in Redis' forms that are not packed,
// which need no more than the number of elements before the first. Nothing is held but where the
// next piece begins.
//
// One thread. Failures latch in the storage::Reader.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/types/keyspace.h"
#include "src/types/rdb/rdb_object.h"

namespace ingot::data {

class RdbPieces {
 public:
  virtual ~RdbPieces() = default;
  virtual types::rdb::ObjectType type() const = 0;
  // Appends to *out until it has `bytes_max` or somewhat more; false: that was the end. It may
  // append nothing where much has to be looked at first.
  [[nodiscard]] virtual bool next(std::string* out, size_t bytes_max) = 0;
};

struct RdbSource {
  storage::Reader& data;
  const types::Record& record;
  int64_t now_ms;     // fields that have expired are left out ...
  bool tells_expiry;  // ... unless it is told when they expire
  const types::rdb::EncodeOptions& options;
};

// What `from` names must outlive it.
std::unique_ptr<RdbPieces> begin_pieces(const RdbSource& from);
std::unique_ptr<RdbPieces> begin_stream_pieces(const RdbSource& from);

}  // namespace ingot::data
