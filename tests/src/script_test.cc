// The Lua host without a server: what scripts and libraries say of themselves, replies in both
// directions, runs that are given up, the budget of memory.
#include <catch2/catch.hpp>

#include <functional>

#include "src/contract/capture.h"
#include "src/script/scripts.h"

using namespace ingot;
using contract::CaptureSink;
using script::LuaHost;

namespace {

class FakeCaller : public contract::CommandCaller {
 public:
  bool call(const contract::ScriptCall& script, std::string* reply) override {
    calls.emplace_back(script.args.begin(), script.args.end());
    if (calls.size() > calls_max) return false;
    *reply = answer;
    return true;
  }
  Place place() const override { return Place::kWriter; }
  std::string begin_refusal(bool, bool) const override { return {}; }
  uint64_t seed() override { return 1; }
  std::optional<bool> allows(contract::Args) const override { return std::nullopt; }

  std::vector<std::vector<std::string>> calls;
  size_t calls_max = SIZE_MAX;
  std::string answer = "+OK\r\n";
};

class Host {
 public:
  // The reply as text; "given up" when there is none.
  std::string run(std::string_view body, int resp = 3) {
    std::string error;
    const auto script = script::read_script(body, &error);
    REQUIRE(script != nullptr);
    contract::ScriptRun run;
    CaptureSink reply(resp);
    const bool ended = host_->run(*script, {.caller = caller,
                                            .run = run,
                                            .reply = reply,
                                            .keys = keys,
                                            .argv = {},
                                            .reply_bytes_max = reply_bytes_max});
    if (!ended) return "given up";
    REQUIRE(reply.values().size() == 1);
    return printable(reply.values()[0]);
  }
  LuaHost& host() { return *host_; }

  FakeCaller caller;
  std::vector<std::string_view> keys;
  uint64_t reply_bytes_max = 1 << 20;
  script::MemoryBudget budget;

 private:
  std::unique_ptr<LuaHost> host_ = LuaHost::make(LuaHost::Kind::kScripts, budget);
};

}  // namespace

