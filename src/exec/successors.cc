// Who comes in and who falls out.
#include "src/exec/successors.h"

#include <algorithm>
#include <string_view>

namespace ingot::exec {

using contract::Client;
using contract::Replica;

namespace {

std::string_view host_of(const Client& client) {
  if (!client.replica->ip.empty()) return client.replica->ip;
  return std::string_view(client.address).substr(0, client.address.rfind(':'));
}

// Two connections of one server.
bool is_same(const Client& a, const Client& b) {
  return a.replica->port != 0 && a.replica->port == b.replica->port && host_of(a) == host_of(b);
}

}  // namespace

void Successors::note_acks() {
  if (replicas_.write_acks == 0) return;
  for (auto& client : replicas_.all()) {
    const Replica& replica = *client->replica;
    if (replica.state != Replica::State::kOnline || replica.acked < answered_) continue;
    if (std::ranges::find(members_, client) != members_.end()) continue;
    std::erase_if(members_, [&](const auto& member) { return is_same(*member, *client); });
    members_.push_back(std::move(client));
  }
}

bool Successors::all_have(uint64_t offset, int64_t now_ms) const {
  return now_ms - started_ms_ >= replicas_.write_acks_ms &&
         replicas_.count_acked(offset) >= replicas_.write_acks &&
         std::ranges::all_of(members_,
                             [&](const auto& each) { return each->replica->acked >= offset; });
}

void Successors::answered(uint64_t offset) {
  answered_ = offset;
  std::erase_if(members_, [&](const auto& each) { return each->replica->acked < offset; });
}

void Successors::forget() {
  answered_ = 0;
  members_.clear();
}

}  // namespace ingot::exec
