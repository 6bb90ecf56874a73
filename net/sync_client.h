// A connection to another server, for what talks to one: MIGRATE, and the tools beside the server.
// It blocks its caller, so it belongs on a thread that may wait. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ingot::net {

class SyncClient {
 public:
  enum class Reached : uint8_t {
    kYes,
    kRefused,  // somebody answered, but not as a server does
    kNot,
  };

  SyncClient();
  ~SyncClient();
  SyncClient(const SyncClient&) = delete;
  SyncClient& operator=(const SyncClient&) = delete;

  // `host`: an address or a name. Timeouts are more than 0.
  [[nodiscard]] Reached connect(const std::string& host, uint16_t port, int64_t timeout_ms);
  // To the socket `path` of this machine.
  [[nodiscard]] Reached connect_unix(const std::string& path);
  // All three are false on an error, when the peer hangs up, and when nothing moves for so long;
  // then the connection is of no more use.
  [[nodiscard]] bool send(std::string_view bytes, int64_t timeout_ms);
  // The next line, without its end (a line feed, with or without a carriage return before it).
  // Fails for one that is longer than any status reply.
  [[nodiscard]] bool read_line(std::string* line, int64_t timeout_ms);
  // The next `count` bytes.
  [[nodiscard]] bool read_bytes(size_t count, std::string* bytes, int64_t timeout_ms);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ingot::net
