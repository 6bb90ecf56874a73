// CLUSTER READONLY READWRITE ASKING, as a Redis without cluster mode answers them.
#include "src/commands/families.h"
#include "src/contract/context.h"

namespace ingot::commands {
namespace {

using contract::Args;
using contract::CommandRow;
using contract::SessionContext;

void refuse(SessionContext& context, Args) {
  context.reply.error("ERR This instance has cluster support disabled");
}

namespace flag = contract::flag;
namespace acl = contract::acl;

// Subcommands that look, and those that change the cluster or tell its administrator more.
constexpr CommandRow looks(CommandRow row) {
  row.flags = flag::kStale;
  row.handler = refuse;
  return row;
}
constexpr CommandRow administers(CommandRow row, uint32_t flags = flag::kNoAsyncLoading) {
  row = looks(row);
  row.flags |= flag::kAdmin | flags;
  return row;
}

constexpr std::string_view kVaries = "nondeterministic_output";
constexpr std::string_view kByNodes = "O(N), N being the nodes of the cluster";
constexpr std::string_view kBySlots = "O(N), N being the slots named";
constexpr std::string_view kSlotRanges =
    "start-slot_end-slot:block*(start-slot:integer end-slot:integer)";

constexpr CommandRow kSubcommandTable[] = {
    administers({.name = "addslots",
                 .arity = -3,
                 .since = "3.0.0",
                 .complexity = kBySlots,
                 .summary = "Give slots to this node",
                 .arguments = "slot:integer*"}),
    administers({.name = "addslotsrange",
                 .arity = -4,
                 .since = "7.0.0",
                 .complexity = kBySlots,
                 .summary = "Give ranges of slots to this node",
                 .arguments = kSlotRanges}),
    administers({.name = "bumpepoch",
                 .arity = 2,
                 .since = "3.0.0",
                 .complexity = "O(1)",
                 .summary = "Move the configuration epoch on",
                 .tips = kVaries}),
    administers({.name = "count-failure-reports",
                 .arity = 3,
                 .since = "3.0.0",
                 .complexity = "O(N), N being the reports",
                 .summary = "How many nodes report that a node fails",
                 .tips = kVaries,
                 .arguments = "node-id:string"},
                0),
    looks({.name = "countkeysinslot",
           .arity = 3,
           .since = "3.0.0",
           .complexity = "O(1)",
           .summary = "How many keys a slot holds on this node",
           .arguments = "slot:integer"}),
    administers({.name = "delslots",
                 .arity = -3,
                 .since = "3.0.0",
                 .complexity = kBySlots,
                 .summary = "Take slots from this node",
                 .arguments = "slot:integer*"}),
    administers({.name = "delslotsrange",
                 .arity = -4,
                 .since = "7.0.0",
                 .complexity = kBySlots,
                 .summary = "Take ranges of slots from this node",
                 .arguments = kSlotRanges}),
    administers(
        {.name = "failover",
         .arity = -2,
         .since = "3.0.0",
         .complexity = "O(1)",
         .summary = "Let this replica take its master's place",
         .arguments = "options:oneof?(force:pure-token=FORCE takeover:pure-token=TAKEOVER)"}),
    administers({.name = "flushslots",
                 .arity = 2,
                 .since = "3.0.0",
                 .complexity = "O(1)",
                 .summary = "Take all slots from this node"}),
    administers({.name = "forget",
                 .arity = 3,
                 .since = "3.0.0",
                 .complexity = "O(1)",
                 .summary = "Strike a node off the list",
                 .arguments = "node-id:string"}),
    looks({.name = "getkeysinslot",
           .arity = 4,
           .since = "3.0.0",
           .complexity = "O(N), N being the keys asked for",
           .summary = "Some of a slot's keys on this node",
           .tips = kVaries,
           .arguments = "slot:integer count:integer"}),
    looks({.name = "info",
           .arity = 2,
           .since = "3.0.0",
           .complexity = "O(1)",
           .summary = "How this node sees the cluster",
           .tips = kVaries}),
    looks({.name = "keyslot",
           .arity = 3,
           .since = "3.0.0",
           .complexity = "O(N), N being the bytes of the key",
           .summary = "The slot of a key",
           .arguments = "key:string"}),
    looks({.name = "links",
           .arity = 2,
           .since = "7.0.0",
           .complexity = kByNodes,
           .summary = "The connections between this node and the others",
           .tips = kVaries}),
    administers({.name = "meet",
                 .arity = -4,
                 .since = "3.0.0",
                 .complexity = "O(1)",
                 .summary = "Make another node known to this one",
                 .history = "4.0.0: The argument `cluster_bus_port`.",
                 .arguments = "ip:string port:integer cluster_bus_port:integer@4.0.0?"}),
    looks({.name = "myid",
           .arity = 2,
           .since = "3.0.0",
           .complexity = "O(1)",
           .summary = "The name of this node"}),
    looks({.name = "nodes",
           .arity = 2,
           .since = "3.0.0",
           .complexity = kByNodes,
           .summary = "All nodes with their slots, one a line",
           .tips = kVaries}),
    administers({.name = "replicas",
                 .arity = 3,
                 .since = "5.0.0",
                 .complexity = "O(1)",
                 .summary = "The replicas of a master",
                 .tips = kVaries,
                 .arguments = "node-id:string"},
                0),
    administers({.name = "replicate",
                 .arity = 3,
                 .since = "3.0.0",
                 .complexity = "O(1)",
                 .summary = "Make this node a replica of another",
                 .arguments = "node-id:string"}),
    administers({.name = "reset",
                 .arity = -2,
                 .since = "3.0.0",
                 .complexity = kByNodes,
                 .summary = "Make this node forget its cluster",
                 .arguments = "hard_soft:oneof?(hard:pure-token=HARD soft:pure-token=SOFT)"},
                flag::kNoScript),
    administers({.name = "saveconfig",
                 .arity = 2,
                 .since = "3.0.0",
                 .complexity = "O(1)",
                 .summary = "Write the node's state to its file"}),
    administers({.name = "set-config-epoch",
                 .arity = 3,
                 .since = "3.0.0",
                 .complexity = "O(1)",
                 .summary = "Set the epoch of a new node",
                 .arguments = "config-epoch:integer"}),
    administers({.name = "setslot",
                 .arity = -4,
                 .since = "3.0.0",
                 .complexity = "O(1)",
                 .summary = "Say to which node a slot belongs or moves",
                 .arguments = "slot:integer subcommand:oneof(node-id:string=IMPORTING "
                              "node-id:string=MIGRATING node-id:string=NODE "
                              "stable:pure-token=STABLE)"}),
    looks({.name = "shards",
           .arity = 2,
           .since = "7.0.0",
           .complexity = kByNodes,
           .summary = "Which nodes serve which slots, by shard",
           .tips = kVaries}),
    administers({.name = "slaves",
                 .arity = 3,
                 .since = "3.0.0",
                 .complexity = "O(1)",
                 .summary = "The old name of CLUSTER REPLICAS",
                 .deprecated_since = "5.0.0",
                 .replaced_by = "`CLUSTER REPLICAS`",
                 .tips = kVaries,
                 .arguments = "node-id:string"},
                0),
    looks({.name = "slots",
           .arity = 2,
           .since = "3.0.0",
           .complexity = kByNodes,
           .summary = "Which nodes serve which slots, by range",
           .deprecated_since = "7.0.0",
           .replaced_by = "`CLUSTER SHARDS`",
           .history = "4.0.0: The nodes' names.; 7.0.0: More about each node's network.",
           .tips = kVaries}),
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "A short text about each subcommand",
     .handler = refuse},
};
constexpr auto kSubcommands = contract::family(kClusterFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "cluster",
     .arity = -2,
     .since = "3.0.0",
     .complexity = "That of the subcommand",
     .summary = "Commands about a cluster, which this server never is part of",
     .subcommands = kSubcommands},
    {.name = "readonly",
     .arity = 1,
     .flags = flag::kLoading | flag::kStale | flag::kFast,
     .acl = acl::kConnection,
     .since = "3.0.0",
     .complexity = "O(1)",
     .summary = "Allow this connection to read from a cluster's replica",
     .handler = refuse},
    {.name = "readwrite",
     .arity = 1,
     .flags = flag::kLoading | flag::kStale | flag::kFast,
     .acl = acl::kConnection,
     .since = "3.0.0",
     .complexity = "O(1)",
     .summary = "Undo READONLY",
     .handler = refuse},
    {.name = "asking",
     .arity = 1,
     .flags = flag::kFast,
     .acl = acl::kConnection,
     .since = "3.0.0",
     .complexity = "O(1)",
     .summary = "Announce that the next command follows an -ASK redirection",
     .handler = refuse},
};
constexpr auto kRows = contract::family(kClusterFamily, kTable);

}  // namespace

std::span<const CommandRow> cluster_rows() {
  return kRows;
}

}  // namespace ingot::commands
