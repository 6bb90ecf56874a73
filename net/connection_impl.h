// The connection behind net/connection.h: a socket, the parser of what comes in, the queue of what
// goes out. Reading is armed by readiness, so an idle connection owns no buffer; writing is tried
// at once and waits for room only when the socket is full.
//
// Its life: start() by its loop; close_for() from anywhere on the loop closes the socket and posts
// the end, where the handler is told and the loop drops the connection. A client that hangs up
// without reading its replies is lost first: its output is dropped, its input read to the end.
//
// Threads: the I/O thread's, except cut_from_any_thread().
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/addresses.h"
#include "net/asio.h"
#include "net/connection.h"
#include "net/io_loop.h"
#include "net/output_queue.h"
#include "net/resp_parser.h"
#include "net/server.h"
#include "net/tls.h"

namespace ingot::net {

inline int64_t steady_now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

class ConnectionImpl final : public Connection,
                             public std::enable_shared_from_this<ConnectionImpl> {
 public:
  // `tls` null: plain.
  ConnectionImpl(IoLoop& loop, Socket socket, Addresses addresses, std::unique_ptr<TlsStream> tls);
  ~ConnectionImpl() override;

  // Serves the handler, or sends the refusal and closes.
  void start(Welcome welcome);

  // For the loop's list.
  size_t slot() const { return slot_; }
  void set_slot(size_t slot) { slot_ = slot; }
  void close_if_idle(int64_t now_ms);
  bool on_tick(int64_t now_ms);  // false: needs no further ticks

  // A step of its TLS handshake, whose turn it is.
  void go_on();
  // Closes as close() does, with the reason that the handler will hear.
  void close_for(std::string_view reason);
  // Closes for owing too much. Any thread, while the ledger lists this connection.
  void cut_from_any_thread();

  IoThread& thread() override { return loop_; }
  const std::string& peer_address() const override { return addresses_.peer; }
  const std::string& local_address() const override { return addresses_.local; }
  int fd() const override { return fd_; }
  std::string& out() override;
  void send_body(std::unique_ptr<BodySource> body) override;
  void send_shared(SharedBytes bytes) override;
  void flush() override;
  void pause_reading() override { ++pauses_; }
  void resume_reading() override;
  void hold_input(uint64_t bytes) override;
  bool may_hold_input(uint64_t bytes) const override;
  void hold_output(uint64_t bytes) override;
  void close_after_flush() override;
  void close() override { close_for("Closed by the server"); }
  void set_idle_exempt(bool exempt) override;
  void set_listens(Listens listens) override { listens_ = listens; }
  void set_busy(bool busy) override;
  void set_authenticated(bool authenticated) override { authenticated_ = authenticated; }

 private:
  // A large argument on its way to its sink.
  struct Diversion {
    std::shared_ptr<ArgumentSink> sink;
    uint64_t missing = 0;  // bytes that have not come yet
    std::string piece;     // those that came since the last write
    bool writing = false;  // the sink has not said ready yet
    bool discard = false;  // it wants no more
  };

  // Input (connection_input.cc).
  bool may_read() const;
  void arm_read();
  void on_readable();
  void read_some();
  size_t receive(char* data, size_t room, ErrorCode& error);
  size_t fill_parser(ErrorCode& error);
  size_t diversion_room() const;
  size_t fill_diversion(ErrorCode& error);
  void continue_input();
  void process_input();
  bool deliver();
  void begin_large_argument();
  bool feed_sink();
  void on_sink_ready(bool ok);
  void on_read_error(const ErrorCode& error);
  void on_eof();
  void resume_input();
  void announce_drained();
  void account_input();
  bool peer_hung_up() const;
  void end_handshake();

  // Output (connection_output.cc).
  void drive_output();
  bool pull_body(BodySource& body);
  void on_body_piece(std::optional<std::string> piece);
  size_t write_queue();
  size_t write(std::span<const asio::const_buffer> buffers);
  void arm_write();
  void settle_output();
  void account_output();
  void enforce_output_limits();
  void cut();
  void lose();
  void watch();
  void finish_if_done();
  void post_finish_if_done();
  void post(void (ConnectionImpl::*method)());

  IoLoop& loop_;
  const Addresses addresses_;
  Socket socket_;
  const int fd_;
  const std::unique_ptr<TlsStream> tls_;  // null: plain
  std::shared_ptr<Handler> handler_;      // null: refused
  size_t slot_ = 0;
  std::optional<Handshakes::Place> handshake_;  // while it is under way

  RespParser parser_;
  std::unique_ptr<Diversion> diversion_;
  uint32_t read_bytes_;
  int pauses_ = 0;
  uint64_t kept_input_ = 0;  // by the handler
  uint64_t accounted_input_ = 0;

  std::string out_;
  OutputQueue queue_;
  uint64_t kept_output_ = 0;         // by the handler
  uint64_t accounted_output_ = 0;    // with what is shared
  uint64_t accounted_own_ = 0;       // without
  int64_t soft_limit_since_ms_ = 0;  // 0: below it

  bool closed_ = false;
  bool closing_ = false;       // close_after_flush() was called
  bool eof_ = false;           // the client sends no more
  bool lost_ = false;          // and reads no more: output is dropped
  bool input_ended_ = false;   // nothing more is to be read or delivered
  bool read_armed_ = false;    // a wait for readability is pending
  bool turn_asked_ = false;    // of the handshake
  bool data_waiting_ = false;  // readable, but reading was paused when that was seen
  bool processing_ = false;    // inside of process_input()
  bool resume_posted_ = false;
  bool output_paused_ = false;
  bool write_armed_ = false;
  bool driving_ = false;     // inside of drive_output()
  bool body_asked_ = false;  // the body at the front owes a piece
  bool watched_ = false;
  bool busy_ = false;
  bool idle_exempt_ = false;
  Listens listens_ = Listens::kNo;
  bool authenticated_ = true;
};

}  // namespace ingot::net
