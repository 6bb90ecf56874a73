// Which threads a batch of notices goes to.
#include "src/exec/couriers.h"

#include <algorithm>

namespace ingot::exec {

namespace {

constexpr size_t kBacklogBytesMax = 4 << 20;  // of one I/O thread

}  // namespace

void Couriers::serve(std::span<net::IoThread* const> threads) {
  for (net::IoThread* thread : threads) {
    couriers_.push_back(std::make_unique<Courier>(*thread, channels_));
  }
}

void Couriers::release(std::vector<types::Notice> notices, size_t bytes) {
  types::ThreadSet threads;
  bool any_event = false;
  for (const types::Notice& notice : notices) {
    if (const auto* message = std::get_if<types::Message>(&notice)) threads |= message->threads;
    any_event = any_event || std::holds_alternative<types::Event>(notice);
  }
  if (any_event) threads |= channels_.event_threads();
  if (threads.none()) return;
  const auto batch = std::make_shared<const NoticeBatch>(NoticeBatch{
      .notices = std::move(notices), .bytes = bytes, .event_kinds = event_kinds_.load()});
  for (size_t i = 0; i < couriers_.size(); ++i) {
    if (threads.test(i)) couriers_[i]->post(batch);
  }
}

Courier* Couriers::overladen() const {
  Courier* worst = nullptr;
  size_t most = kBacklogBytesMax;
  for (const auto& courier : couriers_) {
    const size_t bytes = courier->backlog_bytes();
    if (bytes <= most) continue;
    most = bytes;
    worst = courier.get();
  }
  return worst;
}

}  // namespace ingot::exec
