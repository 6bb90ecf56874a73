// What the process owes its system, and where its memory limit comes from: on real files, sockets
// and limits.
#include "src/server/process.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <thread>

#include "src/metrics/log.h"
#include "src/server/disk_guard.h"
#include "src/server/memory_limit.h"
#include "src/server/process_title.h"
#include "src/server/ticker.h"
#include "tests/storage/temporary_directory.h"

namespace ingot::server {
namespace {

namespace fs = std::filesystem;
using storage::TemporaryDirectory;

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

constexpr uint64_t kMb = 1 << 20;

TEST_CASE("the pid file") {
  TemporaryDirectory directory;
  const std::string path = directory.file("pid");
  std::string error;
  REQUIRE(write_pidfile(path, &error));
  CHECK(storage::content_of(path) == std::to_string(getpid()) + "\n");
  remove_pidfile(path);
  CHECK_FALSE(fs::exists(path));
  CHECK_FALSE(write_pidfile(directory.file("nowhere/pid"), &error));
  CHECK_THAT(error, Catch::Contains("nowhere/pid") && Catch::Contains("No such file"));
}

TEST_CASE("systemd hears of the state") {
  TemporaryDirectory directory;
  const std::string path = directory.file("notify");
  int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strcpy(address.sun_path, path.c_str());
  REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  notify_systemd("READY=1");
  unsetenv("NOTIFY_SOCKET");
  notify_systemd("STOPPING=1");  // nobody asked to be told
  char bytes[64];
  CHECK(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) == 7);
  CHECK(std::string(bytes, 7) == "READY=1");
  CHECK(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) == -1);
  close(fd);
}

