// The socket of a replica's link to its master: it waits for input or for others who nudge it, and
// goes over TLS if it is to. It blocks its caller, so it belongs on a thread that may wait. One
// thread at a time, but for interrupt() and nudge().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ingot::net {

class TlsContext;

class LinkSocket {
 public:
  enum class Reached : uint8_t {
    kYes,
    kRefused,  // somebody answered, but not as a server does
    kNot,
  };

  LinkSocket();
  ~LinkSocket();
  LinkSocket(const LinkSocket&) = delete;
  LinkSocket& operator=(const LinkSocket&) = delete;

  // `host`: an address or a name. Timeouts are more than 0. `from`: the address of this end; when
  // it cannot be had, or nothing is reached from it, and where it is empty, the system chooses.
  [[nodiscard]] Reached connect(const std::string& host, uint16_t port, int64_t timeout_ms,
                                const std::string& from = {});
  // Before anything is sent: what follows is encrypted. The context is a client's. Empty, or why
  // not.
  [[nodiscard]] std::string start_tls(std::shared_ptr<const TlsContext> context,
                                      int64_t timeout_ms);
  // False on an error, when the peer has hung up, and when nothing moves for so long: then nothing
  // more can be sent, but what has come can still be read.
  [[nodiscard]] bool send(std::string_view bytes, int64_t timeout_ms);
  // The next line, without its end. False as above, and for one that is longer than any status
  // reply; then the connection is of no more use.
  [[nodiscard]] bool read_line(std::string* line, int64_t timeout_ms);

  enum class Got : uint8_t {
    kBytes,
    kNothing,  // within that time, or until a nudge()
    kEnd,      // the peer has hung up, or the connection failed
  };
  // Whatever comes first, at least one byte; `*bytes` says how many. `room` is not empty.
  [[nodiscard]] Got read_some(std::span<char> room, size_t* bytes, int64_t timeout_ms);

  // Why TLS failed since start_tls(): an alert to our certificate comes behind the handshake.
  std::string tls_failure() const;

  // Any thread. Everything fails from now on, also what is under way.
  void interrupt();
  // Any thread. The wait for input that is under way, or the next one, ends.
  void nudge();

  // Of a connection that was made.
  std::string peer_address() const;
  std::string local_address() const;
  int fd() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ingot::net
