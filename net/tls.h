// TLS on sockets: what a server offers or a client asks for (TlsContext), and one side of a
// connection (TlsStream). OpenSSL stays in tls.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "net/asio.h"
#include "net/tls_options.h"

namespace ingot::net {

// Constant once made; any thread.
class TlsContext {
 public:
  // Reads all files. The error is for the log: which of the options is wrong, and why.
  static std::expected<std::shared_ptr<const TlsContext>, std::string> make(
      const TlsOptions& options);

  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsStream;
  class Impl;
  explicit TlsContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Works on a non-blocking socket that it does not own. The handshake happens within the first
// reads; before those it owns next to nothing. Threads: the connection's I/O thread.
class TlsStream {
 public:
  TlsStream(std::shared_ptr<const TlsContext> context, int fd);
  ~TlsStream();

  // As those of a socket: would_block, eof, or a failure, of which error_text() tells. What a write
  // could not take must come again, at the same place and no shorter.
  size_t read_some(void* data, size_t bytes, ErrorCode& error);
  size_t write_some(const void* data, size_t bytes, ErrorCode& error);

  // The handshake is finished. Until then writes wait for input.
  bool is_established() const;
  // There is input that the socket will not announce.
  bool has_input() const;
  // What a record takes that has not come as a whole.
  size_t held_bytes() const;
  // The last read could not go on before the socket takes more, the last write not before there is
  // input: the other direction has to be waited for.
  bool read_waits_for_room() const { return read_waits_for_room_; }
  bool write_waits_for_input() const { return write_waits_for_input_; }

  // Tells the client that nothing more comes, if the socket takes that. Before it is closed.
  void say_goodbye();
  const std::string& error_text() const { return error_text_; }

 private:
  class Session;
  ErrorCode outcome(int result);

  std::shared_ptr<const TlsContext> context_;  // until it is used
  const int fd_;
  std::unique_ptr<Session> session_;  // from the first read on
  std::string error_text_;
  bool starved_ = false;  // the last read found no whole record
  bool read_waits_for_room_ = false;
  bool write_waits_for_input_ = false;
};

}  // namespace ingot::net
