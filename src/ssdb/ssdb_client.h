// A client of an SSDB server. Commands and replies are rows of items, each a line with its length
// and a line with its bytes; an empty line ends a row. The first item of a reply tells how it went
// ("ok", "not_found", "error" ...). Replies come in the order of the commands. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/sync_client.h"

namespace ingot::ssdb {

class SsdbClient {
 public:
  enum class Next : uint8_t {
    kItem,
    kEnd,     // of the reply
    kFailed,  // the server has hung up, is silent for a minute, or speaks another protocol
  };

  // Connects and authenticates, if there is a password. What went wrong; empty: nothing.
  [[nodiscard]] std::string connect(const std::string& host, uint16_t port,
                                    const std::string& password);

  // Puts a command behind those to be sent; next() sends them.
  void add(const std::vector<std::string_view>& command);

  // The next item of the oldest reply that has not been read to its end. Of a reply no more is held
  // than this, however long it is.
  [[nodiscard]] Next next(std::string* item);
  // All that is left of a reply.
  [[nodiscard]] bool read(std::vector<std::string>* items);

 private:
  net::SyncClient connection_;
  std::string unsent_;
};

}  // namespace ingot::ssdb
