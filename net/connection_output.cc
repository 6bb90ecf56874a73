// A connection's output: direct writes while the socket takes them, a queue when it does not, and
// the limits on what may wait there.
#include <array>
#include <utility>

#include "net/connection_impl.h"

namespace ingot::net {
namespace {

// One connection sends no more than this before the others get their turn.
constexpr size_t kBurstBytes = 1u << 20;
constexpr size_t kVectorSegments = 16;

}  // namespace

std::string& ConnectionImpl::out() {
  if (out_.capacity() == std::string().capacity()) {
    std::string lent = loop_.take_spare();
    lent += out_;
    out_ = std::move(lent);
  }
  return out_;
}

void ConnectionImpl::send_body(std::unique_ptr<BodySource> body) {
  if (closed_ || lost_) return;
  queue_.append(std::exchange(out_, {}), 0);
  queue_.append_body(std::move(body));
}

void ConnectionImpl::send_shared(SharedBytes bytes) {
  if (closed_ || lost_) return;
  queue_.append(std::exchange(out_, {}), 0);
  queue_.append_shared(std::move(bytes));
}

void ConnectionImpl::hold_output(uint64_t bytes) {
  if (bytes == kept_output_ || closed_ || lost_) return;
  kept_output_ = bytes;
  account_output();
}

void ConnectionImpl::flush() {
  if (closed_) return;
  if (lost_) out_.clear();
  if (!out_.empty()) {
    size_t sent = 0;
    if (queue_.empty()) {
      const asio::const_buffer whole = asio::buffer(out_);
      sent = write({&whole, 1});
      if (lost_) return;
    }
    if (sent == out_.size()) {
      out_.clear();
      loop_.give_spare(std::exchange(out_, {}));
    } else {
      queue_.append(std::exchange(out_, {}), sent);
    }
  }
  if (queue_.empty()) {
    finish_if_done();
  } else if (!driving_) {
    drive_output();
  }
}

// One write to the socket; 0 when it is full, or the client is lost.
size_t ConnectionImpl::write(std::span<const asio::const_buffer> buffers) {
  ErrorCode error;
  const size_t bytes = tls_ ? tls_->write_some(buffers[0].data(), buffers[0].size(), error)
                       : buffers.size() == 1 ? socket_.write_some(buffers[0], error)
                                             : socket_.write_some(buffers, error);
  if (error && !is_would_block(error)) {
    lose();
    return 0;
  }
  if (eof_ && bytes > 0) last_interaction_ms.store(steady_now_ms(), std::memory_order_relaxed);
  loop_.count_out(bytes);
  return bytes;
}

size_t ConnectionImpl::write_queue() {
  std::array<asio::const_buffer, kVectorSegments> buffers;
  const size_t count = queue_.gather(buffers);
  const size_t bytes = write(std::span(buffers).first(count));
  if (bytes > 0) {
    queue_.consume(bytes);
    last_interaction_ms.store(steady_now_ms(), std::memory_order_relaxed);
  }
  return bytes;
}

void ConnectionImpl::drive_output() {
  if (!write_armed_) {
    driving_ = true;
    size_t burst = 0;
    while (!closed_ && !queue_.empty() && burst < kBurstBytes) {
      if (BodySource* body = queue_.hungry_body()) {
        if (!pull_body(*body)) break;
        continue;
      }
      const size_t bytes = write_queue();
      if (bytes == 0) break;
      burst += bytes;
    }
    driving_ = false;
    if (closed_) return;
    const bool needs_input = tls_ && tls_->write_waits_for_input();
    if (!queue_.empty() && !body_asked_ && !needs_input) arm_write();
  }
  settle_output();
}

// False when the piece is still to come, or the connection has failed.
bool ConnectionImpl::pull_body(BodySource& body) {
  if (body_asked_) return false;
  body_asked_ = true;
  body.next(loop_, [weak = weak_from_this()](std::optional<std::string> piece) {
    if (const auto self = weak.lock()) self->on_body_piece(std::move(piece));
  });
  return !body_asked_ && !closed_ && !lost_;
}

void ConnectionImpl::on_body_piece(std::optional<std::string> piece) {
  if (closed_ || lost_) return;
  body_asked_ = false;
  if (!piece) return close_for("A reply could not be completed");
  if (piece->empty()) {
    // Destroyed later: this may be a call from within it.
    asio::post(loop_.executor(), [ended = queue_.end_body()] {});
  } else {
    queue_.load_body(std::move(*piece));
  }
  if (!driving_) drive_output();
}

void ConnectionImpl::arm_write() {
  if (write_armed_) return;
  write_armed_ = true;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const ErrorCode& error) {
    self->write_armed_ = false;
    if (error || self->closed_) return;
    if (self->tls_ && self->tls_->read_waits_for_room() && self->may_read()) self->read_some();
    if (!self->closed_) self->drive_output();
  });
}

