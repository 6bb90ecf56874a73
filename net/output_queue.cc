// A vector that is consumed from its head: it costs nothing while it is empty, which a connection's
// output nearly always is.
#include "net/output_queue.h"

#include <algorithm>
#include <utility>

namespace ingot::net {
namespace {

// Replies up to this size are joined rather than queued one by one.
constexpr size_t kJoinBytesMax = 4 * 1024;
constexpr size_t kJoinedBytesMax = 64 * 1024;
constexpr size_t kKeptSegments = 16;

// What was sent of `bytes` is let go once it is the larger part: each byte is copied once on
// average, and nobody who owes a few bytes holds a megabyte that is counted nowhere.
void let_go_of_sent(std::string& bytes, size_t& sent) {
  constexpr size_t kKeptBytes = 16 * 1024;
  if (bytes.capacity() <= kKeptBytes || bytes.size() - sent > bytes.capacity() / 2) return;
  std::string(bytes, sent).swap(bytes);  // assigning a short string would keep the buffer
  sent = 0;
}

}  // namespace

void OutputQueue::append(std::string&& bytes, size_t sent) {
  const size_t added = bytes.size() - sent;
  if (added == 0) return;
  bytes_ += added;
  if (!empty() && !segments_.back().body && !segments_.back().shared && added <= kJoinBytesMax &&
      segments_.back().bytes.size() + added <= kJoinedBytesMax) {
    segments_.back().bytes.append(bytes, sent);
    return;
  }
  segments_.push_back({.bytes = std::move(bytes), .sent = sent});
  let_go_of_sent(segments_.back().bytes, segments_.back().sent);
}

void OutputQueue::append_shared(SharedBytes bytes) {
  bytes_ += bytes->size();
  shared_bytes_ += bytes->size();
  segments_.push_back({.bytes = {}, .shared = std::move(bytes)});
}

void OutputQueue::append_body(std::unique_ptr<BodySource> body) {
  ++bodies_;
  if (!body->is_endless()) ++ending_bodies_;
  segments_.push_back({.bytes = {}, .body = std::move(body)});
}

BodySource* OutputQueue::hungry_body() const {
  if (empty()) return nullptr;
  const Segment& front = segments_[head_];
  return front.bytes.empty() ? front.body.get() : nullptr;
}

void OutputQueue::load_body(std::string&& piece) {
  bytes_ += piece.size();
  segments_[head_].bytes = std::move(piece);
}

bool OutputQueue::has_expired_body() const {
  if (!has_body()) return false;
  return std::any_of(
      segments_.begin() + static_cast<ptrdiff_t>(head_), segments_.end(),
      [](const Segment& segment) { return segment.body && segment.body->expired(); });
}

std::unique_ptr<BodySource> OutputQueue::end_body() {
  auto body = std::move(segments_[head_].body);
  --bodies_;
  if (!body->is_endless()) --ending_bodies_;
  drop_front();
  return body;
}

size_t OutputQueue::gather(std::span<asio::const_buffer> buffers) const {
  size_t count = 0;
  for (size_t i = head_; i < segments_.size() && count < buffers.size(); ++i) {
    const Segment& segment = segments_[i];
    const std::string_view view = segment.view();
    if (view.empty()) break;
    buffers[count++] = asio::buffer(view.data() + segment.sent, view.size() - segment.sent);
    if (segment.body) break;  // what follows waits for the rest of it
  }
  return count;
}

void OutputQueue::consume(size_t bytes) {
  bytes_ -= bytes;
  while (bytes > 0) {
    Segment& front = segments_[head_];
    const size_t size = front.view().size();
    const size_t taken = std::min(bytes, size - front.sent);
    front.sent += taken;
    bytes -= taken;
    if (front.shared) shared_bytes_ -= taken;
    if (front.sent < size) {
      if (!front.shared) let_go_of_sent(front.bytes, front.sent);
      return;
    }
    if (front.body) {
      std::string().swap(front.bytes);
      front.sent = 0;
    } else {
      drop_front();
    }
  }
}

void OutputQueue::drop_front() {
  const Segment gone = std::move(segments_[head_++]);  // with its buffer
  if (empty()) {
    head_ = 0;
    if (segments_.capacity() > kKeptSegments) {
      segments_ = std::vector<Segment>();
    } else {
      segments_.clear();
    }
  } else if (head_ >= kKeptSegments && head_ * 2 >= segments_.size()) {
    segments_.erase(segments_.begin(), segments_.begin() + static_cast<ptrdiff_t>(head_));
    head_ = 0;
  }
}

}  // namespace ingot::net
