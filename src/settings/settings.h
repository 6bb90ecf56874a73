// The configuration as the rest of the server reads it: one typed member for every setting that
// has a meaning in Ingot, with its default. Plain data: Config publishes each state of it as an
// immutable object. How a setting is named, parsed and printed stands in setting_rows.h.
#pragma once

#include <syslog.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/types/events.h"

namespace ingot::settings {

enum class AppendFsync : uint8_t { kEverysec, kAlways, kNo };
// Who waits for look-ups in table files.
enum class ReadIo : uint8_t { kAuto, kUring, kThreads };  // auto: io_uring where it can be had
// What DBSIZE answers while keys were overwritten of which nobody knows yet whether they were
// there.
enum class KeyCount : uint8_t { kExact, kEstimate };  // exact: it counts the keys
// Nothing is evicted; but the policies with "lfu" count how often keys are used.
enum class MaxmemoryPolicy : uint8_t {
  kVolatileLru,
  kVolatileLfu,
  kVolatileRandom,
  kVolatileTtl,
  kAllkeysLru,
  kAllkeysLfu,
  kAllkeysRandom,
  kNoEviction,
};
inline bool counts_uses(MaxmemoryPolicy policy) {
  return policy == MaxmemoryPolicy::kVolatileLfu || policy == MaxmemoryPolicy::kAllkeysLfu;
}
inline bool is_lru(MaxmemoryPolicy policy) {
  return policy == MaxmemoryPolicy::kVolatileLru || policy == MaxmemoryPolicy::kAllkeysLru;
}
enum class LogLevel : uint8_t { kDebug, kVerbose, kNotice, kWarning };
// yes: what oom-score-adj-values says is added to what the process came with.
enum class OomScoreAdj : uint8_t { kNo, kRelative, kAbsolute };
enum class Supervised : uint8_t { kNo, kUpstart, kSystemd, kAuto };
// The channels that a new user may listen on.
enum class AclPubsub : uint8_t { kAllChannels, kResetChannels };
// Who may use a feature that can harm the machine.
enum class TlsAuthClients : uint8_t { kNo, kYes, kOptional };
enum class Permission : uint8_t { kNo, kYes, kLocal };  // local: loopback and unix socket only

// client-output-buffer-limit of one class; 0 means no limit of that kind.
struct OutputLimit {
  uint64_t hard_bytes = 0;
  uint64_t soft_bytes = 0;
  int64_t soft_seconds = 0;
  bool operator==(const OutputLimit&) const = default;
};
// Index into Settings::output_limits.
inline constexpr size_t kNormalClients = 0;
inline constexpr size_t kReplicaClients = 1;
inline constexpr size_t kPubsubClients = 2;

// Whom a replica follows.
struct MasterAddress {
  std::string host;  // empty: nobody
  int port = 0;
  bool operator==(const MasterAddress&) const = default;
};

namespace notify = types::notify;

int default_io_threads();  // by the number of cores

struct Settings {
  // Network
  std::vector<std::string> bind = {"*", "-::*"};  // a leading "-": optional address
  int port = 6379;                                // 0: no TCP
  int tcp_backlog = 511;
  std::string unixsocket;       // empty: none
  unsigned unixsocketperm = 0;  // 0: as the umask makes it
  int tcp_keepalive = 300;      // seconds; 0: off
  int timeout = 0;              // seconds a client may be idle; 0: for ever
  int io_threads = default_io_threads();
  unsigned maxclients = 10000;
  bool protected_mode = true;
  uint64_t client_query_buffer_limit = 1ull << 30;
  std::array<OutputLimit, 3> output_limits = {
      OutputLimit{}, {256ull << 20, 64ull << 20, 60}, {32ull << 20, 8ull << 20, 60}};
  int64_t proto_max_bulk_len = 512ll << 20;

  // TLS
  int tls_port = 0;  // 0: none
  std::string tls_cert_file;
  std::string tls_key_file;
  std::string tls_key_file_pass;
  std::string tls_dh_params_file;
  std::string tls_ca_cert_file;
  std::string tls_ca_cert_dir;
  TlsAuthClients tls_auth_clients = TlsAuthClients::kYes;
  std::string tls_protocols;     // empty: TLSv1.2 and TLSv1.3
  std::string tls_ciphers;       // empty: OpenSSL's
  std::string tls_ciphersuites;  // empty: OpenSSL's
  bool tls_prefer_server_ciphers = false;
  bool tls_session_caching = true;
  int tls_session_cache_size = 20480;   // sessions
  int tls_session_cache_timeout = 300;  // seconds

  // Storage
  std::string engine = "rocksdb";  // rocksdb, leveldb, memory
  std::string dir = ".";           // absolute once loaded; relative paths begin here
  std::string dbfilename = "dump.rdb";
  int backup_keep = 1;                    // checkpoints
  bool ignore_redis_files = false;        // start empty beside data of Redis that are not loaded
  uint64_t maxmemory = 0;                 // bytes; 0: by the machine or its cgroup
  int64_t maxmemory_clients = 0;          // bytes of clients; -5: 5 % of maxmemory; 0: no limit
  uint64_t cache_size = 0;                // bytes of the engine's cache; 0: maxmemory's share
  uint64_t max_disk = 0;                  // bytes of live files; 0: no limit
  uint64_t min_free_disk = 256ull << 20;  // writes stop when less is left on the disk
  int bloom_bits = 12;                    // per key; 0: no filters
  std::string compression = "lz4";        // none, snappy, lz4, zstd
  int compaction_threads = 0;             // 0: by the number of cores
  uint64_t compaction_rate = 0;           // bytes a second; 0: no limit
  bool direct_reads = false;              // bypass the page cache
  KeyCount key_count = KeyCount::kExact;
  bool jemalloc_bg_thread = true;  // a thread gives unused memory back to the system

