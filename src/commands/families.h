// The families of commands: each file of this folder exports its rows here; families.cc is the one
// list of them.
#pragma once

#include <span>
#include <vector>

#include "src/command/row.h"

namespace ingot::commands {

std::span<const command::CommandRow> bitfield_rows();
std::span<const command::CommandRow> bitmap_rows();
std::span<const command::CommandRow> client_rows();
std::span<const command::CommandRow> cluster_rows();
std::span<const command::CommandRow> command_rows();
std::span<const command::CommandRow> config_rows();
std::span<const command::CommandRow> connection_rows();
std::span<const command::CommandRow> debug_rows();
std::span<const command::CommandRow> dump_rows();
std::span<const command::CommandRow> expire_rows();
std::span<const command::CommandRow> generic_rows();
std::span<const command::CommandRow> geo_rows();
std::span<const command::CommandRow> geo_search_rows();
std::span<const command::CommandRow> hash_all_rows();
std::span<const command::CommandRow> hash_expire_rows();
std::span<const command::CommandRow> hash_numeric_rows();
std::span<const command::CommandRow> hash_random_rows();
std::span<const command::CommandRow> hash_rows();
std::span<const command::CommandRow> hyperloglog_rows();
std::span<const command::CommandRow> keyspace_admin_rows();
std::span<const command::CommandRow> lcs_rows();
std::span<const command::CommandRow> list_move_rows();
std::span<const command::CommandRow> list_rows();
std::span<const command::CommandRow> memory_rows();
std::span<const command::CommandRow> migrate_rows();
std::span<const command::CommandRow> object_rows();
std::span<const command::CommandRow> scan_rows();
std::span<const command::CommandRow> server_rows();
std::span<const command::CommandRow> set_algebra_rows();
std::span<const command::CommandRow> set_random_rows();
std::span<const command::CommandRow> set_rows();
std::span<const command::CommandRow> sort_rows();
std::span<const command::CommandRow> stream_group_rows();
std::span<const command::CommandRow> stream_info_rows();
std::span<const command::CommandRow> stream_pending_rows();
std::span<const command::CommandRow> stream_read_rows();
std::span<const command::CommandRow> stream_rows();
std::span<const command::CommandRow> string_numeric_rows();
std::span<const command::CommandRow> string_range_rows();
std::span<const command::CommandRow> string_rows();
std::span<const command::CommandRow> transaction_rows();
std::span<const command::CommandRow> zset_algebra_rows();
std::span<const command::CommandRow> zset_pop_rows();
std::span<const command::CommandRow> zset_range_rows();
std::span<const command::CommandRow> zset_rows();
std::span<const command::CommandRow> zset_walk_rows();

std::vector<std::span<const command::CommandRow>> all_families();

}  // namespace ingot::commands
