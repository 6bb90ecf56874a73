// Who listens to what: subscriptions, patterns, and clients that leave.
#include <catch2/catch.hpp>

#include "src/contract/channels.h"
#include "src/contract/client.h"
#include "src/contract/pattern_map.h"

namespace ingot::contract {
namespace {

using Names = std::vector<std::string>;

Names receivers(const Channels& channels, int thread, std::string_view channel,
                bool sharded = false) {
  Names names;
  channels.for_receivers(thread, channel, sharded,
                         [&](ChannelKind, std::string_view name, Client& client) {
                           names.push_back(std::to_string(client.id) + " " + std::string(name));
                         });
  return names;
}

struct Clients {
  Client a{1, "a", "l", -1, false, 0, nullptr};
  Client b{2, "b", "l", -1, false, 0, nullptr};
  Clients() { b.thread_index = 1; }
};

TEST_CASE("each thread has its own receivers, and publishers count them all", "[channels]") {
  Channels channels;
  Clients clients;
  channels.subscribe(clients.a, ChannelKind::kChannel, "news");
  channels.subscribe(clients.a, ChannelKind::kChannel, "news");
  channels.subscribe(clients.a, ChannelKind::kPattern, "n*");
  channels.subscribe(clients.b, ChannelKind::kPattern, "n*");
  channels.subscribe(clients.b, ChannelKind::kShard, "news");
  CHECK(channels.audience("news", false).clients == 3);
  CHECK(channels.audience("news", false).threads == types::ThreadSet(3));
  CHECK(channels.audience("nobody", false).threads == types::ThreadSet(3));
  CHECK(channels.audience("news", true).threads == types::ThreadSet(2));
  CHECK(channels.audience("x", false).clients == 0);
  CHECK(receivers(channels, 0, "news") == Names{"1 news", "1 n*"});
  CHECK(receivers(channels, 1, "news") == Names{"2 n*"});
  CHECK(receivers(channels, 1, "news", true) == Names{"2 news"});
  CHECK(receivers(channels, 2, "news").empty());
  channels.unsubscribe(clients.a, ChannelKind::kPattern, "n*");
  channels.unsubscribe(clients.a, ChannelKind::kPattern, "n*");
  CHECK(receivers(channels, 0, "news") == Names{"1 news"});
  CHECK(channels.size(ChannelKind::kPattern) == 1);
}

TEST_CASE("a client that is closed leaves everything, in portions, and gets nothing any more",
          "[channels]") {
  Channels channels;
  Clients clients;
  for (int i = 0; i < 10; ++i) {
    channels.subscribe(clients.a, ChannelKind::kChannel, std::to_string(i));
    channels.subscribe(clients.a, ChannelKind::kPattern, std::to_string(i) + "*");
  }
  CHECK(clients.a.subscribed_bytes > 0);
  CHECK_FALSE(channels.close(clients.a, 15));
  CHECK(channels.close(clients.a, 15));
  channels.subscribe(clients.a, ChannelKind::kChannel, "late");
  CHECK_FALSE(clients.a.is_subscriber());
  CHECK(clients.a.subscribed_bytes == 0);
  CHECK(channels.size(ChannelKind::kChannel) == 0);
  CHECK(channels.size(ChannelKind::kPattern) == 0);
}

TEST_CASE("events are wanted while somebody may hear them", "[channels]") {
  Channels channels;
  Clients clients;
  const auto [kind, name, hears] = GENERATE(table<ChannelKind, std::string, bool>({
      {ChannelKind::kChannel, "__keyspace@0__:k", true},
      {ChannelKind::kChannel, "news", false},
      {ChannelKind::kChannel, "_", false},
      {ChannelKind::kPattern, "*", true},
      {ChannelKind::kPattern, "_?key*", true},
      {ChannelKind::kPattern, "__keyevent@3__:*", true},
      {ChannelKind::kPattern, "x*", false},
      {ChannelKind::kShard, "__keyspace@0__:k", false},
  }));
  channels.subscribe(clients.b, kind, name);
  CHECK(channels.any_hears_events() == hears);
  CHECK(channels.event_threads() == types::ThreadSet(hears ? 2 : 0));
  channels.unsubscribe(clients.b, kind, name);
  CHECK_FALSE(channels.any_hears_events());
}

TEST_CASE("names are listed in portions, each once", "[channels]") {
  Channels channels;
  Clients clients;
  for (int i = 0; i < 1000; ++i) {
    channels.subscribe(clients.a, ChannelKind::kChannel, std::to_string(i));
  }
  CHECK(channels.names_like(ChannelKind::kChannel, std::nullopt).size() == 1000);
  CHECK(channels.names_like(ChannelKind::kChannel, "77?") ==
        Names{"770", "771", "772", "773", "774", "775", "776", "777", "778", "779"});
  CHECK(channels.names_like(ChannelKind::kShard, std::nullopt).empty());
}

TEST_CASE("patterns are found by the texts that they match", "[channels]") {
  PatternMap<int> map;
  const Names patterns = {"*", "a*", "ab*", "a\\*b", "[ab]c", "abc", "", "?b*"};
  for (size_t i = 0; i < patterns.size(); ++i) map.at(patterns[i]) = static_cast<int>(i);
  const auto found = [&](std::string_view text) {
    std::set<std::string> names;
    map.for_matches(text, [&](const std::string& name, int) { names.insert(name); });
    return names;
  };
  CHECK(found("abc") == std::set<std::string>{"*", "a*", "ab*", "abc", "?b*"});
  CHECK(found("a*b") == std::set<std::string>{"*", "a*", "a\\*b"});
  CHECK(found("bc") == std::set<std::string>{"*", "[ab]c"});
  CHECK(found("") == std::set<std::string>{""});
  CHECK(map.size() == patterns.size());
  for (const std::string& pattern : patterns) {
    CHECK(map.find(pattern) != nullptr);
    map.erase(pattern);
    CHECK(map.find(pattern) == nullptr);
  }
  CHECK(map.size() == 0);
  CHECK(found("abc").empty());
}

}  // namespace
}  // namespace ingot::contract
