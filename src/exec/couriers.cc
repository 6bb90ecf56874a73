// Which threads a batch of notices goes to.
#include "src/exec/couriers.h"

#include <algorithm>
#include <utility>

namespace ingot::exec {

namespace {

constexpr size_t kBacklogBytesMax = 4 << 20;  // of one I/O thread
constexpr size_t kWaitingBytesMax = 1 << 20;  // of one slot, for those before it

}  // namespace

void Couriers::serve(std::span<net::IoThread* const> threads) {
  for (net::IoThread* thread : threads) {
    couriers_.push_back(std::make_unique<Courier>(
        *thread,
        Courier::Others{
            .channels = channels_, .tracking = tracking_, .clients = clients_, .couriers = *this}));
  }
}

void Couriers::release(types::Notices notices) {
  types::ThreadSet threads;
  bool any_event = false;
  bool any_change = false;
  bool any_shown = false;
  for (const types::Notice& notice : notices.list) {
    if (const auto* message = std::get_if<types::Message>(&notice)) {
      threads |= message->threads;
    } else if (const auto* read = std::get_if<types::KeyRead>(&notice)) {
      threads.set(static_cast<size_t>(read->thread));
    } else if (std::holds_alternative<types::Shown>(notice)) {
      any_shown = true;
    } else if (std::holds_alternative<types::Event>(notice)) {
      any_event = true;
    } else {
      any_change = true;
    }
  }
  if (any_event) threads |= channels_.event_threads();
  if (any_change) threads |= tracking_.threads();
  if (any_shown) threads |= channels_.monitor_threads();
  if (threads.none()) return;
  const auto batch = std::make_shared<const NoticeBatch>(
      NoticeBatch{.notices = std::move(notices.list), .bytes = notices.bytes});
  for (size_t i = 0; i < couriers_.size(); ++i) {
    if (threads.test(i)) couriers_[i]->post(batch);
  }
}

void Couriers::release_too_many(types::Notices& notices) {
  if (notices.bytes > kWaitingBytesMax) release(std::exchange(notices, {}));
}

void Couriers::forget_if_nobody_tracks() {
  if (tracking_.any()) return;
  for (const auto& courier : couriers_) courier->post_forget_reads();
}

void Couriers::trim_reads() {
  for (const auto& courier : couriers_) courier->post_trim_reads();
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
