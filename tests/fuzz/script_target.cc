// Scripts and what they are given: bodies of EVAL and of libraries, texts for cmsgpack, struct and
// cjson, payloads of FUNCTION RESTORE. Whatever they are, there is one reply, memory stays within
// the budget and comes back, and the next script finds everything as it was.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/contract/capture.h"
#include "src/metrics/log.h"
#include "src/script/scripts.h"
#include "src/types/rdb/rdb_object.h"
#include "storage/check.h"
#include "storage/memory/memory_engine.h"
#include "tests/fuzz/targets.h"
#include "tests/src/in_process.h"

namespace ingot::fuzz {
namespace {

using script::LuaHost;

constexpr uint64_t kBudgetBytes = 16 << 20;
constexpr uint64_t kReplyBytesMax = 1 << 20;

// What is unpacked can be packed again, and then it stays the same.
constexpr std::string_view kSame = R"(
local same
local function members(t, u)
  for k, v in next, t do if type(k) ~= 'table' and not same(v, u[k]) then return false end end
  return true
end
function same(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then return a == b or (a ~= a and b ~= b) end
  return members(a, b) and members(b, a)
end
)";
constexpr std::string_view kMessagePack = R"(
local function again(value)
  local ok, all = pcall(function() return {cmsgpack.unpack(cmsgpack.pack(value))} end)
  return ok, ok and all[1]
end
local ok, given = pcall(function() return {cmsgpack.unpack(ARGV[1])} end)
if not ok then return 'refused' end
local ok, once = again(given)
if not ok then return given end
local ok, twice = again(once)
assert(ok and same(once, twice), 'another value')
cmsgpack.unpack_limit(ARGV[1], #ARGV[1] % 5, #ARGV[1] % 3)
return given)";
constexpr std::string_view kJson = R"(
local function again(value)
  local ok, decoded = pcall(function() return cjson.decode(cjson.encode(value)) end)
  return ok, decoded
end
local ok, given = pcall(cjson.decode, ARGV[1])
if not ok then return 'refused' end
local ok, once = again(given)
if not ok then return given end
local ok, twice = again(once)
assert(ok and same(once, twice), 'another value')
return given)";
constexpr std::string_view kStruct = R"(
local values = {pcall(struct.unpack, ARGV[1], ARGV[2])}
pcall(struct.unpack, ARGV[1], ARGV[2], #ARGV[1])
pcall(struct.size, ARGV[1])
if not values[1] then return 'refused' end
pcall(struct.pack, ARGV[1], unpack(values, 2))
return values)";
// Another one on the same state: is all as it was?
constexpr std::string_view kCanary = R"(
return ('x'):upper() .. cjson.encode({1}) .. tostring(rawget(_G, 'x')) .. type(redis.call) .. #ARGV .. #cmsgpack.pack(1) ..
  struct.size('i4') .. string.rep('y', 3) .. tostring(pcall(function() return y end)))";
constexpr std::string_view kCanarySays = "\"X[1]nilfunction014yyyfalse\"";

// Answers whatever is called with one kind of reply after the other.
class FakeCaller : public contract::CommandCaller {
 public:
  bool call(const contract::ScriptCall& script, std::string* reply) override {
    constexpr std::string_view kReplies[] = {"+OK\r\n", "-ERR no\r\n",
                                             ":7\r\n",  "$2\r\nxy\r\n",
                                             "$-1\r\n", "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n",
                                             "*-1\r\n"};
    constexpr std::string_view kNewReplies[] = {"%1\r\n+k\r\n,1.5\r\n", "~1\r\n#t\r\n", "_\r\n",
                                                "(123\r\n", "=5\r\ntxt:a\r\n"};
    if (calls_++ == kCallsMax) return false;
    *reply = script.resp == 3 && calls_ % 2 == 0 ? kNewReplies[calls_ % std::size(kNewReplies)]
                                                 : kReplies[calls_ % std::size(kReplies)];
    return true;
  }
  Place place() const override { return Place::kWriter; }
  std::string begin_refusal(bool, bool) const override { return {}; }
  uint64_t seed() override { return 1; }
  std::optional<bool> allows(contract::Args) const override { return calls_ % 2 == 0; }

 private:
  static constexpr int kCallsMax = 1000;
  int calls_ = 0;
};

