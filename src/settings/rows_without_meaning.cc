// The rows of the settings that Redis 7.0 knows and that mean nothing in Ingot. A file that sets
// them is accepted, wrong values are refused as Redis refuses them, and CONFIG GET answers what
// was set. Values that ask for what an operator would miss (a replica that follows its master, a
// door that is locked) are refused: to pass over them would be to say that it is there.
#include <algorithm>
#include <array>
#include <iterator>

#include "src/settings/custom_values.h"
#include "src/settings/setting_rows.h"
#include "src/settings/setting_values.h"

namespace ingot::settings {
namespace {

constexpr int64_t kIntMin = std::numeric_limits<int>::min();
constexpr int64_t kIntMax = std::numeric_limits<int>::max();
constexpr int64_t kLongMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kUlongMax = -1;  // all bits: the largest unsigned number

constexpr SettingRow boolean(std::string_view name, std::string_view value, uint8_t flags = 0,
                             std::string_view alias = {}) {
  return {.name = name,
          .alias = alias,
          .kind = Kind::kBool,
          .flags = static_cast<uint8_t>(flags | kWithoutMeaning),
          .default_value = value};
}

constexpr SettingRow integer(std::string_view name, std::string_view value, int64_t min,
                             int64_t max, uint8_t flags = 0, std::string_view alias = {}) {
  return {.name = name,
          .alias = alias,
          .kind = Kind::kInteger,
          .flags = static_cast<uint8_t>(flags | kWithoutMeaning),
          .min = min,
          .max = max,
          .default_value = value};
}

constexpr SettingRow memory(std::string_view name, std::string_view value, int64_t min, int64_t max,
                            uint8_t flags = 0) {
  return {.name = name,
          .kind = Kind::kMemory,
          .flags = static_cast<uint8_t>(flags | kWithoutMeaning),
          .min = min,
          .max = max,
          .default_value = value};
}

constexpr SettingRow choice(std::string_view name, std::string_view value,
                            std::span<const EnumName> names, uint8_t flags = 0) {
  return {.name = name,
          .kind = Kind::kEnum,
          .flags = static_cast<uint8_t>(flags | kWithoutMeaning),
          .names = names,
          .default_value = value};
}

constexpr SettingRow text(std::string_view name, std::string_view value = {}, uint8_t flags = 0,
                          Error (*check)(std::string_view) = nullptr, std::string_view alias = {}) {
  return {.name = name,
          .alias = alias,
          .kind = Kind::kText,
          .flags = static_cast<uint8_t>(flags | kWithoutMeaning),
          .default_value = value,
          .check = check};
}

constexpr SettingRow custom(std::string_view name, std::string_view value,
                            const CustomValue& syntax, uint8_t flags = 0,
                            std::string_view alias = {}) {
  return {.name = name,
          .alias = alias,
          .kind = Kind::kCustom,
          .flags = static_cast<uint8_t>(flags | kWithoutMeaning),
          .default_value = value,
          .custom = &syntax};
}

constexpr EnumName kDisklessLoadNames[] = {{"disabled", 0}, {"on-empty-db", 1}, {"swapdb", 2}};
constexpr EnumName kSanitizeNames[] = {{"no", 0}, {"yes", 1}, {"clients", 2}};
constexpr EnumName kEndpointNames[] = {{"ip", 0}, {"hostname", 1}, {"unknown-endpoint", 2}};
constexpr EnumName kPropagationNames[] = {{"ignore", 0}, {"panic", 1}, {"panic-on-replicas", 2}};
Error check_no_defrag(std::string_view value) {
  if (value == "no") return {};
  return "Active defragmentation cannot be enabled: it requires a Redis server compiled with a "
         "modified Jemalloc like the one shipped by default with the Redis source distribution";
}

Error check_no_cluster(std::string_view value) {
  if (value == "no") return {};
  return "Ingot does not serve cluster mode yet";
}

Error check_append_name(std::string_view value) {
  if (value.empty()) return "appendfilename can't be empty";
  if (value.find('/') == value.npos) return {};
  return "appendfilename can't be a path, just a filename";
}

Error check_append_dir(std::string_view value) {
  if (value.empty()) return "appenddirname can't be empty";
  if (value.find('/') == value.npos) return {};
  return "appenddirname can't be a path, just a dirname";
}

Error check_hostname(std::string_view value) {
  if (value.size() >= 256) return "Hostnames must be less than 256 characters";
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.";
  if (value.find_first_not_of(kAllowed) == value.npos) return {};
  return "Hostnames may only contain alphanumeric characters, hyphens or dots";
}

constexpr auto kRows = std::to_array<SettingRow>({
    // Eviction: Ingot keeps what is stored.
    integer("maxmemory-samples", "5", 1, kIntMax),
    integer("maxmemory-eviction-tenacity", "10", 0, 100),

    // Threads, memory and the process
    boolean("io-threads-do-reads", "no", kImmutable),
    custom("hz", "10", kHzValue),
    boolean("dynamic-hz", "yes"),
    integer("active-expire-effort", "1", 1, 10),
    boolean("activerehashing", "yes"),
    {.name = "activedefrag",
     .kind = Kind::kBool,
     .flags = kWithoutMeaning,
     .default_value = "no",
     .check = check_no_defrag},
    memory("active-defrag-ignore-bytes", "104857600", 1, kLongMax, kUnsigned),
    integer("active-defrag-threshold-lower", "10", 0, 1000),
    integer("active-defrag-threshold-upper", "100", 0, 1000),
    integer("active-defrag-cycle-min", "1", 1, 99),
    integer("active-defrag-cycle-max", "25", 1, 99),
    integer("active-defrag-max-scan-fields", "1000", 1, kLongMax),
    boolean("lazyfree-lazy-eviction", "no"),
    boolean("lazyfree-lazy-expire", "no"),
    boolean("lazyfree-lazy-server-del", "no"),
    boolean("lazyfree-lazy-user-del", "no"),
    boolean("lazyfree-lazy-user-flush", "no"),
    integer("list-compress-depth", "0", 0, kIntMax),
    text("server_cpulist", "", kImmutable),
    text("bio_cpulist", "", kImmutable),
    text("aof_rewrite_cpulist", "", kImmutable),
    text("bgsave_cpulist", "", kImmutable),
    boolean("always-show-logo", "no", kImmutable),
    boolean("crash-memcheck-enabled", "yes"),
    boolean("use-exit-on-panic", "no", kHidden),
    text("ignore-warnings"),
    integer("watchdog-period", "0", 0, kIntMax, kHidden),
    integer("rdb-key-save-delay", "0", kIntMin, kIntMax, kHidden),
    integer("key-load-delay", "0", kIntMin, kIntMax, kHidden),
    integer("loading-process-events-interval-bytes", "2097152", 1024, kIntMax, kHidden),

    // Redis' files: what is written is in the log before it is answered, and SAVE is a checkpoint.
    custom("save", "3600 1 300 100 60 10000", kSaveValue, kManyValues),
    boolean("stop-writes-on-bgsave-error", "yes"),
    boolean("rdbcompression", "yes"),
    boolean("rdbchecksum", "yes", kImmutable),
    boolean("rdb-del-sync-files", "no"),
    boolean("rdb-save-incremental-fsync", "yes"),
    choice("sanitize-dump-payload", "no", kSanitizeNames),
    boolean("appendonly", "no"),
    text("appendfilename", "appendonly.aof", kImmutable, check_append_name),
    text("appenddirname", "appendonlydir", kImmutable, check_append_dir),
    boolean("no-appendfsync-on-rewrite", "no"),
    integer("auto-aof-rewrite-percentage", "100", 0, kIntMax),
    memory("auto-aof-rewrite-min-size", "67108864", 0, kLongMax),
    boolean("aof-load-truncated", "yes"),
    boolean("aof-use-rdb-preamble", "yes"),
    boolean("aof-timestamp-enabled", "no"),
    boolean("aof-rewrite-incremental-fsync", "yes"),
    boolean("aof-disable-auto-gc", "no"),

    // Network
    integer("socket-mark-id", "0", 0, 4294967295, kImmutable | kUnsigned),

    // Replication
    boolean("replica-lazy-flush", "no", 0, "slave-lazy-flush"),
    boolean("replica-ignore-maxmemory", "yes", 0, "slave-ignore-maxmemory"),
    boolean("replica-ignore-disk-write-errors", "no"),
    choice("propagation-error-behavior", "ignore", kPropagationNames),
    boolean("repl-diskless-sync", "yes"),
    integer("repl-diskless-sync-delay", "5", 0, kIntMax),
    integer("repl-diskless-sync-max-replicas", "0", 0, kIntMax),
    choice("repl-diskless-load", "disabled", kDisklessLoadNames),
    boolean("repl-disable-tcp-nodelay", "no"),

    // Cluster
    {.name = "cluster-enabled",
     .kind = Kind::kBool,
     .flags = kImmutable | kWithoutMeaning,
     .default_value = "no",
     .check = check_no_cluster},
    text("cluster-config-file", "nodes.conf", kImmutable),
    integer("cluster-port", "0", 0, 65535, kImmutable),
    integer("cluster-node-timeout", "15000", 0, kLongMax),
    text("cluster-announce-ip"),
    text("cluster-announce-hostname", "", 0, check_hostname),
    integer("cluster-announce-port", "0", 0, 65535),
    integer("cluster-announce-tls-port", "0", 0, 65535),
    integer("cluster-announce-bus-port", "0", 0, 65535),
    choice("cluster-preferred-endpoint-type", "ip", kEndpointNames),
    memory("cluster-link-sendbuf-limit", "0", 0, kUlongMax, kUnsigned),
    integer("cluster-migration-barrier", "1", 0, kIntMax),
    integer("cluster-replica-validity-factor", "10", 0, kIntMax, 0,
            "cluster-slave-validity-factor"),
    boolean("cluster-replica-no-failover", "no", 0, "cluster-slave-no-failover"),
    boolean("cluster-require-full-coverage", "yes"),
    boolean("cluster-allow-reads-when-down", "no"),
    boolean("cluster-allow-pubsubshard-when-down", "yes"),
    boolean("cluster-allow-replica-migration", "yes"),

    // TLS between servers
    boolean("tls-cluster", "no"),
});

}  // namespace

std::span<const SettingRow> rows_without_meaning() {
  return kRows;
}

}  // namespace ingot::settings
