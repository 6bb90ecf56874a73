// A view as the bytes of an RDB file (version 10, that of Redis 7.0), pulled piece by piece. What
// is held is a piece, and an element of a large value; never a key of many elements, nor the keys.
//
// One thread at a time. The services outlive it; the view lives as long as it does, so what is
// dropped meanwhile cannot be reclaimed before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/data/services.h"
#include "src/data/view.h"
#include "storage/status.h"

namespace ingot::data {

// Whom the file is for.
enum class RdbReaderKind : uint8_t {
  kRedis,  // of version 7.0 or later: when fields of hashes expire is lost
  kIngot,  // hashes whose fields expire stand in the form of Redis 7.4, which RdbLoader reads
};

class RdbWriter {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  // `view`: null for a file without data. `aux`: fields beside redis-ver, redis-bits, ctime,
  // used-mem and aof-base: repl-stream-db, repl-id, repl-offset. `functions`: the code of the
  // libraries.
  RdbWriter(Services& services, std::shared_ptr<const View> view, Fields aux,
            std::vector<std::string> functions, RdbReaderKind reader = RdbReaderKind::kRedis);
  ~RdbWriter();

  // Appends the next piece to *out: some 64 KB, or one element if that is longer; or less, also
  // nothing, where much has to be looked at first. False when that was the last piece, or reading
  // failed. Reads the disk: not on a thread that others share.
  [[nodiscard]] bool next(std::string* out);
  // Not ok: reading failed, and what came out is not a whole file.
  storage::Status status() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ingot::data