// Kills the run that is under way after some time.
class Watchdog {
 public:
  explicit Watchdog(contract::ScriptRun& run)
      : thread_([this, &run] {
          for (int ticks = 0; !done_; ++ticks) {
            if (ticks == kTicks) run.kill();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}
  ~Watchdog() {
    done_ = true;
    thread_.join();
  }

 private:
  static constexpr int kTicks = 50;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

class Ground {
 public:
  explicit Ground(LuaHost::Kind kind) {
    budget_.set_limit(kBudgetBytes);
    host_ = LuaHost::make(kind, budget_);
    INGOT_CHECK(host_);
  }

  ~Ground() {
    // A worn one is not used again.
    host_ = nullptr;
    INGOT_CHECK(budget_.used() == 0);
  }

  // The reply; "" when the run was given up.
  std::string run(std::string_view body, const std::vector<std::string_view>& argv, int resp) {
    std::string error;
    const auto script = script::read_script(body, &error);
    if (script == nullptr) return error;
    if (error = host_->compile(*script); !error.empty()) return error;
    return reply([&](const script::Invocation& given) { return host_->run(*script, given); }, argv,
                 resp);
  }

  void run_library(std::string_view code) {
    std::string error;
    const auto library = script::read_library(code, &error);
    if (library == nullptr) return;
    if (error = host_->load(library.get()); !error.empty()) return;
    INGOT_CHECK(!library->functions.empty());
    const auto libraries = script::Libraries().with(library, &error);
    INGOT_CHECK(libraries);
    for (const script::Function& function : library->functions) {
      const auto found = libraries->find(function.name);
      INGOT_CHECK(found.function);
      (void)reply([&](const script::Invocation& given) { return host_->run(found, given); },
                  {"argument"}, 3);
    }
    host_->keep_only({});
  }

  void check_as_before() {
    if (host_->is_worn()) return;
    const std::string said = run(kCanary, {}, 3);
    if (said != kCanarySays) std::fprintf(stderr, "%s\n", said.c_str());
    INGOT_CHECK(said == kCanarySays);
  }

 private:
  template <typename Run>
  std::string reply(const Run& go, std::vector<std::string_view> argv, int resp) {
    FakeCaller caller;
    contract::ScriptRun run;
    contract::CaptureSink sink(resp);
    bool ended = false;
    {
      const Watchdog watchdog(run);
      ended = go({.caller = caller,
                  .run = run,
                  .reply = sink,
                  .keys = {},
                  .argv = argv,
                  .reply_bytes_max = kReplyBytesMax});
    }
    INGOT_CHECK(sink.values().size() == (ended ? 1 : 0));
    INGOT_CHECK(sink.complete());
    return ended ? contract::printable(sink.values().front()) : "";
  }

  script::MemoryBudget budget_;
  std::unique_ptr<LuaHost> host_;
};

void restore_libraries(std::string_view input) {
  static test::InProcess server(std::make_unique<storage::MemoryEngine>(storage::EngineOptions{}));
  server.services().scripts.set_bounds(
      {.memory_bytes = kBudgetBytes, .cache_bytes = kBudgetBytes, .reply_bytes = kBudgetBytes});
  test::InProcessClient client(server);
  INGOT_CHECK(client.run({"FUNCTION", "FLUSH"}) == "+OK\r\n");
  std::string payload(input);
  types::rdb::seal_payload(&payload);
  if (client.run({"FUNCTION", "RESTORE", payload}) != "+OK\r\n") return;
  const std::string listed = client.run({"FUNCTION", "LIST", "WITHCODE"});
  std::string dump = client.run({"FUNCTION", "DUMP"});
  dump = dump.substr(dump.find('\n') + 1);
  dump.resize(dump.size() - 2);
  INGOT_CHECK(client.run({"FUNCTION", "RESTORE", dump, "FLUSH"}) == "+OK\r\n");
  INGOT_CHECK(client.run({"FUNCTION", "LIST", "WITHCODE"}) == listed);
}

void check_text(std::string_view body, const std::vector<std::string_view>& argv) {
  Ground ground(LuaHost::Kind::kScripts);
  const std::string script = std::string(kSame) + std::string(body);
  for (const int resp : {2, 3}) {
    const std::string said =
        ground.run(resp == 3 ? "redis.setresp(3) " + script : script, argv, resp);
    if (said.find("another value") != said.npos) std::fprintf(stderr, "%s\n", said.c_str());
    INGOT_CHECK(said.find("another value") == said.npos);
  }
  ground.check_as_before();
}

}  // namespace

void script(std::string_view input) {
  if (input.empty()) return;
  [[maybe_unused]] static const std::string kSilent =
      metrics::log::configure({.loglevel = settings::LogLevel::kWarning, .logfile = "/dev/null"});
  const char what = input[0];
  input.remove_prefix(1);
  const size_t cut = std::min(input.find('\n'), input.size());
  const std::string_view first = input.substr(0, cut);
  const std::string_view rest = input.substr(std::min(cut + 1, input.size()));
  switch (what) {
    case 'e': {
      Ground ground(LuaHost::Kind::kScripts);
      (void)ground.run(input, {"argument"}, 3);
      return ground.check_as_before();
    }
    case 'f':
      return Ground(LuaHost::Kind::kFunctions).run_library(input);
    case 'm':
      return check_text(kMessagePack, {input});
    case 'j':
      return check_text(kJson, {input});
    case 's':
      return check_text(kStruct, {first, rest});
    case 'r':
      return restore_libraries(input);
    default:
      return;
  }
}

}  // namespace ingot::fuzz
