// The replication section of INFO, and who follows, in one place. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/contract/master_link.h"
#include "src/contract/replicas.h"
#include "src/exec/services.h"
#include "src/server/info_sections.h"

namespace ingot::server {

std::string_view state_name(contract::Replica::State state);  // in Redis' words

// One that follows this server, as INFO and ROLE tell of it.
struct Follower {
  std::string ip;
  int port = 0;
  std::string_view state;  // wait_bgsave, send_bulk, online
  uint64_t offset = 0;     // that it has acknowledged
  int64_t lag_s = 0;       // since it last did
};
std::vector<Follower> followers(exec::Services& services);  // in the order of coming

// What is told of this server as it follows another one.
void write_master_link(const InfoSource& source, const contract::MasterLink& link, InfoFields& out);
// What is told of this server as others follow it.
void write_followers(const InfoSource& source, InfoFields& out);

}  // namespace ingot::server