// Posted, because a handler that appends its replies is still in the middle of that.
void ConnectionImpl::announce_drained() {
  loop_.post([self = shared_from_this()] {
    if (!self->closed_) self->handler_->on_output_drained();
  });
}

// After every change of the queue.
void ConnectionImpl::settle_output() {
  account_output();
  if (closed_) return;
  const uint64_t pending = queue_.bytes();
  if (!output_paused_) {
    output_paused_ = pending > kOutputPauseBytes || queue_.has_ending_body();
  } else if (pending < kOutputPauseBytes / 2 && !queue_.has_ending_body()) {
    output_paused_ = false;
    announce_drained();
    resume_input();
  }
  if (queue_.empty() || queue_.has_endless_body()) finish_if_done();
}

void ConnectionImpl::account_output() {
  const uint64_t pending = queue_.bytes() + kept_output_;
  if (pending == accounted_output_) return;
  ServerState& state = loop_.state();
  const uint64_t own = pending - queue_.shared_bytes();
  state.output_bytes.fetch_add(own - accounted_own_, std::memory_order_relaxed);
  accounted_own_ = own;
  output_bytes.store(pending, std::memory_order_relaxed);
  output_pieces.store(static_cast<uint32_t>(queue_.size()), std::memory_order_relaxed);
  const uint64_t before = std::exchange(accounted_output_, pending);
  if (before == 0) {
    state.ledger.add(*this);
    watch();
  } else if (pending == 0) {
    state.ledger.remove(*this);
  }
  if (pending > before || soft_limit_since_ms_ != 0) enforce_output_limits();
}

void ConnectionImpl::enforce_output_limits() {
  ServerState& state = loop_.state();
  const uint64_t pending = accounted_output_;
  const Limits::Output& limits = listens_ == Listens::kAsSubscriber ? state.limits.subscriber_output
                                                                    : state.limits.normal_output;
  const uint64_t hard = limits.hard_bytes.load(std::memory_order_relaxed);
  if (hard != 0 && pending >= hard) return cut();
  const uint64_t soft = limits.soft_bytes.load(std::memory_order_relaxed);
  if (soft == 0 || pending < soft) {
    soft_limit_since_ms_ = 0;
  } else {
    const int64_t now_ms = steady_now_ms();
    if (soft_limit_since_ms_ == 0) soft_limit_since_ms_ = now_ms;
    const int64_t allowed_ms = int64_t{1000} * limits.soft_seconds.load(std::memory_order_relaxed);
    if (now_ms - soft_limit_since_ms_ > allowed_ms) return cut();
  }
  const uint64_t total_max = state.limits.output_total_bytes_max.load(std::memory_order_relaxed);
  const uint64_t total = state.output_bytes.load(std::memory_order_relaxed);
  if (total_max != 0 && total > total_max) state.ledger.enforce(total - total_max);
}

}  // namespace ingot::net
