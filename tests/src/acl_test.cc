// Users, their rules and what they allow, without a server: the pieces that black-box tests cannot
// tell apart, and many threads at a time.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "src/access/acl_log.h"
#include "src/access/describe.h"
#include "src/access/passwords.h"
#include "src/access/redis_only.h"
#include "src/access/rules.h"
#include "src/access/user_file.h"
#include "src/access/users.h"
#include "src/access/verdict.h"
#include "src/commands/families.h"
#include "storage/check.h"
#include "storage/memory/memory_engine.h"
#include "tests/src/in_process.h"

using namespace ingot;
using access::Reason;
using access::Users;

namespace {

using Rules = std::vector<std::string_view>;

const contract::Table& table() {
  static const contract::Table made(commands::all_families());
  return made;
}

struct Fixture {
  Users users{commands::all_families()};

  std::shared_ptr<const access::User> set(std::string_view name, const Rules& rules) {
    const auto change = users.set(name, rules, /*all_channels=*/false);
    INFO((change ? "" : change.error()));
    REQUIRE(change.has_value());
    return change->account->user();
  }
  std::string error(const Rules& rules) {
    const auto change = users.set("u", rules, false);
    return change ? "OK" : change.error();
  }
  std::string described(std::string_view name) {
    return access::describe(*users.find(name)->user(), users.ids());
  }
  access::Verdict check(const access::User& user, const Rules& args) {
    std::string unused;
    return access::check(user, users.ids(), *table().resolve(args, &unused).row, args);
  }
};

std::unique_ptr<storage::Engine> memory() {
  return std::move(storage::open_memory({}).first);
}

}  // namespace

TEST_CASE("acl: what is listed as Redis' alone is not ours", "[acl]") {
  for (const access::RedisOnly& command : access::redis_only_commands()) {
    INFO(command.name);
    const size_t bar = command.name.find('|');
    const contract::CommandRow* row = table().find(command.name.substr(0, bar));
    if (bar == std::string_view::npos) {
      CHECK(row == nullptr);
    } else if (row != nullptr) {
      const Rules words = {command.name.substr(0, bar), command.name.substr(bar + 1)};
      std::string unused;
      CHECK(table().resolve(words, &unused).row == nullptr);
    }
  }
}