  // How often keys are used (OBJECT FREQ)
  MaxmemoryPolicy maxmemory_policy = MaxmemoryPolicy::kNoEviction;
  int lfu_log_factor = 10;  // the larger, the less a use counts
  int lfu_decay_time = 1;   // minutes without a use that take one off; 0: never

  // Threads
  int reader_threads = 10;  // 0: as many as the disk is worth
  ReadIo read_io = ReadIo::kAuto;

  // Durability
  AppendFsync appendfsync = AppendFsync::kEverysec;

  // General
  bool daemonize = false;
  Supervised supervised = Supervised::kNo;
  std::string pidfile;  // empty: none
  LogLevel loglevel = LogLevel::kNotice;
  std::string logfile;          // empty: standard output
  bool syslog_enabled = false;  // the log goes there, too
  std::string syslog_ident = "redis";
  int syslog_facility = LOG_LOCAL0;
  bool crash_log_enabled = true;
  int databases = 16;
  bool disable_thp = true;
  bool set_proc_title = true;
  std::string proc_title_template = "{title} {listen-addr} {server-mode}";
  OomScoreAdj oom_score_adj = OomScoreAdj::kNo;
  // Of a master, of a replica, and of Redis' children.
  std::array<int, 3> oom_score_adj_values{0, 200, 800};

  // Security
  std::string requirepass;                      // empty: no password
  std::vector<std::vector<std::string>> users;  // "user" lines: a name and its rules
  std::string aclfile;                          // from `dir` on; empty: none
  uint64_t acllog_max_len = 128;
  AclPubsub acl_pubsub_default = AclPubsub::kResetChannels;
  // rename-command: from, to ("" removes). Checked against the command table by the server.
  std::vector<std::pair<std::string, std::string>> renamed_commands;
  Permission enable_debug_command = Permission::kNo;
  Permission enable_module_command = Permission::kNo;
  Permission enable_protected_configs = Permission::kNo;

  // Following a master
  MasterAddress master;
  std::string bind_source_addr;          // this end of the link; empty: as the system chooses
  std::string masteruser;                // empty: the password alone
  std::string masterauth;                // empty: nobody authenticates
  bool replica_serve_stale_data = true;  // also while the link to the master is down
  bool replica_read_only = true;
  bool replica_announced = true;    // Sentinel tells of it
  std::string replica_announce_ip;  // empty: as the master sees it
  int replica_announce_port = 0;    // 0: `port`, or `tls_port` with tls_replication
  int replica_priority = 100;
  bool tls_replication = false;
  std::string tls_client_cert_file;  // empty: tls_cert_file and its key
  std::string tls_client_key_file;
  std::string tls_client_key_file_pass;

  // Larger hashes, lists, sets and sorted sets leave their key's record for a collection.
  uint64_t inline_max_bytes = 1024;

  // Where Redis changes the encoding of a value, for OBJECT ENCODING
  uint64_t hash_max_listpack_entries = 512;
  uint64_t hash_max_listpack_value = 64;
  int list_max_listpack_size = -2;
  uint64_t set_max_intset_entries = 512;
  uint64_t zset_max_listpack_entries = 128;
  uint64_t zset_max_listpack_value = 64;
  uint64_t hll_sparse_max_bytes = 3000;
  uint64_t stream_node_max_bytes = 4096;
  int64_t stream_node_max_entries = 100;

  // Scripts
  int64_t busy_reply_threshold_ms = 5000;  // others are answered BUSY then; 0: never

  // Observation
  int metrics_port = 0;                      // of /metrics; 0: none
  int64_t slowlog_log_slower_than = 10'000;  // microseconds; negative: nothing is logged
  int64_t slowlog_max_len = 128;
  int64_t latency_monitor_threshold = 0;  // ms; 0: off
  bool latency_tracking = true;           // of each command
  std::vector<double> latency_tracking_percentiles = {50, 99, 99.9};
  uint32_t notify_keyspace_events = 0;           // bits of namespace notify
  uint64_t tracking_table_max_keys = 1'000'000;  // 0: as many as memory allows

  uint64_t repl_backlog_size = 1 << 20;
  int64_t repl_backlog_ttl = 3600;        // seconds; 0: the stream of changes stays on for ever
  int64_t repl_timeout = 60;              // seconds
  int64_t repl_ping_replica_period = 10;  // seconds
  int64_t shutdown_timeout = 10;          // seconds for replicas to catch up
  std::string shutdown_on_sigint = "default";
  std::string shutdown_on_sigterm = "default";
  int64_t write_acks = 0;             // replicas that have a change before it is answered
  int64_t write_acks_timeout = 3000;  // milliseconds
  int64_t min_replicas_to_write = 0;  // 0: none need be there
  int64_t min_replicas_max_lag = 10;  // seconds

  // Grows whenever CONFIG SET names a setting that is kVolatile.
  uint64_t volatile_changes = 0;

  // Settings of Redis that mean nothing here, by name, where they differ from their default.
  std::map<std::string, std::string, std::less<>> kept;
};

// The engine's files.
inline std::string data_path(const Settings& settings) {
  return (std::filesystem::path(settings.dir) / "ingot-data").string();
}
// The last of what replicas were told.
inline std::string backlog_path(const Settings& settings) {
  return (std::filesystem::path(settings.dir) / "ingot-backlog").string();
}
// The directory that SAVE and BGSAVE write their checkpoint to; those before it have a number
// behind it. Not dbfilename itself, which may be a file of Redis that somebody still wants.
inline std::string checkpoint_path(const Settings& settings) {
  return (std::filesystem::path(settings.dir) / (settings.dbfilename + ".checkpoint")).string();
}

}  // namespace ingot::settings
