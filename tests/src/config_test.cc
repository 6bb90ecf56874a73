// The configuration: loading of files and command lines, CONFIG GET, SET and REWRITE.
#include "src/settings/config.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "src/settings/config_file.h"
#include "src/settings/config_loader.h"
#include "src/settings/setting_pattern.h"
#include "src/settings/setting_values.h"
#include "tests/storage/temporary_directory.h"

namespace ingot::settings {
namespace {

using storage::TemporaryDirectory;
using Words = std::vector<std::string>;
using Pairs = Config::Pairs;

void write_file(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

// One server's configuration, with a directory for its files.
struct Fixture {
  TemporaryDirectory directory;
  Config config{"1.2.3"};

  std::string load(const Words& arguments) { return config.load(arguments).value_or("OK"); }
  std::string load_file(std::string_view content, Words more = {}) {
    write_file(directory.file("ingot.conf"), content);
    more.insert(more.begin(), directory.file("ingot.conf"));
    return load(more);
  }
  std::string set(std::vector<std::pair<std::string_view, std::string_view>> pairs,
                  bool is_local = true) {
    return config.set(pairs, is_local).value_or("OK");
  }
  Pairs get(std::vector<std::string_view> patterns) const { return config.get(patterns); }
  std::string value(std::string_view name) const {
    const Pairs pairs = get({name});
    return pairs.size() == 1 ? pairs[0].second : "(not one answer)";
  }
  std::string rewritten() {
    REQUIRE(config.rewrite().value_or("OK") == "OK");
    return storage::content_of(directory.file("ingot.conf"));
  }
};

std::string fatal(std::string_view rest) {
  return "\n*** FATAL CONFIG FILE ERROR (Ingot 1.2.3) ***\n" + std::string(rest) + "\n";
}

std::string fatal_at(int line, std::string_view text, std::string_view why) {
  return fatal("Reading the configuration file, at line " + std::to_string(line) + "\n>>> '" +
               std::string(text) + "'\n" + std::string(why));
}

std::string set_failed(std::string_view name, std::string_view why) {
  return "ERR CONFIG SET failed (possibly related to argument '" + std::string(name) + "') - " +
         std::string(why);
}

}  // namespace

TEST_CASE("a line splits into words as redis.conf's lines do", "[config]") {
  CHECK(split_words("  a  b\tc ") == Words{"a", "b", "c"});
  CHECK(split_words("") == Words{});
  CHECK(split_words(" \t\r\v\f") == Words{});
  CHECK(trimmed("\v \f").empty());  // else a line without words would have a first one
  CHECK_FALSE(Loader("0").load("\v\nport 1\n \f\r\n"));
  CHECK(split_words(R"(a "" '')") == Words{"a", "", ""});
  CHECK(split_words(R"("a b" 'c\'d' "\n\"\\\x41\xzz")") == Words{"a b", "c'd", "\n\"\\Axzz"});
  CHECK(split_words(R"(x"y z")") == Words{"xy z"});
  CHECK_FALSE(split_words(R"("a)"));
  CHECK_FALSE(split_words(R"('a)"));
  CHECK_FALSE(split_words(R"("a"b)"));
  const std::string bytes("\0\xff\n\"\\ a", 7);
  CHECK(split_words(quote_word(bytes)) == Words{bytes});
}

TEST_CASE("several values may stand within one pair of quotes", "[config]") {
  Loader loader("0");
  CHECK_FALSE(
      loader.load("bind \"127.0.0.1 -::1\"\nclient-output-buffer-limit \"normal 1 2 3\"\n"
                  "save \"900 1 300 10\"\nreplicaof \"no one\"\n"));
  CHECK(loader.settings().bind == Words{"127.0.0.1", "-::1"});
  CHECK(loader.load("requirepass a b"));
  CHECK_FALSE(loader.load("requirepass \"a b\""));
}

TEST_CASE("memory has units", "[config]") {
  CHECK(parse_memory("0") == 0);
  CHECK(parse_memory("12b") == 12);
  CHECK(parse_memory("1k") == 1000);
  CHECK(parse_memory("1Kb") == 1024);
  CHECK(parse_memory("2m") == 2000000);
  CHECK(parse_memory("2MB") == 2097152);
  CHECK(parse_memory("3g") == 3000000000);
  CHECK(parse_memory("3gB") == 3221225472);
  for (const char* wrong : {"-1", "1.5gb", "1 gb", "gbx", "1tb"}) CHECK_FALSE(parse_memory(wrong));
  CHECK(format_memory(3221225472) == "3gb");
  CHECK(format_memory(1536) == "1536");
  CHECK(format_memory(2048) == "2kb");
  CHECK(format_memory(0) == "0");
}

TEST_CASE("patterns of CONFIG GET", "[config]") {
  CHECK(matches_pattern("*", ""));
  CHECK(matches_pattern("*slave*", "repl-ping-slave-period"));
  CHECK(matches_pattern("*A*b*", "xaxxbxb"));
  CHECK_FALSE(matches_pattern("*a*b", "xaxbx"));
  CHECK(matches_pattern("h[x-z]", "hy"));
  CHECK(matches_pattern("h[z-x]", "hy"));
  CHECK_FALSE(matches_pattern("h[^x-z]", "hy"));
  CHECK(matches_pattern("h[\\]a]", "h]"));
  CHECK(matches_pattern("h?", "hz"));
  CHECK_FALSE(matches_pattern("h?", "h"));
  CHECK(matches_pattern("a\\*", "a*"));
  CHECK_FALSE(matches_pattern("a\\*", "ab"));
  CHECK_FALSE(matches_pattern("", "a"));
}

TEST_CASE("defaults are those of Redis", "[config]") {
  Fixture server;
  REQUIRE(server.load({}) == "OK");
  CHECK(server.value("bind") == "* -::*");
  CHECK(server.value("port") == "6379");
  CHECK(server.value("save") == "3600 1 300 100 60 10000");
  CHECK(server.value("client-output-buffer-limit") ==
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60");
  CHECK(server.value("unixsocketperm") == "0");
  CHECK(server.value("latency-tracking-info-percentiles") == "50 99 99.9");
  CHECK(server.value("appendfsync") == "everysec");
  CHECK(server.value("dir") == std::filesystem::current_path().string());
  CHECK(server.config.settings()->reader_threads == 10);
  CHECK(server.config.settings()->io_threads >= 1);
  CHECK(server.config.accepted_without_meaning().empty());
}

TEST_CASE("a file sets typed members", "[config]") {
  Fixture server;
  REQUIRE(
      server.load_file("# comment\n\n  PORT 7000 \r\nmaxmemory 2gb\nunixsocketperm 770\n"
                       "requirepass \"a \\\"b\\\"\"\nappendfsync ALWAYS\nbind 127.0.0.1 ::1\n"
                       "hash-max-ziplist-entries 7\nclient-output-buffer-limit replica 1mb 2k 3\n"
                       "engine leveldb\nrename-command FLUSHALL \"\"\nhz 0\nport 7001\n"
                       "save 5 6\nsave 7 8\nlua-replicate-commands yes\nappendonly yes") == "OK");
  const auto settings = server.config.settings();
  CHECK(settings->port == 7001);
  CHECK(settings->maxmemory == 2ull << 30);
  CHECK(settings->unixsocketperm == 0770);
  CHECK(server.value("unixsocketperm") == "770");
  CHECK(settings->requirepass == "a \"b\"");
  CHECK(settings->appendfsync == AppendFsync::kAlways);
  CHECK(settings->bind == Words{"127.0.0.1", "::1"});
  CHECK(settings->hash_max_listpack_entries == 7);
  CHECK(settings->output_limits[kReplicaClients] == OutputLimit{1 << 20, 2000, 3});
  CHECK(settings->output_limits[kPubsubClients] == Settings().output_limits[kPubsubClients]);
  CHECK(settings->engine == "leveldb");
  CHECK(settings->renamed_commands == Pairs{{"FLUSHALL", ""}});
  CHECK(server.value("hz") == "1");
  CHECK(server.value("save") == "5 6 7 8");
  CHECK(server.config.accepted_without_meaning() ==
        Words{"hz", "save", "lua-replicate-commands", "appendonly"});
}

TEST_CASE("what is wrong with a file is told as Redis tells it", "[config]") {
  Fixture server;
  const auto [text, line, shown, why] = GENERATE(table<std::string, int, std::string, std::string>(
      {{"\n foo bar ", 2, "foo bar", "Bad directive or wrong number of arguments"},
       {"include", 1, "include", "Bad directive or wrong number of arguments"},
       {"lua-replicate-commands a b", 1, "lua-replicate-commands a b",
        "Bad directive or wrong number of arguments"},
       {"port 1 2", 1, "port 1 2", "wrong number of arguments"},
       {"port \"1", 1, "port \"1", "Unbalanced quotes in configuration line"},
       {"port 1x", 1, "port 1x", "argument couldn't be parsed into an integer"},
       {"port 65536", 1, "port 65536", "argument must be between 0 and 65535 inclusive"},
       {"maxmemory 1x", 1, "maxmemory 1x", "argument must be a memory value"},
       {"unixsocketperm 8", 1, "unixsocketperm 8",
        "argument couldn't be parsed as an octal number"},
       {"unixsocketperm 1000", 1, "unixsocketperm 1000",
        "argument must be between 0 and 777 inclusive"},
       {"daemonize x", 1, "daemonize x", "argument must be 'yes' or 'no'"},
       {"bind a \"b c\"", 1, "bind a \"b c\"", "Invalid bind address"},
       {"dir /nonexistent", 1, "dir /nonexistent", "No such file or directory"},
       {"replicaof a b", 1, "replicaof a b", "Invalid master port"},
       {"slaveof a 65536", 1, "slaveof a 65536", "Invalid master port"},
       {"slaveof a", 1, "slaveof a", "wrong number of arguments"},
       {"cluster-enabled yes", 1, "cluster-enabled yes", "Ingot does not serve cluster mode yet"},
       {"tls-port 65536", 1, "tls-port 65536", "argument must be between 0 and 65535 inclusive"},
       {"sentinel monitor", 1, "sentinel monitor", "sentinel directive while not in sentinel mode"},
       {"user", 1, "user", "Bad directive or wrong number of arguments"},
       {"loadmodule x.so", 1, "loadmodule x.so", "Modules are not supported"},
       {"engine redis", 1, "engine redis",
        "argument(s) must be one of the following: rocksdb, leveldb, memory"}}));
  CHECK(server.load_file(text) == fatal_at(line, shown, why));
  CHECK(server.value("port") == "6379");
}

TEST_CASE("damaged configuration files are read or refused, never more", "[config]") {
  const std::string sound =
      "port 1\nsave 900 1 300 10\nbind 127.0.0.1 -::1\nmaxmemory 1gb\nlogfile \"a \\x41\"\n"
      "client-output-buffer-limit pubsub 32mb 8mb 60\nnotify-keyspace-events 'KEA'\n"
      "rename-command FLUSHALL \"\"\nunixsocketperm 700\nhz 10\nmaxmemory-clients 5%\n"
      "latency-tracking-info-percentiles 50 99.9\noom-score-adj-values 0 200 800\n"
      "shutdown-on-sigterm save now\nproc-title-template \"{title} {{x\"\nreplicaof no one\n";
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  REQUIRE_FALSE(Loader("0").load(sound));
  for (int i = 0; i < 5'000; ++i) {
    std::string text = sound;
    for (unsigned changes = 1 + random() % 5; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text.erase(at, 1 + random() % 4);
          break;
        case 1:
          text.insert(at, 1, "\"'\\{}% -x0\n"[random() % 12]);
          break;
        default:
          text[at] = static_cast<char>(random());
      }
    }
    Loader loader("0");
    const Error error = loader.load(text);
    if (error) REQUIRE(error->find("FATAL CONFIG FILE ERROR") != std::string::npos);
  }
}

TEST_CASE("included files", "[config]") {
  Fixture server;
  const auto file = [&](const char* name) { return server.directory.file(name); };

  SECTION("are read in place, by wildcards in order of their names") {
    write_file(file("b.inc"), "timeout 2");
    write_file(file("a.inc"), "timeout 1\nport 1");
    const std::string text = "port 9\ninclude " + file("*.inc") + "\nhz 20\ninclude /none/*.x";
    REQUIRE(server.load_file(text) == "OK");
    CHECK(server.value("timeout") == "2");
    CHECK(server.value("port") == "1");
    CHECK(server.value("hz") == "20");
  }
  SECTION("are relative to dir once it is set") {
    std::filesystem::create_directory(file("sub"));
    write_file(file("sub/x.inc"), "port 5");
    REQUIRE(server.load_file("dir " + file("sub") + "\ninclude x.inc") == "OK");
    CHECK(server.value("port") == "5");
  }
  SECTION("must exist") {
    CHECK(server.load_file("include /none.conf") ==
          "Fatal error, can't open config file '/none.conf': No such file or directory");
    CHECK(server.load({"/tmp"}) == "Fatal error, can't open config file '/tmp': Is a directory");
  }
  SECTION("count their own lines") {
    write_file(file("x.inc"), "\ntimeout x");
    CHECK(server.load_file("port 1\ninclude " + file("x.inc")) ==
          fatal_at(2, "timeout x", "argument couldn't be parsed into an integer"));
  }
  SECTION("may not include themselves") {
    const std::string path = file("ingot.conf");
    CHECK(server.load_file("include " + path) ==
          fatal("Too many nested includes, at '" + path + "'"));
  }
}

TEST_CASE("the command line, as redis-server takes it", "[config]") {
  Fixture server;

  SECTION("directives follow the file and override it") {
    REQUIRE(server.load_file("port 1\ntimeout 3", {"--port", "2", "--bind", "a", "b"}) == "OK");
    CHECK(server.value("port") == "2");
    CHECK(server.value("timeout") == "3");
    CHECK(server.value("bind") == "a b");
    CHECK(server.config.file() == server.directory.file("ingot.conf"));
  }
  SECTION("name and value may be one argument") {
    REQUIRE(server.load({"--timeout 9", "--requirepass", "a \"b"}) == "OK");
    CHECK(server.value("timeout") == "9");
    CHECK(server.value("requirepass") == "a \"b");
    CHECK(server.config.file().empty());
  }
  SECTION("the first value may begin with dashes") {
    REQUIRE(server.load({"--requirepass", "--x", "--timeout", "5"}) == "OK");
    CHECK(server.value("requirepass") == "--x");
    CHECK(server.value("timeout") == "5");
    CHECK(server.load({"--loglevel", "--timeout", "5"}) ==
          fatal_at(2, "loglevel \"--timeout\" \"5\"", "wrong number of arguments"));
  }
  SECTION("save may be empty in three ways") {
    const Words arguments =
        GENERATE(Words{"--save", "", "--timeout", "5"}, Words{"--save", "--timeout", "5"},
                 Words{"--timeout", "5", "--save"});
    REQUIRE(server.load(arguments) == "OK");
    CHECK(server.value("save").empty());
    CHECK(server.value("timeout") == "5");
  }
  SECTION("errors show the line that was made of it") {
    CHECK(server.load({"--port", "x"}) ==
          fatal_at(2, "port \"x\"", "argument couldn't be parsed into an integer"));
    CHECK(server.load({"--foo"}) ==
          fatal_at(2, "foo", "Bad directive or wrong number of arguments"));
  }
  SECTION("the log file must be writable") {
    CHECK(server.load({"--logfile", "/none/x.log"}) ==
          fatal("Can't open the log file: No such file or directory"));
    CHECK(server.load({"--dir", server.directory.file(""), "--logfile", "x.log"}) == "OK");
    CHECK(std::filesystem::exists(server.directory.file("x.log")));
  }
}

TEST_CASE("CONFIG GET", "[config]") {
  Fixture server;
  REQUIRE(server.load({"--replica-priority", "7"}) == "OK");
  CHECK(server.get({"PORT", "port", "none"}) == Pairs{{"PORT", "6379"}});
  CHECK(server.get({"slave-priority", "*A-PRIORITY"}) ==
        Pairs{{"slave-priority", "7"}, {"replica-priority", "7"}});
  CHECK(server.get({"watchdog*"}).empty());
  CHECK(server.get({"watchdog-period"}) == Pairs{{"watchdog-period", "0"}});
  std::set<std::string> names;
  for (const auto& [name, value] : server.get({"*", "*"})) CHECK(names.insert(name).second);
  CHECK(names.contains("tls-port"));
  CHECK(names.contains("slaveof"));
  CHECK(names.size() > 200);
}

TEST_CASE("CONFIG SET refuses in Redis' words and changes nothing", "[config]") {
  Fixture server;
  REQUIRE(server.load({}) == "OK");
  const Pairs before = server.get({"*"});
  CHECK(server.set({{"foo", "1"}}) ==
        "ERR Unknown option or number of arguments for CONFIG SET - 'foo'");
  CHECK(server.set({{"timeout", "5"}, {"Foo", "1"}}) ==
        "ERR Unknown option or number of arguments for CONFIG SET - 'Foo'");
  CHECK(server.set({{"DATABASES", "5"}, {"foo", "1"}}) ==
        set_failed("DATABASES", "can't set immutable config"));
  CHECK(server.set({{"dir", "/tmp"}}) == set_failed("dir", "can't set protected config"));
  CHECK(server.set({{"hz", "1"}, {"HZ", "2"}}) == set_failed("HZ", "duplicate parameter"));
  const auto refused = [&](std::string_view name, std::string_view value, std::string_view why) {
    CHECK(server.set({{"timeout", "5"}, {name, value}}) == set_failed(lower_case(name), why));
  };
  refused("PORT", "x", "argument couldn't be parsed into an integer");
  refused("port", "05", "argument couldn't be parsed into an integer");
  refused("reader-threads", "0", "argument must be between 1 and 1024 inclusive");
  refused("tcp-keepalive", "-1", "argument must be between 0 and 2147483647 inclusive");
  refused("maxclients", "-1", "argument must be between 1 and 4294967295 inclusive");
  refused("maxmemory", "1tb", "argument must be a memory value");
  refused("maxmemory-clients", "x", "argument must be a memory or percent value");
  refused("maxmemory-clients", "101%", "percentage argument must be less or equal to 100");
  refused("protected-mode", "1", "argument must be 'yes' or 'no'");
  refused("appendfsync", "x", "argument(s) must be one of the following: everysec, always, no");
  refused("min-slaves-to-write", "x", "argument couldn't be parsed into an integer");
  refused("save", "1 2 3", "Invalid save parameters");
  refused("notify-keyspace-events", "q", "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
  refused("client-output-buffer-limit", "normal 1 2",
          "Wrong number of arguments in buffer limit configuration.");
  refused("client-output-buffer-limit", "master 1 1 1",
          "Invalid client class specified in buffer limit configuration.");
  refused("shutdown-on-sigint", "save nosave",
          "shutdown options SAVE and NOSAVE can't be used simultaneously");
  refused("activedefrag", "yes",
          "Active defragmentation cannot be enabled: it requires a Redis server compiled with a "
          "modified Jemalloc like the one shipped by default with the Redis source distribution");
  CHECK(server.get({"*"}) == before);
}

TEST_CASE("CONFIG SET changes several settings at once", "[config]") {
  Fixture server;
  REQUIRE(server.load({}) == "OK");
  const auto old = server.config.settings();
  CHECK(server.set({{"reader-threads", "20"},
                    {"LUA-TIME-LIMIT", "7"},
                    {"notify-keyspace-events", "KEA"},
                    {"client-output-buffer-limit", "normal 1mb 0 0 slave 1 1 1"},
                    {"maxmemory-clients", "5%"},
                    {"shutdown-on-sigterm", "now SAVE"},
                    {"save", ""},
                    {"bind", ""}}) == "OK");
  CHECK(old->reader_threads == 10);
  const auto now = server.config.settings();
  CHECK(now->reader_threads == 20);
  CHECK(server.value("busy-reply-threshold") == "7");
  CHECK(now->notify_keyspace_events == (notify::kKeyspace | notify::kKeyevent | notify::kAll));
  CHECK(server.value("notify-keyspace-events") == "AKE");
  CHECK(server.value("client-output-buffer-limit") ==
        "normal 1048576 0 0 slave 1 1 1 pubsub 33554432 8388608 60");
  CHECK(server.value("maxmemory-clients") == "5%");
  CHECK(server.value("shutdown-on-sigterm") == "save now");
  CHECK(server.value("save").empty());
  CHECK(now->bind.empty());
}

TEST_CASE("reader-threads is a number or auto", "[config]") {
  Fixture server;
  REQUIRE(server.load({"--reader-threads", "AUTO"}) == "OK");
  CHECK(server.value("reader-threads") == "auto");
  CHECK(server.set({{"reader-threads", "12"}}) == "OK");
  CHECK(server.value("reader-threads") == "12");
  CHECK(server.set({{"reader-threads", "auto"}}) == "OK");
  CHECK(server.value("reader-threads") == "auto");
}

TEST_CASE("protected settings follow enable-protected-configs", "[config]") {
  Fixture server;
  REQUIRE(server.load({"--enable-protected-configs", "local"}) == "OK");
  CHECK(server.set({{"dbfilename", "x"}}, false) ==
        set_failed("dbfilename", "can't set protected config"));
  CHECK(server.set({{"dbfilename", "a/b"}}) ==
        set_failed("dbfilename", "dbfilename can't be a path, just a filename"));
  CHECK(server.set({{"dbfilename", "x"}}) == "OK");
  CHECK(server.set({{"dir", "/tmp"}}) == set_failed("dir", "can't set immutable config"));
  CHECK(checkpoint_path(*server.config.settings()) ==
        std::filesystem::current_path().string() + "/x.checkpoint");
}

TEST_CASE("a change that the server refuses is not made", "[config]") {
  Fixture server;
  REQUIRE(server.load({}) == "OK");
  int calls = 0;
  server.config.on_change([&](const Settings& before, const Settings& after) {
    calls++;
    CHECK(before.port == 6379);
    std::optional<Refusal> refusal;
    if (after.port != before.port) refusal = {"port", "Unable to listen on this port."};
    return refusal;
  });
  CHECK(server.set({{"timeout", "5"}, {"port", "1"}}) ==
        set_failed("port", "Unable to listen on this port."));
  CHECK(server.value("timeout") == "0");
  CHECK(server.value("port") == "6379");
  CHECK(server.set({{"timeout", "5"}}) == "OK");
  CHECK(server.value("timeout") == "5");
  CHECK(server.set({{"timeout", "x"}}) != "OK");
  CHECK(calls == 2);
}

TEST_CASE("CONFIG REWRITE changes lines in place and adds what is new", "[config]") {
  Fixture server;
  const std::string dir = server.directory.file("");
  const std::string real_dir = std::filesystem::canonical(dir).string();
  REQUIRE(server.load_file("# top\nPORT 7000\n\n\n  timeout 1\ntimeout 2\nslave-priority 50\n"
                           "include *.none\nrename-command FLUSHALL \"\"\nappendonly no\n"
                           "lua-replicate-commands yes\n# end\nmaxmemory 1048576\n"
                           "client-output-buffer-limit slave 1mb 0 0\nrequirepass \"a b\"\n",
                           {"--dir", dir, "--slowlog-max-len", "5"}) == "OK");
  std::filesystem::permissions(server.config.file(), std::filesystem::perms(0640));
  REQUIRE(server.set({{"timeout", "3"},
                      {"maxmemory", "3kb"},
                      {"masterauth", "x\ny"},
                      {"requirepass", ""},
                      {"save", "1 2"}}) == "OK");
  const std::string expected =
      "# top\nport 7000\n\ntimeout 3\n\nreplica-priority 50\n"
      "include *.none\nrename-command FLUSHALL \"\"\nappendonly no\n"
      "lua-replicate-commands yes\n# end\nmaxmemory 3kb\n"
      "client-output-buffer-limit normal 0 0 0\n\n"
      "# Generated by CONFIG REWRITE\n"
      "client-output-buffer-limit replica 1mb 0 0\n"
      "client-output-buffer-limit pubsub 32mb 8mb 60\n"
      "dir \"" +
      real_dir + "\"\nmasterauth \"x\\ny\"\nslowlog-max-len 5\nsave 1 2\n";
  CHECK(server.rewritten() == expected);
  CHECK(server.rewritten() == expected);
  CHECK(std::filesystem::status(server.config.file()).permissions() ==
        std::filesystem::perms(0640));
  const auto files = std::filesystem::directory_iterator(dir);
  CHECK(std::distance(begin(files), end(files)) == 1);

  Fixture again;
  REQUIRE(again.load({server.config.file()}) == "OK");
  CHECK(again.get({"*"}) == server.get({"*"}));
}

TEST_CASE("CONFIG REWRITE writes all lines of a default that replaces one", "[config]") {
  Fixture server;
  REQUIRE(server.load_file("save 900 1\n") == "OK");
  REQUIRE(server.set({{"save", "3600 1 300 100 60 10000"}}) == "OK");
  CHECK(server.rewritten().starts_with("save 3600 1\n"));
  Fixture again;
  REQUIRE(again.load({server.config.file()}) == "OK");
  CHECK(again.value("save") == "3600 1 300 100 60 10000");
}

TEST_CASE("CONFIG REWRITE of every setting can be read again", "[config]") {
  Fixture server;
  REQUIRE(server.load_file("dir " + server.directory.file("")) == "OK");
  REQUIRE(server.set({{"bind", ""},
                      {"latency-tracking-info-percentiles", ""},
                      {"save", ""},
                      {"maxmemory-clients", "7%"},
                      {"notify-keyspace-events", "AnK"},
                      {"oom-score-adj-values", "1 2 3"},
                      {"shutdown-on-sigint", "now force"},
                      {"tls-ciphers", "a \"b\\"},
                      {"proc-title-template", "x {port}"},
                      {"list-max-listpack-size", "-5"}}) == "OK");
  server.rewritten();
  Fixture again;
  REQUIRE(again.load({server.config.file()}) == "OK");
  CHECK(again.get({"*"}) == server.get({"*"}));
  CHECK(again.config.settings()->notify_keyspace_events ==
        server.config.settings()->notify_keyspace_events);
}

TEST_CASE("CONFIG REWRITE needs a file that it can replace", "[config]") {
  Fixture server;
  REQUIRE(server.load({}) == "OK");
  CHECK(server.config.rewrite() == "ERR The server is running without a config file");
  const std::string sub = server.directory.file("sub");
  std::filesystem::create_directory(sub);
  write_file(sub + "/x.conf", "port 1");
  REQUIRE(server.load({sub + "/x.conf"}) == "OK");
  std::filesystem::remove_all(sub);
  CHECK(server.config.rewrite() == "ERR Rewriting config file: No such file or directory");
}

TEST_CASE("a line that became wrong since the start is kept as a comment", "[config]") {
  Fixture server;
  REQUIRE(server.load_file("port 1\n", {"--dir", server.directory.file("")}) == "OK");
  write_file(server.config.file(), "foo bar\nport \"1\nport 2\n");
  CHECK(server.rewritten().starts_with("# ??? foo bar\n# ??? port \"1\nport 1\n"));
}

TEST_CASE("the files in conf/ work, and document every setting with its default", "[config]") {
  Fixture server;
  REQUIRE(server.load({}) == "OK");
  const Pairs defaults = server.get({"*"});
  Fixture documented;
  REQUIRE(documented.load({INGOT_CONF_DIR "/ingot.conf"}) == "OK");
  CHECK(documented.get({"*"}) == defaults);
  CHECK(documented.config.accepted_without_meaning().empty());
  const std::string text = '\n' + storage::content_of(INGOT_CONF_DIR "/ingot.conf");
  for (const SettingRow& row : used_rows()) {
    INFO(row.name);
    const std::string name(row.name);
    const bool active = text.find('\n' + name + ' ') != text.npos;
    CHECK((active || text.find("\n# " + name + ' ') != text.npos));
  }
  for (const char* profile : {"/ingot-ssd.conf", "/ingot-hdd.conf"}) {
    Fixture tuned;
    CHECK(tuned.load({std::string(INGOT_CONF_DIR) + profile}) == "OK");
    CHECK(tuned.get({"*"}) != defaults);
    CHECK(tuned.config.accepted_without_meaning().empty());
  }
}

}  // namespace ingot::settings
