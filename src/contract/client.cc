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

uint64_t Client::memory_bytes() const {
  uint64_t bytes = sizeof(Client) + pending_bytes + queued_bytes + watched_bytes + subscribed_bytes;
  if (connection == nullptr) return bytes;
  return bytes + connection->query_buffer_bytes + connection->query_buffer_free +
         connection->output_bytes;
}

bool Client::is_local() const {
  return is_unix || address.starts_with("127.0.0.1:") || address.starts_with("[::1]:");
}

bool Client::is_subscriber() const {
  return subscribed_to(ChannelKind::kChannel) > 0 || subscribed_to(ChannelKind::kPattern) > 0 ||
         subscribed_to(ChannelKind::kShard) > 0;
}

std::string Client::get(const std::string& text) const {
  std::lock_guard lock(mutex_);
  return text;
}

void Client::set(std::string* text, std::string value) {
  std::lock_guard lock(mutex_);
  text->swap(value);
}

std::string Client::name() const {
  return get(name_);
}
std::string Client::library_name() const {
  return get(library_name_);
}
std::string Client::library_version() const {
  return get(library_version_);
}
void Client::set_name(std::string name) {
  set(&name_, std::move(name));
}
void Client::set_library_name(std::string name) {
  set(&library_name_, std::move(name));
}
void Client::set_library_version(std::string version) {
  set(&library_version_, std::move(version));
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
