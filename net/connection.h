// One client connection and the handler that the server's owner puts behind it.
//
// Threads: a connection belongs to one I/O thread for its whole life. Its methods, and all calls
// to its handler, happen on that thread; what other threads may call says so.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/command_batch.h"

namespace ingot::net {

using SharedBytes = std::shared_ptr<const std::string>;
// Fewer had better be copied.
inline constexpr size_t kSharedBytesMin = 4 << 10;

// The loop that a connection lives on.
class IoThread {
 public:
  virtual ~IoThread() = default;
  // Runs `task` on this thread, after everything posted before it. Any thread. Tasks posted after
  // the server stopped are destroyed unrun.
  virtual void post(std::move_only_function<void()> task) = 0;
  virtual bool is_current() const = 0;  // any thread: whether the caller is this thread
  // Bytes that will go to many connections, of this thread or others: they count once among all
  // clients' output for as long as somebody keeps them. Any thread.
  virtual SharedBytes share(SharedBytes bytes) { return bytes; }
  virtual int index() const = 0;
};

// A reply body that is produced as fast as the socket takes it.
class BodySource {
 public:
  virtual ~BodySource() = default;
  // Produces the next piece, at most 256 KB or so. `done` must be called exactly once, on the
  // connection's I/O thread (at once, or posted later): with bytes, with an empty string when the
  // body is complete, or with nothing when it cannot be completed: the connection is then cut,
  // because the client has already seen the length. `thread` is the connection's.
  virtual void next(IoThread& thread,
                    std::move_only_function<void(std::optional<std::string>)> done) = 0;
  // Asked twice a second while the client is slow to read: true cuts the connection. For bodies
  // that hold on to something which must not be held for long.
  virtual bool expired() { return false; }
  // Whether it goes on for as long as the connection lives: what the client sends is read
  // meanwhile, and nothing will ever be sent behind it.
  virtual bool is_endless() const { return false; }
};

class Connection {
 public:
  virtual ~Connection() = default;

  virtual IoThread& thread() = 0;
  virtual const std::string& peer_address()
      const = 0;  // "127.0.0.1:51234", "[::1]:9", or the unix path + ":0"
  virtual const std::string& local_address() const = 0;
  virtual int fd() const = 0;

  // Append encoded replies here. They are sent when the handler's callback returns, or by flush().
  virtual std::string& out() = 0;
  // Sends `body` after what is in out() now; what is appended later follows it.
  virtual void send_body(std::unique_ptr<BodySource> body) = 0;
  // The same for bytes of IoThread::share(), which are not copied.
  virtual void send_shared(SharedBytes bytes) = 0;
  // Sends what out() holds; needed only outside of the handler's callbacks.
  virtual void flush() = 0;

  // Stops and restarts reading from the socket; commands already parsed are not affected. Calls
  // count: as many resumes as pauses. The connection also pauses by itself while its client does
  // not read what was sent.
  virtual void pause_reading() = 0;
  virtual void resume_reading() = 0;

  // What the handler keeps of this client's input: commands without an answer, a transaction's
  // queue. Counts as the client's input until the next call.
  virtual void hold_input(uint64_t bytes) = 0;
  // Whether the memory bounds (Limits) let the handler keep so much of this client's input.
  virtual bool may_hold_input(uint64_t bytes) const = 0;

  // What the handler keeps back of this client's output, for the limits on it: messages that wait
  // for replies in front of them. Counts until the next call.
  virtual void hold_output(uint64_t bytes) = 0;

  // No more commands are delivered; what is queued is sent, then the socket is closed.
  virtual void close_after_flush() = 0;
  // Closes now. Handler::on_close follows, never from within this call.
  virtual void close() = 0;

  // Exempts the client from `timeout` while it waits by design (a blocked or subscribed client).
  // When such a client hangs up, the connection closes at once.
  virtual void set_idle_exempt(bool exempt) = 0;
  // A client that is sent messages: `timeout` does not apply to it, and to a subscriber the output
  // limits do that are for subscribers.
  enum class Listens : uint8_t { kNo, kAsMonitor, kAsSubscriber };
  virtual void set_listens(Listens listens) = 0;
  // Whether commands of this client are unanswered. A busy client is exempt from `timeout`, and
  // when it stops sending (a half-closed socket) the connection closes only after set_busy(false)
  // and the last reply. One that sends no more and gets no reply for kGoodbyeMs is taken for gone
  // (Handler::on_lost): most who hang up look like one who only stopped sending. Cheap; starts as
  // false.
  virtual void set_busy(bool busy) = 0;
  // Until it is authenticated a client may send no more than 10 arguments of 16 KB per command.
  // Starts as true.
  virtual void set_authenticated(bool authenticated) = 0;

  // For CLIENT LIST and INFO; any thread.
  std::atomic<uint64_t> query_buffer_bytes{0};  // unparsed or undelivered input
  std::atomic<uint64_t> query_buffer_free{0};   // room left in the input buffer
  std::atomic<uint64_t> output_bytes{0};        // replies not yet taken by the kernel
  std::atomic<uint32_t> output_pieces{0};       // that these stand in
  std::atomic<int64_t> last_interaction_ms{0};  // steady clock
};

// While more than this is waiting to be sent, nothing more is read from the client, and a handler
// should answer nothing more either: see Handler::on_output_drained.
inline constexpr uint64_t kOutputPauseBytes = 1u << 20;
// How long a client that sends no more may wait for its next reply.
inline constexpr int64_t kGoodbyeMs = 1000;

// What the owner of the server does with one connection.
class Handler {
 public:
  virtual ~Handler() = default;

  // The commands of one read, in order. May be called again before these are answered, unless the
  // handler paused reading.
  virtual void on_commands(BatchPtr batch) = 0;

  // A large argument begins: `args` are those before it (args[0] is the command), `bytes` its
  // size. Returns where to put it, or null to have it collected in memory.
  virtual std::shared_ptr<ArgumentSink> argument_sink(std::span<const std::string_view> args,
                                                      uint64_t bytes) = 0;

  // The client has read on after more than kOutputPauseBytes of replies had been waiting for it.
  virtual void on_output_drained() {}

  // The client sends no more; it may still read. All that it sent completely was delivered.
  virtual void on_input_end() {}

  // Nobody reads the replies any more: they are dropped. What the client has sent is delivered all
  // the same, and the connection stays until that is done: until set_busy(false), or until a client
  // waits by design (set_idle_exempt).
  virtual void on_lost() {}

  // The client broke the protocol: `error` is Redis' own sentence, such as "ERR Protocol error:
  // invalid bulk length". Nothing more is read. The handler answers it in order after what is
  // pending and then calls close_after_flush().
  virtual void on_protocol_error(std::string_view error) = 0;

  // The connection is gone, for whatever reason; the Connection must not be used after this.
  // The last call to the handler. Also called for handlers still connected when the server stops.
  virtual void on_close(std::string_view reason) = 0;
};

}  // namespace ingot::net
