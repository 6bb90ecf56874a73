// The list of all families.
#include "src/commands/families.h"

namespace ingot::commands {

std::vector<std::span<const contract::CommandRow>> all_families() {
  return {acl_rows(),          bitfield_rows(),       bitmap_rows(),
          client_rows(),       cluster_rows(),        command_rows(),
          config_rows(),       connection_rows(),     debug_rows(),
          dump_rows(),         eval_rows(),           expire_rows(),
          function_rows(),     generic_rows(),        geo_rows(),
          geo_search_rows(),   hash_all_rows(),       hash_expire_rows(),
          hash_numeric_rows(), hash_random_rows(),    hash_rows(),
          hyperloglog_rows(),  keyspace_admin_rows(), latency_rows(),
          lcs_rows(),          list_move_rows(),      list_rows(),
          lolwut_rows(),       memory_rows(),         migrate_rows(),
          module_rows(),       monitor_rows(),        object_rows(),
          pubsub_rows(),       scan_rows(),           script_rows(),
          server_rows(),       set_algebra_rows(),    set_random_rows(),
          set_rows(),          slowlog_rows(),        sort_rows(),
          stream_group_rows(), stream_info_rows(),    stream_pending_rows(),
          stream_read_rows(),  stream_rows(),         string_numeric_rows(),
          string_range_rows(), string_rows(),         transaction_rows(),
          zset_algebra_rows(), zset_pop_rows(),       zset_range_rows(),
          zset_rows(),         zset_walk_rows()};
}

}  // namespace ingot::commands
