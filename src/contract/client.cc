// A client's identity and its name; the rest of the client is plain state.
#include "src/contract/client.h"

#include <algorithm>
#include <utility>

namespace ingot::contract {

Client::Client(uint64_t client_id, std::string peer, std::string local, int socket,
               bool unix_socket, int64_t now_ms, std::shared_ptr<access::Account> account)
    : id(client_id),
      address(std::move(peer)),
      local_address(std::move(local)),
      fd(socket),
      is_unix(unix_socket),
      created_ms(now_ms),
      account_(std::move(account)) {}

bool Client::is_local() const {
  return is_unix || address.starts_with("127.0.0.1:") || address.starts_with("[::1]:");
}

bool Client::is_subscriber() const {
  return subscribed_to(ChannelKind::kChannel) > 0 || subscribed_to(ChannelKind::kPattern) > 0 ||
         subscribed_to(ChannelKind::kShard) > 0;
}

std::string Client::name() const {
  std::lock_guard lock(mutex_);
  return name_;
}

void Client::set_name(std::string name) {
  std::lock_guard lock(mutex_);
  name_ = std::move(name);
}

void Client::set_account(std::shared_ptr<access::Account> account) {
  std::lock_guard lock(mutex_);
  account_.swap(account);
}

std::shared_ptr<access::Account> Client::account() const {
  std::lock_guard lock(mutex_);
  return account_;
}

}  // namespace ingot::contract
