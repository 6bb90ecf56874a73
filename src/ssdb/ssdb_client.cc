// SSDB's protocol: writing commands, and taking replies apart item by item.
#include "src/ssdb/ssdb_client.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

namespace ingot::ssdb {
namespace {

constexpr int64_t kPatienceMs = 60'000;
constexpr size_t kItemBytesMax = 512 << 20;  // what a value of Redis may have; SSDB takes less

}  // namespace

std::string SsdbClient::connect(const std::string& host, uint16_t port,
                                const std::string& password) {
  const std::string name = fmt::format("{}:{}", host, port);
  if (connection_.connect(host, port, kPatienceMs) != net::SyncClient::Reached::kYes) {
    return fmt::format("cannot connect to {}", name);
  }
  const std::string no_ssdb = fmt::format(
      "{} does not answer as SSDB does (a Redis is followed with REPLICAOF instead)", name);
  std::vector<std::string> reply;
  if (!password.empty()) {
    add({"auth", password});
    if (!read(&reply) || reply.empty()) return no_ssdb;
    if (reply[0] != "ok") return fmt::format("{} does not take the password", name);
  }
  add({"ping"});
  if (!read(&reply) || reply.empty()) return no_ssdb;
  if (reply[0] == "ok") return {};
  return fmt::format("{} refuses: {}", name, reply.back());
}

void SsdbClient::add(const std::vector<std::string_view>& command) {
  for (const std::string_view item : command) {
    fmt::format_to(std::back_inserter(unsent_), "{}\n", item.size());
    unsent_.append(item).append("\n");
  }
  unsent_.append("\n");
}

SsdbClient::Next SsdbClient::next(std::string* item) {
  if (!unsent_.empty()) {
    if (!connection_.send(unsent_, kPatienceMs)) return Next::kFailed;
    unsent_.clear();
  }
  std::string line;
  if (!connection_.read_line(&line, kPatienceMs)) return Next::kFailed;
  if (line.empty()) return Next::kEnd;
  size_t bytes = 0;
  const char* const end = line.data() + line.size();
  const auto [parsed, error] = std::from_chars(line.data(), end, bytes);
  if (error != std::errc() || parsed != end || bytes > kItemBytesMax) return Next::kFailed;
  const bool came = connection_.read_bytes(bytes, item, kPatienceMs) &&
                    connection_.read_line(&line, kPatienceMs) && line.empty();
  return came ? Next::kItem : Next::kFailed;
}

bool SsdbClient::read(std::vector<std::string>* items) {
  items->clear();
  std::string item;
  Next got = next(&item);
  for (; got == Next::kItem; got = next(&item)) items->push_back(std::move(item));
  return got == Next::kEnd;
}

}  // namespace ingot::ssdb
