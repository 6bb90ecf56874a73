// Runs the commands of an append-only file of Redis, as its writer did: each a unit of the writer,
// MULTI ... EXEC one, and SELECT followed. Nothing has expired for them, because the file itself
// says what went, and when.
//
// One thread, which waits for the writer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "net/command_batch.h"
#include "src/contract/client.h"
#include "src/contract/reply.h"
#include "src/exec/services.h"
#include "src/exec/unit_cutter.h"
#include "src/exec/write_job.h"

namespace ingot::exec {

class Writer;

class LogReplay {
 public:
  LogReplay(Services& services, Writer& writer);

  // Runs every command that is complete, and keeps the beginning of the one that is not. False: the
  // bytes are no such file, or what they say cannot be done; error() says it.
  [[nodiscard]] bool feed(std::string_view bytes);
  const std::string& error() const { return error_; }
  // Behind the last command, or the last EXEC, that was run: what comes after it is incomplete.
  uint64_t whole_bytes() const { return whole_bytes_; }
  uint64_t commands() const { return commands_; }

 private:
  enum class Cut : uint8_t { kWhole, kIncomplete, kBad };
  // One command at the beginning of `bytes`: where its arguments are, and where it ends.
  struct Place {
    std::vector<std::pair<size_t, size_t>> args;  // offset, length; none: nothing to run
    size_t end = 0;
  };
  static Cut cut(std::string_view bytes, Place* place);

  net::BatchPtr cut_batch(size_t* taken, std::vector<uint64_t>* ends);
  bool take(const net::BatchPtr& batch, const net::Command& command, std::vector<Unit>* units);
  bool run(std::vector<Unit> units);
  std::string find_refusal() const;

  Services& services_;
  Writer& writer_;
  const std::shared_ptr<contract::Client> client_;
  UnitCutter cutter_;
  const uint64_t transaction_bytes_max_;
  std::string error_;
  std::string held_;         // not yet run
  uint64_t fed_before_ = 0;  // of the file, before what is held
  uint64_t whole_bytes_ = 0;
  uint64_t commands_ = 0;

  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;            // by mutex_
  contract::EncodedReply replies_;  // by mutex_
};

}  // namespace ingot::exec