TEST_CASE("the first line of a script", "[script]") {
  std::string error;
  CHECK(script::read_script("return 1", &error)->sha == "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
  CHECK_FALSE(script::read_script("return 1", &error)->declares);
  const auto script = script::read_script("#!lua flags=no-writes,allow-oom\nreturn 1", &error);
  CHECK(script->declares);
  CHECK(script->flags == (script::flag::kNoWrites | script::flag::kAllowOom));
  for (const char* bad :
       {"#!lua", "#!", "#!foo\n", "#!lua x\n", "#!lua flags=x\n", "#!lua flags=no-writes,\n"}) {
    error.clear();
    CHECK(script::read_script(bad, &error) == nullptr);
    CHECK(error.starts_with("ERR "));
  }
}

TEST_CASE("every function has one home", "[script]") {
  const auto library = [](const char* name, std::vector<std::string> functions) {
    auto made = std::make_shared<script::Library>();
    made->name = name;
    for (auto& function : functions) made->functions.push_back({.name = std::move(function)});
    return made;
  };
  std::string error;
  const auto none = std::make_shared<const script::Libraries>();
  const auto one = none->with(library("a", {"f", "g"}), &error);
  CHECK(one->find("F").library->name == "a");
  CHECK(one->find("h").function == nullptr);
  CHECK(one->with(library("b", {"x", "G"}), &error) == nullptr);
  CHECK(error == "ERR Function G already exists");
  const auto replaced = one->with(library("a", {"g", "h"}), &error);
  CHECK(replaced->find("f").function == nullptr);
  CHECK(replaced->function_count() == 2);
  CHECK(one->function_count() == 2);
  CHECK(replaced->without("a")->all().empty());
}

TEST_CASE("replies of commands become values of Lua", "[script]") {
  Host host;
  const auto [answer, expected] = GENERATE(table<std::string, std::string>({
      {"+OK\r\n", "OK"},
      {"-ERR no\r\n", "(error) ERR no"},
      {":-7\r\n", "-7"},
      {"$3\r\na\r\n\r\n", "\"a\\x0d\\x0a\""},
      {"$-1\r\n", "false"},
      {"*-1\r\n", "false"},
      {"_\r\n", "nil"},
      {"#t\r\n", "true"},
      {",1.5\r\n", "real 1.5"},
      {"(123\r\n", "number 123"},
      {"=5\r\ntxt:a\r\n", "verbatim \"txt:a\""},
      {"*3\r\n:1\r\n*0\r\n$1\r\nx\r\n", "[1, [], \"x\"]"},
      {"%1\r\n+k\r\n:1\r\n", "{k => 1}"},
      {"~1\r\n$1\r\nm\r\n", "set (\"m\")"},
      {"|1\r\n+a\r\n+b\r\n:5\r\n", "5"},
  }));
  host.caller.answer = answer;
  CHECK(host.run("redis.setresp(3) return redis.pcall('x')") == expected);
}

TEST_CASE("numbers among the arguments keep all their digits", "[script]") {
  Host host;
  host.run("redis.call('x', 1, 1.5, 0.1, 1e15, -0.5, 'text', 9007199254740991)");
  CHECK(host.caller.calls[0] == std::vector<std::string>{"x", "1", "1.5", "0.10000000000000001",
                                                         "1000000000000000", "-0.5", "text",
                                                         "9007199254740991"});
}

TEST_CASE("a run that is given up cannot be caught", "[script]") {
  Host host;
  for (const char* body : {
           "redis.call('a') return 'caught'",
           "pcall(redis.call, 'a') return 'caught'",
           "pcall(pcall, redis.call, 'a') return 'caught'",
           "xpcall(function() redis.call('a') end, function() return 1 end) return 'caught'",
           "coroutine.resume(coroutine.create(function() redis.call('a') end)) return 'caught'",
           "pcall(coroutine.wrap(function() redis.pcall('a') end)) return 'caught'",
           "load(function() redis.call('a') end) return 'caught'",
           "pcall(string.gsub, 'x', '.', function() redis.call('a') end) return 'caught'",
       }) {
    host.caller.calls.clear();
    host.caller.calls_max = 0;
    CHECK(host.run(body) == "given up");
    CHECK(host.caller.calls.size() == 1);
  }
  host.caller.calls_max = SIZE_MAX;
  CHECK(host.run("return pcall(redis.call, 'a')") == "1");
}

TEST_CASE("nothing of a run is left for the next", "[script]") {
  Host host;
  host.keys = {"k"};
  CHECK(host.run("KEYS[2] = 'x' redis.setresp(3) math.randomseed(7) return #KEYS") == "2");
  const std::string drawn = host.run("return tostring(math.random())");
  host.run("collectgarbage('stop') collectgarbage('setpause', 1e6) return math.random()");
  CHECK(host.run("return tostring(math.random())") == drawn);
  CHECK(host.run("return #KEYS") == "1");
  host.caller.answer = "$-1\r\n";
  CHECK(host.run("return {redis.call('x')}", 2) == "[nil]");
}

TEST_CASE("the budget bounds a script, and gets its bytes back", "[script]") {
  Host host;
  host.run("return 1");
  const uint64_t before = host.budget.used();
  host.budget.set_limit(16 << 20);
  for (int i = 0; i < 3; ++i) {
    const std::string reply = host.run("local s = 'x' while true do s = s .. s end");
    CHECK(reply.find("not enough memory") != std::string::npos);
    CHECK(host.budget.used() < before + (6 << 20));
  }
  CHECK(host.run("return pcall(string.rep, 'x', 1e9)") == "nil");
  CHECK(host.run("return 1") == "1");
  CHECK(host.host().bytes() < (2 << 20));
}

TEST_CASE("a reply has a bound", "[script]") {
  Host host;
  host.reply_bytes_max = 10'000;
  CHECK(host.run("local t = {} for i = 1, 30 do t = {t, t} end return t").find("too large") !=
        std::string::npos);
  CHECK(host.run("return ('x'):rep(20000)").find("too large") != std::string::npos);
  CHECK(host.run("return {ok = 'fine'}") == "fine");
}

TEST_CASE("scripts that only EVAL has brought make room for others", "[script]") {
  script::Scripts scripts;
  scripts.set_bounds({.cache_bytes = 10'000});
  const auto make = [](int number, bool is_kept) {
    std::string error;
    auto script = std::make_shared<script::Script>(
        *script::read_script("return " + std::to_string(number) + std::string(500, ' '), &error));
    script->is_kept = is_kept;
    return script;
  };
  const auto kept = make(0, true);
  REQUIRE(scripts.add(kept));
  const auto first = make(1, false);
  for (int i = 1; i <= 100; ++i) CHECK(scripts.add(make(i, false)));
  CHECK(scripts.find(kept->sha) != nullptr);
  CHECK(scripts.find(first->sha) == nullptr);
  CHECK(scripts.find(make(100, false)->sha) != nullptr);
  CHECK(scripts.figures().script_bytes <= 10'000);
  bool all = true;
  for (int i = 200; i < 300; ++i) all = scripts.add(make(i, true)) && all;
  CHECK_FALSE(all);
  CHECK(scripts.figures().script_bytes <= 10'000);
  scripts.flush();
  CHECK(scripts.find(kept->sha) == nullptr);
}
