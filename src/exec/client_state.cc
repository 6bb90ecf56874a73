// Copying a client's state, and putting the copy back.
#include "src/exec/client_state.h"

#include <algorithm>

namespace ingot::exec {

using contract::ChannelKind;

namespace {

constexpr ChannelKind kKinds[] = {ChannelKind::kChannel, ChannelKind::kPattern,
                                  ChannelKind::kShard};

}  // namespace

ClientState::ClientState(const contract::Client& client)
    : db_(client.db),
      resp_(client.resp),
      reply_mode_(client.reply_mode),
      close_after_reply_(client.close_after_reply),
      authenticated_(client.authenticated),
      no_evict_(client.no_evict),
      no_touch_(client.no_touch),
      name_(client.name()),
      library_name_(client.library_name()),
      library_version_(client.library_version()),
      account_(client.account()) {}

void ClientState::restore(contract::Client& client) const {
  client.db = db_;
  client.resp = resp_;
  client.reply_mode = reply_mode_;
  client.close_after_reply = close_after_reply_;
  client.authenticated = authenticated_;
  client.no_evict = no_evict_;
  client.no_touch = no_touch_;
  client.set_name(name_);
  client.set_library_name(library_name_);
  client.set_library_version(library_version_);
  client.set_account(account_);
}

ClientHearing::ClientHearing(const contract::Client& client, const contract::Channels* channels,
                             const contract::Tracking& tracking)
    : tracking_(client.tracking),
      redirect_(client.tracking_redirect),
      prefixes_(tracking.prefixes_of(client)) {
  if (channels == nullptr) return;
  for (const ChannelKind kind : kKinds) subscriptions_.push_back(channels->names_of(client, kind));
}

void ClientHearing::restore(contract::Client& client, contract::Channels& channels,
                            contract::Tracking& tracking) const {
  for (size_t i = 0; i < subscriptions_.size(); ++i) {
    const ChannelKind kind = kKinds[i];
    for (const std::string& name : channels.names_of(client, kind)) {
      if (std::ranges::binary_search(subscriptions_[i], name)) continue;
      channels.unsubscribe(client, kind, name);
    }
    for (const std::string& name : subscriptions_[i]) channels.subscribe(client, kind, name);
  }
  const bool same = client.tracking == tracking_ && client.tracking_redirect == redirect_ &&
                    tracking.prefixes_of(client) == prefixes_;
  if (same) return;
  tracking.disable(client);
  if (tracking_ == 0 || client.closed) return;
  (void)tracking.enable(
      client,
      {.mode = tracking_, .redirect = redirect_, .prefixes = {prefixes_.begin(), prefixes_.end()}});
  client.tracking = tracking_;
}

}  // namespace ingot::exec
