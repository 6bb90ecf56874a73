// The families of commands: each file of this folder exports its rows here; families.cc is the one
// list of them.
#pragma once

#include <span>
#include <vector>

#include "src/contract/family.h"
#include "src/contract/row.h"

namespace ingot::commands {

// What the rows of a group have in common.
inline constexpr contract::Family kBitmapFamily{"bitmap", contract::acl::kBitmap};
inline constexpr contract::Family kClusterFamily{"cluster"};
inline constexpr contract::Family kConnectionFamily{"connection", contract::acl::kConnection};
inline constexpr contract::Family kGenericFamily{"generic", contract::acl::kKeyspace};
inline constexpr contract::Family kGeoFamily{"geo", contract::acl::kGeo};
inline constexpr contract::Family kHashFamily{"hash", contract::acl::kHash};
inline constexpr contract::Family kHyperLogLogFamily{"hyperloglog", contract::acl::kHyperLogLog};
inline constexpr contract::Family kListFamily{"list", contract::acl::kList};
inline constexpr contract::Family kServerFamily{"server"};
inline constexpr contract::Family kSetFamily{"set", contract::acl::kSet};
inline constexpr contract::Family kSortedSetFamily{"sorted-set", contract::acl::kSortedSet};
inline constexpr contract::Family kStreamFamily{"stream", contract::acl::kStream};
inline constexpr contract::Family kStringFamily{"string", contract::acl::kString};
inline constexpr contract::Family kTransactionsFamily{"transactions", contract::acl::kTransaction};

std::span<const contract::CommandRow> bitfield_rows();
std::span<const contract::CommandRow> bitmap_rows();
std::span<const contract::CommandRow> client_rows();
std::span<const contract::CommandRow> cluster_rows();
std::span<const contract::CommandRow> command_rows();
std::span<const contract::CommandRow> config_rows();
std::span<const contract::CommandRow> connection_rows();
std::span<const contract::CommandRow> debug_rows();
std::span<const contract::CommandRow> dump_rows();
std::span<const contract::CommandRow> expire_rows();
std::span<const contract::CommandRow> generic_rows();
std::span<const contract::CommandRow> geo_rows();
std::span<const contract::CommandRow> geo_search_rows();
std::span<const contract::CommandRow> hash_all_rows();
std::span<const contract::CommandRow> hash_expire_rows();
std::span<const contract::CommandRow> hash_numeric_rows();
std::span<const contract::CommandRow> hash_random_rows();
std::span<const contract::CommandRow> hash_rows();
std::span<const contract::CommandRow> hyperloglog_rows();
std::span<const contract::CommandRow> keyspace_admin_rows();
std::span<const contract::CommandRow> lcs_rows();
std::span<const contract::CommandRow> list_move_rows();
std::span<const contract::CommandRow> list_rows();
std::span<const contract::CommandRow> memory_rows();
std::span<const contract::CommandRow> migrate_rows();
std::span<const contract::CommandRow> object_rows();
std::span<const contract::CommandRow> scan_rows();
std::span<const contract::CommandRow> server_rows();
std::span<const contract::CommandRow> set_algebra_rows();
std::span<const contract::CommandRow> set_random_rows();
std::span<const contract::CommandRow> set_rows();
std::span<const contract::CommandRow> sort_rows();
std::span<const contract::CommandRow> stream_group_rows();
std::span<const contract::CommandRow> stream_info_rows();
std::span<const contract::CommandRow> stream_pending_rows();
std::span<const contract::CommandRow> stream_read_rows();
std::span<const contract::CommandRow> stream_rows();
std::span<const contract::CommandRow> string_numeric_rows();
std::span<const contract::CommandRow> string_range_rows();
std::span<const contract::CommandRow> string_rows();
std::span<const contract::CommandRow> transaction_rows();
std::span<const contract::CommandRow> zset_algebra_rows();
std::span<const contract::CommandRow> zset_pop_rows();
std::span<const contract::CommandRow> zset_range_rows();
std::span<const contract::CommandRow> zset_rows();
std::span<const contract::CommandRow> zset_walk_rows();

std::vector<std::span<const contract::CommandRow>> all_families();

}  // namespace ingot::commands
