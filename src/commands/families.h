// The families of commands: each file of this folder exports its rows here; families.cc is the one
// list of them.
#pragma once

#include <span>
#include <vector>

#include "src/commands/vocabulary.h"

namespace ingot::commands {

// What the rows of a group have in common.
inline constexpr contract::Family kBitmapFamily{"bitmap", acl::kBitmap};
inline constexpr contract::Family kClusterFamily{"cluster"};
inline constexpr contract::Family kConnectionFamily{"connection", acl::kConnection};
inline constexpr contract::Family kGenericFamily{"generic", acl::kKeyspace};
inline constexpr contract::Family kGeoFamily{"geo", acl::kGeo};
inline constexpr contract::Family kHashFamily{"hash", acl::kHash};
inline constexpr contract::Family kHyperLogLogFamily{"hyperloglog", acl::kHyperLogLog};
inline constexpr contract::Family kListFamily{"list", acl::kList};
inline constexpr contract::Family kPubsubFamily{"pubsub"};
inline constexpr contract::Family kScriptingFamily{"scripting", acl::kScripting};
inline constexpr contract::Family kServerFamily{"server"};
inline constexpr contract::Family kSetFamily{"set", acl::kSet};
inline constexpr contract::Family kSortedSetFamily{"sorted-set", acl::kSortedSet};
inline constexpr contract::Family kStreamFamily{"stream", acl::kStream};
inline constexpr contract::Family kStringFamily{"string", acl::kString};
inline constexpr contract::Family kTransactionsFamily{"transactions", acl::kTransaction};

std::span<const CommandRow> acl_rows();
std::span<const CommandRow> bitfield_rows();
std::span<const CommandRow> bitmap_rows();
std::span<const CommandRow> client_rows();
std::span<const CommandRow> cluster_rows();
std::span<const CommandRow> command_rows();
std::span<const CommandRow> config_rows();
std::span<const CommandRow> connection_rows();
std::span<const CommandRow> debug_rows();
std::span<const CommandRow> dump_rows();
std::span<const CommandRow> eval_rows();
std::span<const CommandRow> expire_rows();
std::span<const CommandRow> function_rows();
std::span<const CommandRow> generic_rows();
std::span<const CommandRow> geo_rows();
std::span<const CommandRow> geo_search_rows();
std::span<const CommandRow> hash_all_rows();
std::span<const CommandRow> hash_expire_rows();
std::span<const CommandRow> hash_numeric_rows();
std::span<const CommandRow> hash_random_rows();
std::span<const CommandRow> hash_rows();
std::span<const CommandRow> hyperloglog_rows();
std::span<const CommandRow> keyspace_admin_rows();
std::span<const CommandRow> lcs_rows();
std::span<const CommandRow> list_move_rows();
std::span<const CommandRow> list_rows();
std::span<const CommandRow> latency_rows();
std::span<const CommandRow> lolwut_rows();
std::span<const CommandRow> memory_rows();
std::span<const CommandRow> migrate_rows();
std::span<const CommandRow> module_rows();
std::span<const CommandRow> monitor_rows();
std::span<const CommandRow> psync_rows();
std::span<const CommandRow> object_rows();
std::span<const CommandRow> pubsub_rows();
std::span<const CommandRow> scan_rows();
std::span<const CommandRow> script_rows();
std::span<const CommandRow> server_rows();
std::span<const CommandRow> set_algebra_rows();
std::span<const CommandRow> set_random_rows();
std::span<const CommandRow> set_rows();
std::span<const CommandRow> slowlog_rows();
std::span<const CommandRow> sort_rows();
std::span<const CommandRow> stream_group_rows();
std::span<const CommandRow> stream_info_rows();
std::span<const CommandRow> stream_pending_rows();
std::span<const CommandRow> stream_read_rows();
std::span<const CommandRow> stream_rows();
std::span<const CommandRow> string_numeric_rows();
std::span<const CommandRow> string_range_rows();
std::span<const CommandRow> string_rows();
std::span<const CommandRow> transaction_rows();
std::span<const CommandRow> zset_algebra_rows();
std::span<const CommandRow> zset_pop_rows();
std::span<const CommandRow> zset_range_rows();
std::span<const CommandRow> zset_rows();
std::span<const CommandRow> zset_walk_rows();

std::vector<std::span<const CommandRow>> all_families();

}  // namespace ingot::commands
