// A connection's life cycle: start, flags, idleness, close.
#include "net/connection_impl.h"

#include <utility>
#include <variant>

#include "net/batch_pool.h"

namespace ingot::net {

ConnectionImpl::ConnectionImpl(IoLoop& loop, Socket socket, Addresses addresses,
                               std::unique_ptr<TlsStream> tls)
    : loop_(loop),
      addresses_(std::move(addresses)),
      socket_(std::move(socket)),
      fd_(socket_.native_handle()),
      tls_(std::move(tls)),
      read_bytes_(BatchPool::kSmallBytes) {
  last_interaction_ms.store(steady_now_ms(), std::memory_order_relaxed);
  loop_.state().connections.fetch_add(1, std::memory_order_relaxed);
}

ConnectionImpl::~ConnectionImpl() {
  loop_.state().connections.fetch_sub(1, std::memory_order_relaxed);
}

void ConnectionImpl::start(Welcome welcome) {
  if (auto* refusal = std::get_if<std::string>(&welcome)) {
    // Over TLS it could only be told after a handshake, of which a flood of clients has enough.
    if (tls_) return close();
    out() += *refusal;
    closing_ = input_ended_ = true;
    flush();
    return;
  }
  handler_ = std::get<std::shared_ptr<Handler>>(std::move(welcome));
  flush();
  arm_read();
}

void ConnectionImpl::post(void (ConnectionImpl::*method)()) {
  asio::post(loop_.executor(), [self = shared_from_this(), method] { ((*self).*method)(); });
}

void ConnectionImpl::set_idle_exempt(bool exempt) {
  idle_exempt_ = exempt;
  if ((eof_ || lost_) && exempt) post_finish_if_done();
}

void ConnectionImpl::set_busy(bool busy) {
  busy_ = busy;
  if (eof_ && !busy) post_finish_if_done();
}

void ConnectionImpl::close_after_flush() {
  closing_ = input_ended_ = true;
  post_finish_if_done();
}

// Posted, because the caller may be about to append the last reply.
void ConnectionImpl::post_finish_if_done() {
  post(&ConnectionImpl::flush);
}

void ConnectionImpl::finish_if_done() {
  const bool waits_in_vain = lost_ && idle_exempt_;
  if (closed_ || !(eof_ || closing_ || waits_in_vain)) return;
  const bool work_to_come = busy_ && !idle_exempt_ && !closing_;
  const bool more_to_send = !queue_.empty() && !queue_.has_endless_body();
  if (work_to_come || more_to_send || !out_.empty()) return;
  close_for(eof_ || lost_ ? "Client closed connection"
                          : "Closed by the server after its last reply");
}

// Whoever sent a pipeline and left has it run all the same, as far as it was received.
void ConnectionImpl::lose() {
  if (closed_ || lost_) return;
  lost_ = true;
  // Bodies end outside of any call that they may be in the middle of.
  asio::post(loop_.executor(), [self = shared_from_this(), queue = std::move(queue_)] {
    if (self->closed_) return;
    if (self->handler_) self->handler_->on_lost();
    self->resume_input();
    self->flush();
  });
  queue_ = {};
  out_ = {};
  kept_output_ = 0;
  body_asked_ = output_paused_ = false;
  account_output();
}

void ConnectionImpl::close_if_idle(int64_t now_ms) {
  if (closed_ || busy_ || idle_exempt_ || listens_ != Listens::kNo) return;
  const int64_t limit_ms =
      int64_t{1000} * loop_.state().limits.idle_timeout_seconds.load(std::memory_order_relaxed);
  if (now_ms - last_interaction_ms.load(std::memory_order_relaxed) > limit_ms) {
    close_for("Closing idle client");
  }
}

bool ConnectionImpl::on_tick(int64_t now_ms) {
  if (closed_) return watched_ = false;
  const bool owed = eof_ && busy_ && queue_.empty();
  if (owed && now_ms - last_interaction_ms.load(std::memory_order_relaxed) > kGoodbyeMs) lose();
  if (accounted_output_ > 0) enforce_output_limits();
  if (!closed_ && queue_.has_expired_body()) close_for("A reply was not read in time");
  // While reading is paused, data in front of the client's goodbye hides it from the event loop.
  if (data_waiting_ && idle_exempt_ && peer_hung_up()) close_for("Client closed connection");
  const bool leaving = eof_ && !lost_;
  return watched_ = !closed_ && (accounted_output_ > 0 || data_waiting_ || leaving);
}

void ConnectionImpl::watch() {
  if (watched_) return;
  watched_ = true;
  loop_.watch(*this);
}

void ConnectionImpl::cut_from_any_thread() {
  loop_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->cut();
  });
}

void ConnectionImpl::cut() {
  if (closed_) return;
  loop_.state().output_limit_cuts.fetch_add(1, std::memory_order_relaxed);
  close_for("Closed for overcoming of output buffer limits");
}

void ConnectionImpl::close_for(std::string_view reason) {
  if (closed_) return;
  closed_ = true;
  end_handshake();
  if (tls_) tls_->say_goodbye();
  ErrorCode ignored;  // the descriptor is gone either way
  socket_.close(ignored);
  // Bodies and sinks end outside of any call that they may be in the middle of.
  asio::post(loop_.executor(), [self = shared_from_this(), queue = std::move(queue_),
                                diversion = std::move(diversion_), text = std::string(reason)] {
    self->parser_.reset();
    self->kept_input_ = 0;
    self->account_input();
    if (self->handler_) self->handler_->on_close(text);
    self->handler_.reset();
    self->loop_.remove(*self);
  });
  queue_ = {};
  out_ = {};
  kept_output_ = 0;
  account_output();
}

}  // namespace ingot::net