// In a child, because a hard limit cannot be raised again. Exit codes say what came of it.
int in_child(int (*body)()) {
  pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("the limit of open files is raised as far as it goes") {
  CHECK(in_child([] {
          const rlimit low{.rlim_cur = 100, .rlim_max = 200};
          if (setrlimit(RLIMIT_NOFILE, &low) != 0) return 2;
          uint64_t answered = raise_file_limit(150);
          rlimit now{};
          getrlimit(RLIMIT_NOFILE, &now);
          return answered == 200 && now.rlim_cur == 200 ? 0 : 1;
        }) == 0);
  CHECK(in_child([] {
          const rlimit low{.rlim_cur = 100, .rlim_max = 200};
          if (setrlimit(RLIMIT_NOFILE, &low) != 0) return 2;
          uint64_t answered = raise_file_limit(300);
          rlimit now{};
          getrlimit(RLIMIT_NOFILE, &now);
          bool privileged = geteuid() == 0;
          // A container's root may lack the capability: then it is the hard limit.
          return answered == now.rlim_cur && (answered == 200 || (privileged && answered == 300))
                     ? 0
                     : 1;
        }) == 0);
}

TEST_CASE("half of the machine or of its tightest cgroup") {
  settings::Settings settings;
  CHECK(memory_limit(settings, {.total_bytes = 800 * kMb}) == 400 * kMb);
  CHECK(memory_limit(settings, {.total_bytes = 800 * kMb, .cgroup_bytes = 100 * kMb}) == 50 * kMb);
  CHECK(memory_limit(settings, {.total_bytes = 80 * kMb, .cgroup_bytes = 100 * kMb}) == 40 * kMb);
  settings.maxmemory = 5 * kMb;
  CHECK(memory_limit(settings, {.total_bytes = 800 * kMb, .cgroup_bytes = 100 * kMb}) == 5 * kMb);
  settings.maxmemory = UINT64_MAX;
  CHECK(memory_limit(settings, {.total_bytes = 800 * kMb, .cgroup_bytes = 100 * kMb}) == 100 * kMb);
}

TEST_CASE("cgroup limits of both versions count at every level") {
  TemporaryDirectory directory;
  const fs::path root = directory.file("root");
  const fs::path v2 = root / "sys/fs/cgroup";
  const fs::path v1 = root / "sys/fs/cgroup/memory";
  CHECK(read_machine(root).cgroup_bytes == 0);
  CHECK(read_machine(root).total_bytes > kMb);

  write_file(root / "proc/self/cgroup", "0::/outer/inner\n");
  CHECK(read_machine(root).cgroup_bytes == 0);
  write_file(v2 / "outer/inner/memory.max", "max\n");
  CHECK(read_machine(root).cgroup_bytes == 0);
  write_file(v2 / "outer/memory.max", "300000000\n");
  CHECK(read_machine(root).cgroup_bytes == 300'000'000);
  write_file(v2 / "memory.max", "200000000\n");  // a container sees its own limit at the root
  CHECK(read_machine(root).cgroup_bytes == 200'000'000);
  write_file(v2 / "outer/inner/memory.max", "100000000\n");
  CHECK(read_machine(root).cgroup_bytes == 100'000'000);

  write_file(root / "proc/self/cgroup", "4:cpu,cpuacct:/a\n3:memory:/a/b\n0::/elsewhere\n");
  write_file(v1 / "memory.limit_in_bytes", "9223372036854771712\n");
  write_file(v1 / "a/memory.limit_in_bytes", "70000000\n");
  write_file(v1 / "a/b/memory.limit_in_bytes", "80000000\n");
  CHECK(read_machine(root).cgroup_bytes == 70'000'000);
}

TEST_CASE("hot records take what nobody else needs of the limit") {
  settings::Settings settings;
  const uint64_t limit = 1024 * kMb;
  const uint64_t share = share_out(settings, limit).record_bytes;
  const uint64_t engine = share_out(settings, limit).engine_bytes;
  const auto now = [&](const MemoryInUse& in_use) {
    return record_bytes_now(settings, limit, in_use);
  };
  // The engine's share is left to it before it takes it, and as it does.
  CHECK(now({.allocated_bytes = 50 * kMb}) == 782 * kMb - engine);
  CHECK(now({.allocated_bytes = 50 * kMb + engine, .engine_bytes = engine}) == 782 * kMb - engine);
  CHECK(now({.allocated_bytes = 300 * kMb, .engine_bytes = 50 * kMb, .record_bytes = 200 * kMb}) ==
        782 * kMb - engine);
  // What clients come to need is taken from them, down to their share.
  CHECK(now({.allocated_bytes = 90 * kMb}) == 742 * kMb - engine);
  CHECK(now({.allocated_bytes = 2000 * kMb}) == share);
  // Where the allocator cannot give back what is free they grow no more.
  MemoryInUse full_of_holes = {.allocated_bytes = 250 * kMb,
                               .record_bytes = 200 * kMb,
                               .record_bytes_max = 210 * kMb,
                               .resident_bytes = 970 * kMb};
  CHECK(now(full_of_holes) == 210 * kMb);
  full_of_holes.resident_bytes = 950 * kMb;
  CHECK(now(full_of_holes) > 210 * kMb);
  // An engine that is beyond its share has that from them.
  CHECK(now({.allocated_bytes = 60 * kMb + engine, .engine_bytes = engine + 10 * kMb}) ==
        772 * kMb - engine);
  CHECK(record_bytes_now(settings, 64 * kMb, {}) == share_out(settings, 64 * kMb).record_bytes);
  settings.cache_size = 100 * kMb;
  CHECK(now({}) == 25 * kMb);
}

TEST_CASE("the shares stay within the limit") {
  settings::Settings settings;
  for (uint64_t limit : {64 * kMb, 128 * kMb, 129 * kMb, 1024 * kMb, 100'000 * kMb}) {
    MemoryShares shares = share_out(settings, limit);
    CHECK(shares.engine_bytes + shares.output_bytes < limit);
    CHECK(shares.engine_bytes >= limit / 4);
  }
  CHECK(share_out(settings, kMb).engine_bytes >= 8 * kMb);  // less does not work
  settings.cache_size = 77 * kMb;
  MemoryShares shares = share_out(settings, 1024 * kMb);
  CHECK(shares.engine_bytes + shares.record_bytes == 77 * kMb);
}

TEST_CASE("when growing is refused") {
  settings::Settings settings;
  settings.max_disk = 100;
  settings.min_free_disk = 50;
  CHECK_FALSE(growing_refusal(settings, {.used_bytes = 100, .free_bytes = 50}, true));
  CHECK(growing_refusal(settings, {.used_bytes = 101, .free_bytes = 50}, false) ==
        "OOM command not allowed when used disk > 'max-disk'.");
  CHECK(growing_refusal(settings, {.used_bytes = 1, .free_bytes = 49}, false) ==
        "OOM command not allowed when free disk < 'min-free-disk'.");
  settings.max_disk = settings.min_free_disk = 0;
  CHECK_FALSE(growing_refusal(settings, {.used_bytes = 1ull << 60, .free_bytes = 0}, false));
  // Headroom is a matter of moments: what is refused stays so until there is enough for a while.
  const auto refused = [&](uint64_t free_bytes, uint64_t total_bytes, bool was_short) {
    const DiskFigures figures{
        .free_bytes = free_bytes, .total_bytes = total_bytes, .headroom_bytes = 10};
    return growing_refusal(settings, figures, was_short).has_value();
  };
  CHECK(growing_refusal(settings, {.free_bytes = 1000, .lacks_room = true}, false));
  CHECK(refused(9, 1000, false));
  CHECK_FALSE(refused(10, 1000, false));
  CHECK(refused(19, 1000, true));
  CHECK_FALSE(refused(20, 1000, true));
  CHECK(refused(13, 32, true));
  CHECK_FALSE(refused(14, 32, true));
  CHECK(growth_allowed({.free_bytes = 50, .headroom_bytes = 10}) == 10);
  CHECK(growth_allowed({.free_bytes = 9, .headroom_bytes = 10}) == 0);
}

TEST_CASE("the process title is the template filled in") {
  settings::Settings settings{.bind = {"10.0.0.1", "::1"}, .port = 0, .tls_port = 7};
  CHECK(process_title(settings, "") == "10.0.0.1:7");
  settings.bind.clear();
  settings.port = 6;
  settings.unixsocket = "/s";
  settings.proc_title_template = " {{{port} {tls-port}}x {listen-addr}{server-mode} {config-file} ";
  CHECK(process_title(settings, "") == "{6 7}x *:6 -");
  CHECK(process_title(settings, "/a.conf") == "{6 7}x *:6 /a.conf");
  settings.port = settings.tls_port = 0;
  settings.proc_title_template = "{listen-addr}-{unixsocket}";
  CHECK(process_title(settings, "") == "/s-/s");
}

TEST_CASE("the log is in Redis' format, by level") {
  TemporaryDirectory directory;
  const std::string path = directory.file("log");
  REQUIRE(metrics::log::configure({.logfile = path}).empty());
  metrics::log::verbose("too quiet");
  metrics::log::notice("{} of {}", 3, "it");
  metrics::log::warning("loud");
  metrics::log::set_level(settings::LogLevel::kDebug);
  metrics::log::verbose("wordy");
  metrics::log::write(settings::LogLevel::kDebug, "all {} of it");
  metrics::log::set_level(settings::LogLevel::kWarning);
  metrics::log::notice("not any more");
  CHECK_FALSE(metrics::log::configure(
                  {.loglevel = settings::LogLevel::kDebug, .logfile = directory.file("log/inside")})
                  .empty());
  metrics::log::warning("still here");
  REQUIRE(metrics::log::configure({}).empty());

  const std::string expected[] = {"* 3 of it", "# loud", "- wordy", ". all {} of it",
                                  "# still here"};
  std::istringstream lines(storage::content_of(path));
  std::string line;
  for (const std::string& tail : expected) {
    REQUIRE(std::getline(lines, line));
    const std::regex head(std::to_string(getpid()) +
                          R"(:M \d\d [A-Z][a-z][a-z] \d{4} \d\d:\d\d:\d\d\.\d{3} )");
    std::smatch match;
    REQUIRE(std::regex_search(line, match, head));
    CHECK(match.position() == 0);
    CHECK(match.suffix() == tail);
  }
  CHECK_FALSE(std::getline(lines, line));
}

TEST_CASE("a ticker ticks until it is destroyed") {
  std::atomic<int> ticks{0};
  {
    Ticker ticker(std::chrono::milliseconds(1), [&] { ++ticks; });
    while (ticks < 3) std::this_thread::yield();
  }
  int at_the_end = ticks;
  CHECK(at_the_end >= 3);
  // An idle one must not hold up a stop for its interval.
  auto start = std::chrono::steady_clock::now();
  {
    Ticker ticker(std::chrono::hours(1), [] {});
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  CHECK(ticks == at_the_end);
}

}  // namespace
}  // namespace ingot::server
