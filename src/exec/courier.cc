// Turns of a courier, and how messages are worded.
#include "src/exec/courier.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "net/resp_writer.h"
#include "src/contract/client.h"

namespace ingot::exec {

using contract::ChannelKind;
using contract::Client;

namespace {

constexpr size_t kPushesInTurn = 256;  // a millisecond or two, with the write to each socket

// An array of these, without its first byte.
std::string push_head(size_t elements, std::initializer_list<std::string_view> first) {
  std::string head;
  net::RespWriter writer(head, 2);
  writer.array(elements);
  for (const std::string_view text : first) writer.bulk(text);
  head.erase(0, 1);
  return head;
}

std::string head_of(ChannelKind kind, std::string_view name, std::string_view channel) {
  switch (kind) {
    case ChannelKind::kChannel:
      return push_head(3, {"message", channel});
    case ChannelKind::kPattern:
      return push_head(4, {"pmessage", name, channel});
    case ChannelKind::kShard:
      return push_head(3, {"smessage", channel});
    case ChannelKind::kMonitor:
      break;
  }
  return {};
}

net::SharedBytes bulk_of(std::string_view text) {
  auto bulk = std::make_shared<std::string>();
  net::RespWriter(*bulk, 2).bulk(text);
  return bulk;
}

}  // namespace

void Courier::post(std::shared_ptr<const NoticeBatch> batch) {
  backlog_bytes_.fetch_add(batch->bytes, std::memory_order_relaxed);
  thread_.post([this, batch = std::move(batch)]() mutable {
    take({.batch = std::move(batch), .then = {}});
  });
}

void Courier::behind_all(std::move_only_function<void()> then) {
  thread_.post([this, then = std::move(then)]() mutable {
    take({.batch = nullptr, .then = std::move(then)});
  });
}

void Courier::take(Item item) {
  items_.push_back(std::move(item));
  if (!std::exchange(running_, true)) run();
}

void Courier::run() {
  size_t left = kPushesInTurn;
  while (left > 0 && (next_parcel_ < parcels_.size() || !items_.empty())) {
    if (next_parcel_ < parcels_.size()) {
      carry_parcel();
      --left;
      continue;
    }
    Item& item = items_.front();
    if (item.batch && next_notice_ < item.batch->notices.size()) {
      open(item.batch->notices[next_notice_++]);
      --left;
      continue;
    }
    if (item.batch && !broadcasts_.empty()) {
      address_broadcasts();
      continue;
    }
    if (item.batch) backlog_bytes_.fetch_sub(item.batch->bytes, std::memory_order_relaxed);
    if (item.then) item.then();
    items_.pop_front();
    next_notice_ = 0;
  }
  first_turn_ = false;
  flush();
  running_ = left == 0;
  if (running_) thread_.post([this] { run(); });
}

void Courier::flush() {
  for (Client* client : std::exchange(to_flush_, {})) {
    if (client->pushes != nullptr) client->pushes->flush_pushes();
  }
}

void Courier::carry_parcel() {
  const auto [client, letter_index] = parcels_[next_parcel_++];
  if (client == nullptr || client->pushes == nullptr) return;
  const Letter& letter = letters_[letter_index];
  if (!letter.kind) return invalidate(*client, letter.push.body);
  // It may have unsubscribed since the turn before.
  if (!first_turn_ && !others_.channels.has(*client, *letter.kind, letter.name)) return;
  client->pushes->push(letter.push);
  to_flush_.push_back(client);
}

void Courier::open(const types::Notice& notice) {
  letters_.clear();
  parcels_.clear();
  next_parcel_ = 0;
  first_turn_ = true;
  if (const auto* message = std::get_if<types::Message>(&notice)) return address(*message);
  if (const auto* change = std::get_if<types::KeyChange>(&notice)) return open(*change);
  if (const auto* all = std::get_if<types::AllChanged>(&notice)) return open(*all);
  if (const auto* read = std::get_if<types::KeyRead>(&notice)) {
    if (read->thread == thread_.index()) remember_read(read->key, read->client);
    return;
  }
  if (const auto* shown = std::get_if<types::Shown>(&notice)) return address(*shown);
  const auto& event = std::get<types::Event>(notice);
  if ((event.kinds & types::notify::kKeyspace) != 0) {
    address({.channel = fmt::format("__keyspace@{}__:{}", event.db, event.key),
             .bulk = bulk_of(event.name)});
  }
  if ((event.kinds & types::notify::kKeyevent) != 0) {
    address({.channel = fmt::format("__keyevent@{}__:{}", event.db, event.name),
             .bulk = bulk_of(event.key)});
  }
}

// What connections send without copying it they do not count themselves.
net::SharedBytes Courier::counted(net::SharedBytes bytes) {
  return bytes->size() > net::kSharedBytesMin ? thread_.share(std::move(bytes)) : bytes;
}

void Courier::address(const types::Message& message) {
  const size_t first = letters_.size();
  others_.channels.for_receivers(
      thread_.index(), message.channel, message.sharded,
      [&](ChannelKind kind, std::string_view name, Client& client) {
        const bool is_new = letters_.size() == first || letters_.back().kind != kind ||
                            letters_.back().name != name;
        if (is_new) letters_.push_back({.push = {}, .kind = kind, .name = std::string(name)});
        parcels_.push_back({.client = &client, .letter = letters_.size() - 1});
      });
  const net::SharedBytes body = letters_.size() == first ? nullptr : counted(message.bulk);
  for (size_t i = first; i < letters_.size(); ++i) {
    Letter& letter = letters_[i];
    letter.push = {.head = counted(std::make_shared<std::string>(
                       head_of(*letter.kind, letter.name, message.channel))),
                   .body = body};
  }
}

void Courier::address(const types::Shown& shown) {
  static const auto kNothing = std::make_shared<const std::string>();
  others_.channels.for_monitors(thread_.index(), [&](Client& client) {
    parcels_.push_back({.client = &client, .letter = 0});
  });
  if (parcels_.empty()) return;
  letters_.push_back({.push = {.head = counted(std::make_shared<std::string>(shown.line + "\r\n")),
                               .body = kNothing,
                               .mark = '+'},
                      .kind = ChannelKind::kMonitor,
                      .name = {}});
}

void Courier::forget(const Client& client) {
  for (size_t i = next_parcel_; i < parcels_.size(); ++i) {
    if (parcels_[i].client == &client) parcels_[i].client = nullptr;
  }
}

}  // namespace ingot::exec
