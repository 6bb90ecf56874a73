// A connection's input: from readiness to commands in the handler's hands.
#include <poll.h>

#include <algorithm>
#include <utility>

#include "net/batch_pool.h"
#include "net/connection_impl.h"

namespace ingot::net {
namespace {

constexpr size_t kSinkPieceBytes = 256 * 1024;
static_assert(kSinkPieceBytes <= kLargeArgumentBytes);

}  // namespace

bool ConnectionImpl::may_read() const {
  return !closed_ && !input_ended_ && pauses_ == 0 && !output_paused_ &&
         !(diversion_ && diversion_->writing);
}

// Armed even while reading is paused, so that a hang-up of the client is seen; but not when there
// is data that would make it fire again at once.
void ConnectionImpl::arm_read() {
  if (read_armed_ || turn_asked_ || data_waiting_ || closed_ || input_ended_) return;
  read_armed_ = true;
  if (tls_ && tls_->has_input()) {
    return asio::post(loop_.executor(), [self = shared_from_this()] {
      self->read_armed_ = false;
      self->on_readable();
    });
  }
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const ErrorCode& error) {
    self->read_armed_ = false;
    if (!error) self->on_readable();
  });
}

void ConnectionImpl::on_readable() {
  if (closed_ || input_ended_) return;
  if (may_read()) {
    if (!tls_ || tls_->is_established()) return read_some();
    if (!handshake_) handshake_ = loop_.handshakes().begin(*this);
    turn_asked_ = true;
    return loop_.handshakes().wait_for_turn(shared_from_this());
  }
  data_waiting_ = true;
  if (idle_exempt_ && peer_hung_up()) return close_for("Client closed connection");
  watch();
}

void ConnectionImpl::go_on() {
  turn_asked_ = false;
  if (closed_ || input_ended_) return;
  if (!may_read()) return arm_read();
  read_some();
}

void ConnectionImpl::end_handshake() {
  if (handshake_) loop_.handshakes().end(*std::exchange(handshake_, std::nullopt));
}

bool ConnectionImpl::peer_hung_up() const {
  pollfd state{.fd = fd_, .events = POLLRDHUP, .revents = 0};
  return poll(&state, 1, 0) == 1;
}

void ConnectionImpl::read_some() {
  // Of a piece that is whole nothing is left to read, which TLS would take for the end.
  if (diversion_ && diversion_room() == 0) return continue_input();
  ErrorCode error;
  const size_t bytes = diversion_ ? fill_diversion(error) : fill_parser(error);
  if (handshake_ && tls_->is_established()) end_handshake();
  if (is_would_block(error)) {
    parser_.release_if_empty();
    if (tls_ && tls_->read_waits_for_room()) arm_write();
    if (tls_) account_input();
    return arm_read();
  }
  if (error) return on_read_error(error);
  loop_.count_in(bytes);
  last_interaction_ms.store(steady_now_ms(), std::memory_order_relaxed);
  continue_input();
  if (tls_) flush();  // what the handshake held up
}

void ConnectionImpl::on_read_error(const ErrorCode& error) {
  if (tls_ && !tls_->error_text().empty()) return close_for("TLS failed: " + tls_->error_text());
  if (error != asio::error::eof) lose();
  on_eof();
}

size_t ConnectionImpl::receive(char* data, size_t room, ErrorCode& error) {
  return tls_ ? tls_->read_some(data, room, error)
              : socket_.read_some(asio::buffer(data, room), error);
}

size_t ConnectionImpl::fill_parser(ErrorCode& error) {
  const auto room = parser_.prepare(read_bytes_);
  const size_t bytes = receive(room.data(), room.size(), error);
  parser_.commit(bytes);
  if (bytes == room.size()) {
    read_bytes_ = BatchPool::kLargeBytes;  // more than that was waiting
  } else if (bytes < BatchPool::kSmallBytes / 2) {
    read_bytes_ = BatchPool::kSmallBytes;
  }
  return bytes;
}

size_t ConnectionImpl::diversion_room() const {
  return std::min<uint64_t>(kSinkPieceBytes - diversion_->piece.size(), diversion_->missing);
}

size_t ConnectionImpl::fill_diversion(ErrorCode& error) {
  std::string& piece = diversion_->piece;
  const size_t held = piece.size();
  const size_t room = diversion_room();
  size_t bytes = 0;
  piece.resize_and_overwrite(held + room, [&](char* data, size_t) {
    bytes = receive(data + held, room, error);
    return held + bytes;
  });
  diversion_->missing -= bytes;
  return bytes;
}

void ConnectionImpl::on_eof() {
  eof_ = input_ended_ = true;
  parser_.reset();
  diversion_.reset();
  account_input();
  last_interaction_ms.store(steady_now_ms(), std::memory_order_relaxed);
  handler_->on_input_end();
  watch();
  finish_if_done();
}

// Whatever is at hand is parsed as far as that is allowed now, then reading goes on.
void ConnectionImpl::continue_input() {
  if (closed_ || processing_) return;
  processing_ = true;
  process_input();
  processing_ = false;
  if (closed_) return;
  parser_.release_if_empty();
  account_input();
  arm_read();
}

