// Client side caching: what a courier tells those who track keys. A client that has read a key is
// told once, and must read it again to be told again. With BCAST all changes under a prefix are
// told, those of one batch together.
#include "net/resp_writer.h"
#include "src/contract/client.h"
#include "src/contract/client_registry.h"
#include "src/exec/courier.h"
#include "src/exec/couriers.h"

namespace ingot::exec {

using contract::Client;
namespace tracks = contract::tracks;

namespace {

constexpr size_t kForgottenInTurn = 256;

net::SharedBytes without_first_byte(std::string text) {
  text.erase(0, 1);
  return std::make_shared<const std::string>(std::move(text));
}

// The start of an invalidation, in RESP3 and as a message to a subscriber.
const net::SharedBytes& push_head() {
  static const net::SharedBytes head = [] {
    std::string text;
    net::RespWriter writer(text, 3);
    writer.push(2);
    writer.bulk("invalidate");
    return without_first_byte(std::move(text));
  }();
  return head;
}

const net::SharedBytes& message_head() {
  static const net::SharedBytes head = [] {
    std::string text;
    net::RespWriter writer(text, 2);
    writer.array(3);
    writer.bulk("message");
    writer.bulk("__redis__:invalidate");
    return without_first_byte(std::move(text));
  }();
  return head;
}

template <typename Keys>
net::SharedBytes encoded(net::IoThread& thread, const Keys& keys) {
  auto text = std::make_shared<std::string>();
  net::RespWriter writer(*text, 2);
  writer.array(keys.size());
  for (const std::string_view key : keys) writer.bulk(key);
  // What is not copied into each output has to be counted as everybody's.
  if (text->size() > net::kSharedBytesMin) return thread.share(std::move(text));
  return text;
}

void push_invalidation(Client& client, const net::SharedBytes& keys, bool is_redirected) {
  if (client.resp == 3) {
    client.pushes->push({.head = push_head(), .body = keys});
  } else if (is_redirected && client.is_subscriber()) {
    client.pushes->push({.head = message_head(), .body = keys});
  }
}

}  // namespace

void Courier::remember_read(std::string_view key, uint64_t client) {
  reads_.remember(key, client);
  if (others_.tracking.is_too_much()) others_.couriers.trim_reads();
}

void Courier::add_invalidation(Client& client, net::SharedBytes body) {
  const bool is_new = letters_.empty() || letters_.back().push.body != body;
  if (is_new) {
    letters_.push_back(
        {.push = {.head = nullptr, .body = std::move(body)}, .kind = std::nullopt, .name = {}});
  }
  parcels_.push_back({.client = &client, .letter = letters_.size() - 1});
}

void Courier::open(const types::KeyChange& change) {
  note_for_broadcast(change);
  const TrackingTable::Clients ids = reads_.take(change.key);
  if (ids.empty()) return;
  const net::SharedBytes keys = encoded(thread_, std::vector<std::string_view>{change.key});
  for (const uint64_t id : ids) {
    Client* const client = others_.tracking.find(thread_.index(), id);
    if (client == nullptr || (client->tracking & tracks::kBroadcast) != 0) continue;
    if ((client->tracking & tracks::kNoLoop) != 0 && id == change.author) continue;
    add_invalidation(*client, keys);
  }
}

void Courier::note_for_broadcast(const types::KeyChange& change) {
  others_.tracking.for_prefixes_of(thread_.index(), change.key, [&](const std::string& prefix) {
    broadcasts_[prefix][change.key] = change.author;
  });
}

void Courier::address_broadcasts() {
  letters_.clear();
  parcels_.clear();
  next_parcel_ = 0;
  for (const auto& [prefix, changes] : broadcasts_) {
    std::vector<std::string_view> keys;
    for (const auto& [key, author] : changes) keys.push_back(key);
    const net::SharedBytes all = encoded(thread_, keys);
    others_.tracking.for_clients_of(thread_.index(), prefix, [&](Client& client) {
      if ((client.tracking & tracks::kNoLoop) == 0) return add_invalidation(client, all);
      std::vector<std::string_view> of_others;
      for (const auto& [key, author] : changes) {
        if (author != client.id) of_others.push_back(key);
      }
      if (of_others.size() == keys.size()) return add_invalidation(client, all);
      if (!of_others.empty()) add_invalidation(client, encoded(thread_, of_others));
    });
  }
  broadcasts_.clear();
}

// A null, in the version of the client that tracks.
void Courier::open(const types::AllChanged&) {
  static const auto null_of_2 = std::make_shared<const std::string>("$-1\r\n");
  static const auto null_of_3 = std::make_shared<const std::string>("_\r\n");
  reads_.clear();
  others_.tracking.for_clients(thread_.index(), [&](Client& client) {
    add_invalidation(client, client.resp == 3 ? null_of_3 : null_of_2);
  });
}

// `keys`: encoded.
void Courier::invalidate(Client& client, const net::SharedBytes& keys) {
  if (client.tracking == 0) return;
  const uint64_t redirect = client.tracking_redirect;
  if (redirect == 0) {
    push_invalidation(client, keys, /*is_redirected=*/false);
    to_flush_.push_back(&client);
    return;
  }
  if (auto target = others_.clients.find(redirect)) {
    Courier& courier = others_.couriers.at(target->thread_index);
    return courier.post_invalidation(std::move(target), keys);
  }
  client.tracking.fetch_or(tracks::kBrokenRedirect);
  if (client.resp != 3) return;
  std::string text;
  net::RespWriter writer(text, 3);
  writer.push(2);
  writer.bulk("tracking-redir-broken");
  writer.integer(static_cast<int64_t>(redirect));
  client.pushes->push(
      {.head = without_first_byte(std::move(text)), .body = std::make_shared<const std::string>()});
  to_flush_.push_back(&client);
}

void Courier::post_invalidation(std::shared_ptr<Client> client, net::SharedBytes keys) {
  thread_.post([client = std::move(client), keys = std::move(keys)] {
    if (client->pushes == nullptr) return;
    push_invalidation(*client, keys, /*is_redirected=*/true);
    client->pushes->flush_pushes();
  });
}

void Courier::post_forget_reads() {
  thread_.post([this] {
    if (!others_.tracking.any()) reads_.clear();
  });
}

// Posted always: whoever is about to read a key must have his reply before he is told of it.
void Courier::post_trim_reads() {
  if (trimming_.exchange(true)) return;
  thread_.post([this] {
    trimming_ = false;
    trim_reads();
  });
}

// What one thread has more than its part of; the others are asked, too.
void Courier::trim_reads() {
  const contract::Tracking& tracking = others_.tracking;
  const auto has_too_much = [&] {
    return tracking.is_too_much() &&
           (reads_.size() > tracking.keys_max / others_.couriers.size() ||
            reads_.bytes() > tracking.bytes_max / others_.couriers.size());
  };
  for (size_t i = 0; i < kForgottenInTurn && reads_.size() > 0 && has_too_much(); ++i) {
    const std::string key = reads_.any_key();
    const net::SharedBytes keys = encoded(thread_, std::vector<std::string_view>{key});
    for (const uint64_t id : reads_.take(key)) {
      Client* const client = others_.tracking.find(thread_.index(), id);
      if (client != nullptr && client->pushes != nullptr) invalidate(*client, keys);
    }
  }
  flush();
  if (reads_.size() > 0 && has_too_much()) post_trim_reads();
}

}  // namespace ingot::exec
