// What a replica tells of its link to the master, for ROLE and INFO. Plain data.
#pragma once

#include <cstdint>
#include <string>

namespace ingot::contract {

struct MasterLink {
  enum class State : uint8_t {
    kConnect,  // it will be tried again
    kConnecting,
    kHandshake,
    kTransfer,  // all of the data is coming
    kConnected,
  };

  std::string host;
  int port = 0;
  State state = State::kConnect;
  int64_t last_io_s = -1;  // seconds since the master last sent something; -1: there is no stream
  int64_t down_s = -1;     // seconds since there was a stream; -1: there was none
  uint64_t read_offset = 1;
  uint64_t applied_offset = 1;  // what was read is committed up to here

  // While all of the data is coming:
  uint64_t transfer_bytes = 0;  // of it; 0: not known
  uint64_t transferred_bytes = 0;
  int64_t transfer_idle_s = 0;  // since the last of it came
};

}  // namespace ingot::contract