void ConnectionImpl::process_input() {
  const Limits& limits = loop_.state().limits;
  while (may_read()) {
    if (diversion_) {
      if (!feed_sink()) return;
      continue;
    }
    const ParseLimits parse_limits{
        .bulk_bytes_max = limits.proto_max_bulk_bytes.load(std::memory_order_relaxed),
        .authenticated = authenticated_};
    switch (parser_.parse(parse_limits)) {
      case RespParser::Status::kNeedMore:
        deliver();
        if (parser_.held_bytes() > limits.query_buffer_bytes_max.load(std::memory_order_relaxed)) {
          close_for("Closing client that reached max query buffer length");
        } else if (!may_hold_input(parser_.held_bytes())) {
          parser_.refuse();
        }
        return;
      case RespParser::Status::kLargeArgument:
        // What came before is executed first, and may pause reading.
        if (!deliver()) begin_large_argument();
        break;
      case RespParser::Status::kError:
        // What came before may have been an AUTH that makes this right.
        if (deliver()) break;
        input_ended_ = true;
        handler_->on_protocol_error(parser_.error());
        flush();
        return;
    }
  }
}

bool ConnectionImpl::deliver() {
  if (!parser_.has_commands()) return false;
  handler_->on_commands(parser_.take_batch());
  flush();
  return true;
}

void ConnectionImpl::begin_large_argument() {
  const uint64_t bytes = parser_.large_argument_bytes();
  auto sink = handler_->argument_sink(parser_.arguments_so_far(), bytes);
  flush();
  if (closed_) return;
  if (!sink) {
    return may_hold_input(parser_.held_bytes() + bytes) ? parser_.gather() : parser_.refuse();
  }
  diversion_ = std::make_unique<Diversion>(Diversion{.sink = sink, .missing = bytes});
  parser_.divert(std::move(sink));
}

// True when the argument is complete and parsing may go on behind it.
bool ConnectionImpl::feed_sink() {
  Diversion& diversion = *diversion_;
  const size_t room = kSinkPieceBytes - diversion.piece.size();
  diversion.missing -=
      parser_.take_raw(std::min<uint64_t>(room, diversion.missing), diversion.piece);
  if (diversion.missing > 0 && diversion.piece.size() < kSinkPieceBytes) return false;
  if (diversion.discard) {
    diversion.piece.clear();
  } else if (!diversion.piece.empty()) {
    diversion.writing = true;
    diversion.sink->write(std::exchange(diversion.piece, {}), [weak = weak_from_this()](bool ok) {
      if (const auto self = weak.lock()) self->on_sink_ready(ok);
    });
    return may_read();  // the sink may have been ready at once
  }
  if (diversion.missing == 0) diversion_.reset();
  return true;
}

void ConnectionImpl::on_sink_ready(bool ok) {
  if (closed_ || !diversion_) return;
  diversion_->writing = false;
  if (!ok) diversion_->discard = true;
  resume_input();
}

void ConnectionImpl::resume_reading() {
  --pauses_;
  resume_input();
}

// Posted, because the caller may be anywhere.
void ConnectionImpl::resume_input() {
  if (processing_ || resume_posted_ || !may_read()) return;
  resume_posted_ = true;
  asio::post(loop_.executor(), [self = shared_from_this()] {
    self->resume_posted_ = false;
    if (!self->may_read()) return;
    self->data_waiting_ = false;
    self->continue_input();
  });
}

bool ConnectionImpl::may_hold_input(uint64_t bytes) const {
  if (bytes <= BatchPool::kSmallBytes) return true;
  const Limits& limits = loop_.state().limits;
  const uint64_t one_max = limits.command_bytes_max.load(std::memory_order_relaxed);
  if (one_max != 0 && bytes > one_max) return false;
  const uint64_t total_max = limits.query_total_bytes_max.load(std::memory_order_relaxed);
  const uint64_t others =
      loop_.state().query_bytes.load(std::memory_order_relaxed) - accounted_input_;
  if (total_max == 0 || others + bytes <= total_max) return true;
  // It is those that hold much who make room: everybody has a part that others cannot take.
  const uint64_t clients = loop_.state().connections.load(std::memory_order_relaxed);
  return bytes <= total_max / 2 / std::max<uint64_t>(1, clients);
}

void ConnectionImpl::hold_input(uint64_t bytes) {
  if (bytes == kept_input_) return;
  kept_input_ = bytes;
  account_input();
}

void ConnectionImpl::account_input() {
  const uint64_t piece = diversion_ ? diversion_->piece.capacity() : 0;
  const uint64_t half_record = tls_ ? tls_->held_bytes() : 0;
  const uint64_t held = parser_.capacity() + piece + half_record + kept_input_;
  if (held == 0 && accounted_input_ == 0) return;
  loop_.state().query_bytes.fetch_add(held - accounted_input_, std::memory_order_relaxed);
  accounted_input_ = held;
  const uint64_t used = parser_.held_bytes() + (diversion_ ? diversion_->piece.size() : 0);
  const uint64_t buffer = held - kept_input_;
  query_buffer_bytes.store(used, std::memory_order_relaxed);
  query_buffer_free.store(buffer - std::min(buffer, used), std::memory_order_relaxed);
}

}  // namespace ingot::net