TEST_CASE("acl: passwords are SHA-256", "[acl]") {
  CHECK(access::hash_password("") ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(access::is_password_hash(access::hash_password("abc")));
  CHECK_FALSE(access::is_password_hash("abc"));
  CHECK(access::same_hash("abcd", "abcd"));
  CHECK_FALSE(access::same_hash("abcd", "abce"));
  CHECK_FALSE(access::same_hash("abcd", "abc"));
  CHECK(access::random_hex(7).size() == 7);
}

TEST_CASE("acl: who may do everything is known without a look at the rules", "[acl]") {
  Fixture test;
  const access::AccountPtr account = test.users.default_account();
  CHECK(account->is_unrestricted());
  CHECK_FALSE(account->needs_password());
  const auto unrestricted_after = [&](const Rules& rules) {
    test.set("default", rules);
    return account->is_unrestricted();
  };
  CHECK_FALSE(unrestricted_after({"-get"}));
  CHECK_FALSE(unrestricted_after({"+get"}));  // what comes later is not allowed
  CHECK(unrestricted_after({"+@all"}));
  CHECK_FALSE(unrestricted_after({"resetkeys", "%RW~*"}));
  CHECK(unrestricted_after({"(~* &* +@all)"}));
  CHECK_FALSE(unrestricted_after({"clearselectors"}));
  CHECK(unrestricted_after({"~*"}));
  CHECK_FALSE(unrestricted_after({"resetchannels"}));
  test.set("default", {"off"});
  CHECK(account->needs_password());
}

TEST_CASE("acl: a user that is deleted may do nothing, and one of its name is another", "[acl]") {
  Fixture test;
  test.set("u", {"on", "nopass", "~*", "&*", "+@all"});
  const access::AccountPtr account = test.users.authenticate("u", "any");
  REQUIRE(account != nullptr);
  const uint64_t version = account->version();
  CHECK(test.users.remove("u"));
  CHECK_FALSE(test.users.remove("u"));
  CHECK_FALSE(test.users.remove("default"));
  CHECK(account->is_deleted());
  CHECK_FALSE(account->is_unrestricted());
  CHECK(account->version() != version);
  CHECK(test.check(*account->user(), {"get", "k"}).reason == Reason::kCommand);
  CHECK(test.users.authenticate("u", "any") == nullptr);
  test.set("u", {"on", "nopass"});
  CHECK(test.users.find("u") != account);
}

TEST_CASE("acl: of several selectors' reasons the last one counts", "[acl]") {
  Fixture test;
  const auto user = test.set("u", {"~a", "+get", "+mget", "(~b +mget)", "(%R~c %W~d +copy)"});
  CHECK(test.check(*user, {"get", "a"}).is_allowed());
  CHECK(test.check(*user, {"set", "a", "1"}).reason == Reason::kCommand);
  CHECK(test.check(*user, {"get", "b"}).reason == Reason::kKey);
  const access::Verdict verdict = test.check(*user, {"mget", "a", "a", "b"});
  CHECK(verdict.reason == Reason::kKey);
  CHECK(verdict.argument == 3);
  CHECK(test.check(*user, {"mget", "b", "b"}).is_allowed());
  CHECK(test.check(*user, {"copy", "c", "d"}).is_allowed());
  CHECK(test.check(*user, {"copy", "d", "c"}).argument == 1);
}

TEST_CASE("acl: channels to listen on", "[acl]") {
  Fixture test;
  const auto none = test.set("u", {"on"});
  const auto some = test.set("u", {"&news:*", "(&x)"});
  CHECK(access::may_listen(*some, "news:1", false));
  CHECK(access::may_listen(*some, "x", false));
  CHECK(access::may_listen(*some, "news:*", true));
  CHECK_FALSE(access::may_listen(*some, "news:1", true));
  CHECK_FALSE(access::may_listen(*some, "other", false));
  const auto all = test.set("u", {"&*"});
  CHECK(access::may_listen(*all, "anything", true));
  CHECK(access::narrows_channels(*all, *some));
  CHECK(access::narrows_channels(*some, *none));
  CHECK_FALSE(access::narrows_channels(*none, *some));
  CHECK_FALSE(access::narrows_channels(*some, *all));
  CHECK_FALSE(access::narrows_channels(*some, *some));
}

TEST_CASE("acl: rules that fail leave the user as it was", "[acl]") {
  Fixture test;
  test.set("u", {"on", "~a", "+get"});
  const std::string before = test.described("u");
  CHECK(test.error({"~b", "+set", ">p", "(~x +get)", "nonsense"}) ==
        "Error in ACL SETUSER modifier 'nonsense': Syntax error");
  CHECK(test.error({"off", "(~x"}) == "Unmatched parenthesis in acl selector starting at '(~x'.");
  CHECK(test.described("u") == before);
}

TEST_CASE("acl: the log merges what repeats within a minute", "[acl]") {
  access::AclLog log;
  const auto add = [&](std::string object, int64_t time_ms) {
    log.add({.reason = "key", .object = std::move(object), .user = "u", .time_ms = time_ms}, 3);
  };
  add("a", 0);
  add("b", 10);
  add("a", 60'000);
  auto entries = log.newest(10);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].object == "a");
  CHECK(entries[0].count == 2);
  CHECK(entries[0].time_ms == 60'000);
  add("a", 120'001);
  entries = log.newest(10);
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].count == 1);
  add("c", 120'002);
  entries = log.newest(10);
  REQUIRE(entries.size() == 3);
  CHECK(entries[2].object == "a");  // "b" is forgotten
  CHECK(log.newest(1).size() == 1);
  log.reset();
  CHECK(log.newest(10).empty());
}

TEST_CASE("acl: what a line of a file cannot hold is not written", "[acl]") {
  Fixture test;
  test.set("u", {"on", "~a", "(~b +get)", "+select|1", ">p"});
  const auto lines = access::config_user_lines(test.users);
  REQUIRE(lines.has_value());
  CHECK(access::user_lines(test.users) == *lines);
  for (const std::string_view rule : {"(~x) +get)", "+get|a b"}) {
    INFO(rule);
    test.set("odd", {rule});
    CHECK_FALSE(access::config_user_lines(test.users).has_value());
    CHECK(test.users.remove("odd"));
  }
  test.set("odd", {"~\"quoted"});
  CHECK_FALSE(access::config_user_lines(test.users).has_value());
}

TEST_CASE("acl: commands are checked while rules change", "[acl][exec]") {
  test::InProcess server(memory());
  Users& users = server.services().users;
  const Rules on = {"on", "nopass", "+@all", "~a", "resetchannels"};
  REQUIRE(users.set("u", on, false));
  std::atomic<bool> stop{false};
  std::thread changes([&] {
    for (int i = 0; !stop; ++i) {
      const Rules reset = {"reset", "on", "nopass", "+@all", i % 2 == 0 ? "~a" : "~b"};
      INGOT_CHECK(users.set("u", reset, false));
      INGOT_CHECK(users.set("default", Rules{i % 2 == 0 ? "-debug" : "+@all"}, false));
      INGOT_CHECK(users.set("t", on, false));
      INGOT_CHECK(users.remove("t"));
    }
  });
  test::InProcessClient limited(server);
  test::InProcessClient other(server);
  const std::string transaction =
      "+OK\r\n+OK\r\n+QUEUED\r\n";  // what comes behind depends on the rules of that moment
  for (int i = 0; i < 300; ++i) {
    const std::string replies = limited.pipeline({{"AUTH", "u", "x"},
                                                  {"MULTI"},
                                                  {"PING"},
                                                  {"GET", "a"},
                                                  {"SET", "b", "1"},
                                                  {"EXEC"},
                                                  {"MGET", "a", "b"},
                                                  {"ACL", "LOG"},
                                                  {"ACL", "LIST"}});
    CHECK(replies.starts_with(transaction));
    CHECK(replies.find("-NOPERM") != std::string::npos);
    CHECK(other.pipeline({{"SET", "x", "1"}, {"GET", "x"}}) == "+OK\r\n$1\r\n1\r\n");
  }
  stop = true;
  changes.join();
}

TEST_CASE("the ACL log keeps its newest entries within its bytes", "[acl]") {
  using access::AclLog;
  AclLog log;
  const auto denied = [](int i) {
    return access::LogEntry{
        .reason = "auth", .object = "AUTH", .user = std::to_string(i) + std::string(8000, 'u')};
  };
  for (int i = 0; i < 10'000; ++i) log.add(denied(i), 1'000'000);
  for (int i = 0; i < 100; ++i) log.add(denied(9999), 1'000'000);  // one entry
  const auto newest = log.newest(10'000);
  CHECK(newest.size() > AclLog::kBytesMax / 8192);
  CHECK(newest.size() < AclLog::kBytesMax / 4096);
  CHECK(newest.front().count == 101);
  log.reset();
  for (int i = 0; i < 10; ++i) log.add(denied(i), 3);
  CHECK(log.newest(10).size() == 3);
}
