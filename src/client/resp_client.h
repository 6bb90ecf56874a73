// A client of a running Ingot or Redis that waits for its replies, for the tools beside the server.
// One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/sync_client.h"

namespace ingot::client {

struct ServerAddress {
  std::string host = "127.0.0.1";
  uint16_t port = 6379;
  std::string socket;    // the path of a unix socket instead of these two; empty: none
  std::string user;      // empty: the default one
  std::string password;  // empty: nothing is told
  std::string text() const;
};

struct Reply {
  enum class Kind : uint8_t { kStatus, kError, kInteger, kBulk, kNull, kArray };
  Kind kind = Kind::kNull;
  std::string text;  // of a number: its digits; of an array: how many replies follow
};

class RespClient {
 public:
  static constexpr int64_t kPatienceMs = 60'000;

  // Connects and authenticates. What went wrong; empty: nothing.
  [[nodiscard]] std::string connect(const ServerAddress& address);

  // Puts a command behind those to be sent.
  void add(const std::vector<std::string_view>& command);
  size_t unsent_bytes() const { return unsent_.size(); }
  // Both are false when the server has gone, or nothing came for so long.
  [[nodiscard]] bool send();
  [[nodiscard]] bool read(Reply* reply, int64_t patience_ms = kPatienceMs);

  // One command and its reply, with nothing under way.
  [[nodiscard]] bool call(const std::vector<std::string_view>& command, Reply* reply,
                          int64_t patience_ms = kPatienceMs);

 private:
  net::SyncClient connection_;
  std::string unsent_;
};

}  // namespace ingot::client
