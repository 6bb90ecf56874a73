// The rows of the settings that Ingot uses, and the index over all rows.
#include "src/settings/setting_rows.h"

#include <syslog.h>

#include <algorithm>
#include <array>
#include <thread>
#include <unordered_map>

#include "src/settings/custom_values.h"
#include "src/settings/setting_values.h"

namespace ingot::settings {
namespace {

constexpr int64_t kIntMin = std::numeric_limits<int>::min();
constexpr int64_t kIntMax = std::numeric_limits<int>::max();
constexpr int64_t kUintMax = std::numeric_limits<unsigned>::max();
constexpr int64_t kLongMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kUlongMax = -1;  // all bits: the largest unsigned number
constexpr int64_t kMb = 1 << 20;

template <typename T>
struct MemberType;
template <typename T>
struct MemberType<T Settings::*> {
  using type = T;
};

template <auto Member>
constexpr NumberMember number() {
  using T = typename MemberType<decltype(Member)>::type;
  return {
      .get = [](const Settings& settings) { return static_cast<int64_t>(settings.*Member); },
      .set = [](Settings& settings, int64_t value) { settings.*Member = static_cast<T>(value); }};
}

template <auto Member>
constexpr SettingRow boolean(std::string_view name, uint8_t flags = 0,
                             std::string_view alias = {}) {
  return {.name = name,
          .alias = alias,
          .kind = Kind::kBool,
          .flags = flags,
          .member = number<Member>()};
}

template <auto Member>
constexpr SettingRow integer(std::string_view name, int64_t min, int64_t max, uint8_t flags = 0,
                             std::string_view alias = {}) {
  return {.name = name,
          .alias = alias,
          .kind = Kind::kInteger,
          .flags = flags,
          .min = min,
          .max = max,
          .member = number<Member>()};
}

template <auto Member>
constexpr SettingRow memory(std::string_view name, int64_t min, int64_t max, uint8_t flags = 0,
                            std::string_view alias = {},
                            Error (*check)(std::string_view) = nullptr) {
  return {.name = name,
          .alias = alias,
          .kind = Kind::kMemory,
          .flags = flags,
          .min = min,
          .max = max,
          .member = number<Member>(),
          .check = check};
}

template <auto Member>
constexpr SettingRow choice(std::string_view name, std::span<const EnumName> names,
                            uint8_t flags = 0) {
  return {.name = name,
          .kind = Kind::kEnum,
          .flags = flags,
          .names = names,
          .member = number<Member>()};
}

constexpr SettingRow word(std::string_view name, TextMember member, std::span<const EnumName> names,
                          uint8_t flags) {
  return {.name = name, .kind = Kind::kEnum, .flags = flags, .names = names, .member = member};
}

constexpr SettingRow text(std::string_view name, TextMember member, uint8_t flags = 0,
                          Error (*check)(std::string_view) = nullptr, std::string_view alias = {}) {
  return {.name = name,
          .alias = alias,
          .kind = Kind::kText,
          .flags = flags,
          .member = member,
          .check = check};
}

constexpr EnumName kShutdownNames[] = {
    {"default", 0}, {"save", 1}, {"nosave", 2}, {"now", 4}, {"force", 8}};

constexpr SettingRow shutdown_flags(std::string_view name, TextMember member) {
  return {.name = name,
          .kind = Kind::kCustom,
          .flags = kManyValues,
          .names = kShutdownNames,
          .member = member,
          .custom = &kShutdownFlagsValue};
}

constexpr SettingRow custom(std::string_view name, const CustomValue& value, uint8_t flags = 0,
                            std::string_view alias = {}) {
  return {.name = name, .alias = alias, .kind = Kind::kCustom, .flags = flags, .custom = &value};
}

template <typename Enum>
constexpr EnumName named(std::string_view name, Enum value) {
  return {name, static_cast<int64_t>(value)};
}

// In Redis' order, which its error messages show.
constexpr EnumName kPolicyNames[] = {named("volatile-lru", MaxmemoryPolicy::kVolatileLru),
                                     named("volatile-lfu", MaxmemoryPolicy::kVolatileLfu),
                                     named("volatile-random", MaxmemoryPolicy::kVolatileRandom),
                                     named("volatile-ttl", MaxmemoryPolicy::kVolatileTtl),
                                     named("allkeys-lru", MaxmemoryPolicy::kAllkeysLru),
                                     named("allkeys-lfu", MaxmemoryPolicy::kAllkeysLfu),
                                     named("allkeys-random", MaxmemoryPolicy::kAllkeysRandom),
                                     named("noeviction", MaxmemoryPolicy::kNoEviction)};
constexpr EnumName kAppendFsyncNames[] = {named("everysec", AppendFsync::kEverysec),
                                          named("always", AppendFsync::kAlways),
                                          named("no", AppendFsync::kNo)};
constexpr EnumName kLogLevelNames[] = {
    named("debug", LogLevel::kDebug), named("verbose", LogLevel::kVerbose),
    named("notice", LogLevel::kNotice), named("warning", LogLevel::kWarning)};
constexpr EnumName kKeyCountNames[] = {named("exact", KeyCount::kExact),
                                       named("estimate", KeyCount::kEstimate)};
constexpr EnumName kReadIoNames[] = {named("auto", ReadIo::kAuto), named("uring", ReadIo::kUring),
                                     named("threads", ReadIo::kThreads)};
constexpr EnumName kTlsAuthNames[] = {named("no", TlsAuthClients::kNo),
                                      named("yes", TlsAuthClients::kYes),
                                      named("optional", TlsAuthClients::kOptional)};
constexpr EnumName kSupervisedNames[] = {
    named("upstart", Supervised::kUpstart), named("systemd", Supervised::kSystemd),
    named("auto", Supervised::kAuto), named("no", Supervised::kNo)};
constexpr EnumName kOomScoreNames[] = {
    named("no", OomScoreAdj::kNo), named("yes", OomScoreAdj::kRelative),
    named("relative", OomScoreAdj::kRelative), named("absolute", OomScoreAdj::kAbsolute)};
constexpr EnumName kFacilityNames[] = {
    {"user", LOG_USER},     {"local0", LOG_LOCAL0}, {"local1", LOG_LOCAL1},
    {"local2", LOG_LOCAL2}, {"local3", LOG_LOCAL3}, {"local4", LOG_LOCAL4},
    {"local5", LOG_LOCAL5}, {"local6", LOG_LOCAL6}, {"local7", LOG_LOCAL7}};
constexpr EnumName kPermissionNames[] = {named("no", Permission::kNo),
                                         named("yes", Permission::kYes),
                                         named("local", Permission::kLocal)};
constexpr EnumName kAclPubsubNames[] = {named("allchannels", AclPubsub::kAllChannels),
                                        named("resetchannels", AclPubsub::kResetChannels)};
constexpr EnumName kEngineNames[] = {{"rocksdb", 0}, {"leveldb", 1}, {"memory", 2}};
constexpr EnumName kCompressionNames[] = {{"none", 0}, {"snappy", 1}, {"lz4", 2}, {"zstd", 3}};

Error check_dbfilename(std::string_view value) {
  if (value.find('/') == value.npos) return {};
  return "dbfilename can't be a path, just a filename";
}

// Text with variables in braces; a doubled opening brace stands for itself. Something must be left
// of it when the variables that may be empty are.
Error check_title(std::string_view value) {
  constexpr std::string_view kWrong = "template format is invalid or contains unknown variables";
  constexpr std::string_view kFilled[] = {"listen-addr", "port", "tls-port"};
  constexpr std::string_view kMaybeEmpty[] = {"title", "server-mode", "unixsocket", "config-file"};
  bool has_text = false;
  while (!value.empty()) {
    const char c = value.front();
    value.remove_prefix(1);
    if (c != '{' || value.starts_with('{')) {
      has_text = has_text || c != ' ';
      if (c == '{') value.remove_prefix(1);
      continue;
    }
    const size_t end = value.find('}');
    if (end == value.npos) return std::string(kWrong);
    const std::string_view variable = value.substr(0, end);
    const bool is_filled = std::ranges::find(kFilled, variable) != std::end(kFilled);
    if (!is_filled && std::ranges::find(kMaybeEmpty, variable) == std::end(kMaybeEmpty)) {
      return std::string(kWrong);
    }
    has_text = has_text || is_filled;
    value.remove_prefix(end + 1);
  }
  if (!has_text) return std::string(kWrong);
  return {};
}

// With less, flushes take so long that no write is taken meanwhile.
Error check_compaction_rate(std::string_view value) {
  const auto rate = parse_memory(value);
  if (rate && (*rate == 0 || *rate >= uint64_t{kMb})) return {};
  return "argument must be 0 or at least 1mb";
}

using S = Settings;

constexpr auto kUsedRows = std::to_array<SettingRow>({
    custom("bind", kBindValue, kManyValues),
    integer<&S::port>("port", 0, 65535),
    integer<&S::tcp_backlog>("tcp-backlog", 0, kIntMax, kImmutable),
    text("unixsocket", &S::unixsocket, kImmutable),
    {.name = "unixsocketperm",
     .kind = Kind::kOctal,
     .flags = kImmutable | kUnsigned,
     .min = 0,
     .max = 0777,
     .member = number<&S::unixsocketperm>()},
    integer<&S::tcp_keepalive>("tcp-keepalive", 0, kIntMax),
    integer<&S::timeout>("timeout", 0, kIntMax),
    integer<&S::io_threads>("io-threads", 1, 128, kImmutable),
    integer<&S::maxclients>("maxclients", 1, kUintMax, kUnsigned),
    boolean<&S::protected_mode>("protected-mode"),
    memory<&S::client_query_buffer_limit>("client-query-buffer-limit", kMb, kLongMax, kUnsigned),
    custom("client-output-buffer-limit", kOutputLimitsValue, kManyValues),
    memory<&S::proto_max_bulk_len>("proto-max-bulk-len", kMb, kLongMax),

    integer<&S::tls_port>("tls-port", 0, 65535),
    text("tls-cert-file", &S::tls_cert_file, kVolatile),
    text("tls-key-file", &S::tls_key_file, kVolatile),
    text("tls-key-file-pass", &S::tls_key_file_pass, kVolatile),
    text("tls-dh-params-file", &S::tls_dh_params_file, kVolatile),
    text("tls-ca-cert-file", &S::tls_ca_cert_file, kVolatile),
    text("tls-ca-cert-dir", &S::tls_ca_cert_dir, kVolatile),
    choice<&S::tls_auth_clients>("tls-auth-clients", kTlsAuthNames),
    text("tls-protocols", &S::tls_protocols, kVolatile),
    text("tls-ciphers", &S::tls_ciphers, kVolatile),
    text("tls-ciphersuites", &S::tls_ciphersuites, kVolatile),
    boolean<&S::tls_prefer_server_ciphers>("tls-prefer-server-ciphers"),
    boolean<&S::tls_session_caching>("tls-session-caching"),
    integer<&S::tls_session_cache_size>("tls-session-cache-size", 0, kIntMax),
    integer<&S::tls_session_cache_timeout>("tls-session-cache-timeout", 0, kIntMax),

    word("engine", &S::engine, kEngineNames, kImmutable),
    // Immutable as well, because the data cannot move under a running server.
    custom("dir", kDirValue, kProtected | kImmutable),
    text("dbfilename", &S::dbfilename, kProtected, check_dbfilename),
    integer<&S::backup_keep>("backup-keep", 1, 1000),
    boolean<&S::ignore_redis_files>("ignore-redis-files", kImmutable),
    memory<&S::maxmemory>("maxmemory", 0, kUlongMax, kUnsigned),
    {.name = "maxmemory-clients",
     .kind = Kind::kMemoryOrPercent,
     .min = -100,
     .member = number<&S::maxmemory_clients>()},
    memory<&S::cache_size>("cache-size", 0, kUlongMax, kUnsigned),
    memory<&S::max_disk>("max-disk", 0, kUlongMax, kUnsigned),
    memory<&S::min_free_disk>("min-free-disk", 0, kUlongMax, kUnsigned),
    integer<&S::bloom_bits>("bloom-bits", 0, 32, kImmutable),
    word("compression", &S::compression, kCompressionNames, kImmutable),
    integer<&S::compaction_threads>("compaction-threads", 0, 64, kImmutable),
    memory<&S::compaction_rate>("compaction-rate", 0, kUlongMax, kUnsigned, {},
                                check_compaction_rate),
    boolean<&S::direct_reads>("direct-reads", kImmutable),
    choice<&S::key_count>("key-count", kKeyCountNames),
    boolean<&S::jemalloc_bg_thread>("jemalloc-bg-thread"),
    custom("reader-threads", kReaderThreadsValue),
    choice<&S::maxmemory_policy>("maxmemory-policy", kPolicyNames),
    integer<&S::lfu_log_factor>("lfu-log-factor", 0, kIntMax),
    integer<&S::lfu_decay_time>("lfu-decay-time", 0, kIntMax),
    choice<&S::read_io>("read-io", kReadIoNames, kImmutable),
    choice<&S::appendfsync>("appendfsync", kAppendFsyncNames),

    boolean<&S::daemonize>("daemonize", kImmutable),
    choice<&S::supervised>("supervised", kSupervisedNames, kImmutable),
    text("pidfile", &S::pidfile, kImmutable),
    choice<&S::loglevel>("loglevel", kLogLevelNames),
    text("logfile", &S::logfile, kImmutable),
    boolean<&S::syslog_enabled>("syslog-enabled", kImmutable),
    text("syslog-ident", &S::syslog_ident, kImmutable),
    choice<&S::syslog_facility>("syslog-facility", kFacilityNames, kImmutable),
    boolean<&S::crash_log_enabled>("crash-log-enabled"),
    integer<&S::databases>("databases", 1, kIntMax, kImmutable),
    boolean<&S::disable_thp>("disable-thp", kImmutable),
    boolean<&S::set_proc_title>("set-proc-title", kImmutable),
    text("proc-title-template", &S::proc_title_template, 0, check_title),
    choice<&S::oom_score_adj>("oom-score-adj", kOomScoreNames),
    custom("oom-score-adj-values", kOomScoresValue, kManyValues),

    text("requirepass", &S::requirepass),
    text("aclfile", &S::aclfile, kImmutable),
    integer<&S::acllog_max_len>("acllog-max-len", 0, kLongMax, kUnsigned),
    choice<&S::acl_pubsub_default>("acl-pubsub-default", kAclPubsubNames),
    choice<&S::enable_debug_command>("enable-debug-command", kPermissionNames, kImmutable),
    choice<&S::enable_module_command>("enable-module-command", kPermissionNames, kImmutable),
    choice<&S::enable_protected_configs>("enable-protected-configs", kPermissionNames, kImmutable),

    custom("replicaof", kReplicaOfValue, kImmutable | kManyValues, "slaveof"),
    text("bind-source-addr", &S::bind_source_addr),
    text("masteruser", &S::masteruser),
    text("masterauth", &S::masterauth),
    boolean<&S::replica_serve_stale_data>("replica-serve-stale-data", 0, "slave-serve-stale-data"),
    boolean<&S::replica_read_only>("replica-read-only", 0, "slave-read-only"),
    boolean<&S::replica_announced>("replica-announced"),
    text("replica-announce-ip", &S::replica_announce_ip, 0, nullptr, "slave-announce-ip"),
    integer<&S::replica_announce_port>("replica-announce-port", 0, 65535, 0, "slave-announce-port"),
    integer<&S::replica_priority>("replica-priority", 0, kIntMax, 0, "slave-priority"),
    boolean<&S::tls_replication>("tls-replication"),
    text("tls-client-cert-file", &S::tls_client_cert_file, kVolatile),
    text("tls-client-key-file", &S::tls_client_key_file, kVolatile),
    text("tls-client-key-file-pass", &S::tls_client_key_file_pass, kVolatile),

    memory<&S::inline_max_bytes>("inline-max-bytes", 0, 16384, kUnsigned),
    integer<&S::hash_max_listpack_entries>("hash-max-listpack-entries", 0, kLongMax, kUnsigned,
                                           "hash-max-ziplist-entries"),
    memory<&S::hash_max_listpack_value>("hash-max-listpack-value", 0, kLongMax, kUnsigned,
                                        "hash-max-ziplist-value"),
    integer<&S::list_max_listpack_size>("list-max-listpack-size", kIntMin, kIntMax, 0,
                                        "list-max-ziplist-size"),
    integer<&S::set_max_intset_entries>("set-max-intset-entries", 0, kLongMax, kUnsigned),
    integer<&S::zset_max_listpack_entries>("zset-max-listpack-entries", 0, kLongMax, kUnsigned,
                                           "zset-max-ziplist-entries"),
    memory<&S::zset_max_listpack_value>("zset-max-listpack-value", 0, kLongMax, kUnsigned,
                                        "zset-max-ziplist-value"),
    memory<&S::hll_sparse_max_bytes>("hll-sparse-max-bytes", 0, kLongMax, kUnsigned),
    memory<&S::stream_node_max_bytes>("stream-node-max-bytes", 0, kLongMax, kUnsigned),
    integer<&S::stream_node_max_entries>("stream-node-max-entries", 0, kLongMax),

    integer<&S::busy_reply_threshold_ms>("busy-reply-threshold", 0, kLongMax, 0, "lua-time-limit"),
    custom("notify-keyspace-events", kNotifyValue),
    integer<&S::metrics_port>("metrics-port", 0, 65535),
    integer<&S::min_replicas_max_lag>("min-replicas-max-lag", 0, kIntMax, 0, "min-slaves-max-lag"),
    integer<&S::min_replicas_to_write>("min-replicas-to-write", 0, kIntMax, 0,
                                       "min-slaves-to-write"),
    memory<&S::repl_backlog_size>("repl-backlog-size", 1, kLongMax),
    integer<&S::repl_backlog_ttl>("repl-backlog-ttl", 0, kLongMax),
    integer<&S::repl_ping_replica_period>("repl-ping-replica-period", 1, kIntMax, 0,
                                          "repl-ping-slave-period"),
    integer<&S::repl_timeout>("repl-timeout", 1, kIntMax),
    integer<&S::shutdown_timeout>("shutdown-timeout", 0, kIntMax),
    shutdown_flags("shutdown-on-sigint", &S::shutdown_on_sigint),
    shutdown_flags("shutdown-on-sigterm", &S::shutdown_on_sigterm),
    integer<&S::write_acks>("write-acks", 0, kIntMax),
    integer<&S::write_acks_timeout>("write-acks-timeout", 1, kIntMax),
    integer<&S::slowlog_log_slower_than>("slowlog-log-slower-than", -1, kLongMax),
    integer<&S::slowlog_max_len>("slowlog-max-len", 0, kLongMax),
    integer<&S::latency_monitor_threshold>("latency-monitor-threshold", 0, kLongMax),
    boolean<&S::latency_tracking>("latency-tracking"),
    custom("latency-tracking-info-percentiles", kPercentilesValue, kManyValues),
    integer<&S::tracking_table_max_keys>("tracking-table-max-keys", 0, kLongMax, kUnsigned),
});

using Index = std::unordered_map<std::string_view, const SettingRow*>;

const Index& index() {
  static const Index all = [] {
    Index made;
    for (const SettingRow* row : setting_rows()) {
      made.emplace(row->name, row);
      if (!row->alias.empty()) made.emplace(row->alias, row);
    }
    return made;
  }();
  return all;
}

}  // namespace

int default_io_threads() {
  // Half of the cores: the writer, the readers and compaction need the others.
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cores / 2, 1, 16);
}

std::span<const SettingRow> used_rows() {
  return kUsedRows;
}

const std::vector<const SettingRow*>& setting_rows() {
  static const std::vector<const SettingRow*> all = [] {
    std::vector<const SettingRow*> rows;
    for (const SettingRow& row : used_rows()) rows.push_back(&row);
    for (const SettingRow& row : rows_without_meaning()) rows.push_back(&row);
    return rows;
  }();
  return all;
}

FoundSetting find_setting(std::string_view name) {
  const auto found = index().find(lower_case(name));
  if (found == index().end()) return {};
  return {.row = found->second, .name = found->first};
}

}  // namespace ingot::settings
