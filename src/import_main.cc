// ingot-import: copies all that a running SSDB server has to a running Ingot or Redis.
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/client/resp_client.h"
#include "src/ssdb/ssdb_client.h"
#include "src/ssdb/ssdb_import.h"

namespace {

namespace ssdb = ingot::ssdb;
using ingot::client::Reply;

constexpr const char* kUsage =
    "Usage: ingot-import [options] SSDB-HOST:PORT HOST:PORT\n"
    "\n"
    "Copies what the first server, an SSDB, has to the second one, an Ingot or a Redis: kv to\n"
    "strings (with their time to live), hashes to hashes, zsets to sorted sets, queues to lists.\n"
    "Passwords are taken from the environment variables SSDB_AUTH and REDISCLI_AUTH.\n"
    "\n"
    "  --db N              database of the target; 0 if nothing is said\n"
    "  --user NAME         user of the target\n"
    "  --replace           replace keys that the target has already, instead of leaving them\n"
    "  --prefix-kv TEXT, --prefix-hash TEXT, --prefix-zset TEXT, --prefix-queue TEXT\n"
    "                      put this before the names of one type: SSDB may have one name in\n"
    "                      several types. Without that the first of them, in this order, has the\n"
    "                      key, and the others are refused\n"
    "  --dry-run           read everything and write nothing\n"
    "\n"
    "It can be run again after it was broken off: keys that are there are passed over. What is\n"
    "written to SSDB meanwhile may or may not be copied. Scores beyond 2^53 are rounded to a\n"
    "double, as Redis has them, and counted.\n"
    "\n"
    "Exit code: 0 all is there; 1 something was refused, failed, rounded or changed meanwhile, as\n"
    "told at the end; 2 it could not be done, or not to the end.\n";

constexpr int kFailed = 2;

struct Address {
  std::string host;
  uint16_t port = 0;
};

struct Request {
  std::vector<Address> servers;
  std::string user;
  std::string db = "0";
  ssdb::ImportOptions options;
};

int fail(const std::string& why) {
  fmt::print(stderr, "ingot-import: {}\n", why);
  return kFailed;
}

// HOST:PORT, where an IPv6 address may stand in brackets.
std::optional<Address> parse_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  Address address{.host = std::string(text.substr(0, colon))};
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size()) return std::nullopt;
  return address;
}

std::string* text_option(Request& request, std::string_view word) {
  auto& prefixes = request.options.prefixes;
  if (word == "--user") return &request.user;
  if (word == "--db") return &request.db;
  if (word == "--prefix-kv") return &prefixes[0];
  if (word == "--prefix-hash") return &prefixes[1];
  if (word == "--prefix-zset") return &prefixes[2];
  if (word == "--prefix-queue") return &prefixes[3];
  return nullptr;
}

std::optional<Request> parse(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--dry-run") {
      request.options.dry_run = true;
    } else if (word == "--replace") {
      request.options.replace = true;
    } else if (std::string* option = text_option(request, word)) {
      if (++i == argc) return std::nullopt;
      *option = argv[i];
    } else {
      const auto address = parse_address(word);
      if (!address || word.starts_with('-')) return std::nullopt;
      request.servers.push_back(*address);
    }
  }
  if (request.servers.size() != 2) return std::nullopt;
  return request;
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void tell(const ssdb::SsdbImport& done) {
  constexpr const char* kMapped[] = {"kv -> string", "hash -> hash", "zset -> sorted set",
                                     "queue -> list"};
  for (size_t type = 0; type < ssdb::kSsdbTypes; ++type) {
    const ssdb::ImportCounts& counts = done.counts()[type];
    fmt::print("{}: {} copied, {} there already, {} refused, {} failed; {} elements", kMapped[type],
               counts.copied, counts.there, counts.refused, counts.failed, counts.elements);
    if (counts.expiring > 0) fmt::print(", {} expire", counts.expiring);
    if (counts.rounded > 0) fmt::print(", {} scores rounded", counts.rounded);
    if (counts.uneven > 0) fmt::print(", {} changed meanwhile", counts.uneven);
    fmt::print("\n");
  }
}

int run(const Request& request) {
  ssdb::SsdbClient source;
  const Address& from = request.servers[0];
  if (auto why = source.connect(from.host, from.port, from_environment("SSDB_AUTH"));
      !why.empty()) {
    return fail("SSDB: " + why);
  }
  ingot::client::RespClient target;
  const Address& to = request.servers[1];
  if (auto why = target.connect({.host = to.host,
                                 .port = to.port,
                                 .socket = {},
                                 .user = request.user,
                                 .password = from_environment("REDISCLI_AUTH")});
      !why.empty()) {
    return fail("target: " + why);
  }
  Reply reply;
  if (!target.call({"SELECT", request.db}, &reply)) return fail("target: it has hung up");
  if (reply.kind == Reply::Kind::kError) return fail("target: " + reply.text);

  ssdb::SsdbImport copying(source, target, request.options);
  const std::string why = copying.run();
  if (request.options.dry_run) fmt::print("nothing was written; what would be:\n");
  tell(copying);
  if (!why.empty()) return fail(why + " (it can be run again)");
  return copying.all_copied() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    fmt::print("{}", kUsage);
    return 0;
  }
  const auto request = parse(argc, argv);
  if (!request) {
    fmt::print(stderr, "{}", kUsage);
    return kFailed;
  }
  return run(*request);
}
