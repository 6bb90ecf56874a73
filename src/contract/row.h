// One command is one row: everything that anybody asks of it, and the function that runs it.
// COMMAND, COMMAND DOCS, key extraction, routing and permission all derive from the row.
// Rows are constant data with static lifetime; any thread reads them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace ingot::script {
class Scripts;
}

namespace ingot::contract {

class ReadContext;
class WriteContext;
class SessionContext;
using Args = std::span<const std::string_view>;  // args[0] is the command's name

// What a handler may do is its parameter type; routing follows from it.
using ReadHandler = void (*)(ReadContext&, Args);        // reads one state of the data
using WriteHandler = void (*)(WriteContext&, Args);      // runs in the writer
using SessionHandler = void (*)(SessionContext&, Args);  // the connection and the server; no data
// Carried out by the session itself, because they change how commands flow.
enum class Control : uint8_t { kExec };
using Handler = std::variant<std::monostate, ReadHandler, WriteHandler, SessionHandler, Control>;

// Redis' command flags, as COMMAND INFO names them (flag_name).
namespace flag {
enum : uint32_t {
  kWrite = 1u << 0,
  kReadonly = 1u << 1,
  kDenyOom = 1u << 2,
  kAdmin = 1u << 3,
  kPubsub = 1u << 4,
  kNoScript = 1u << 5,
  kBlocking = 1u << 6,
  kLoading = 1u << 7,
  kStale = 1u << 8,
  kSkipMonitor = 1u << 9,
  kSkipSlowlog = 1u << 10,
  kAsking = 1u << 11,
  kFast = 1u << 12,
  kNoAuth = 1u << 13,
  kMayReplicate = 1u << 14,
  kNoMandatoryKeys = 1u << 15,
  kNoAsyncLoading = 1u << 16,
  kNoMulti = 1u << 17,
  kMovableKeys = 1u << 18,
  kAllowBusy = 1u << 19,
};
}  // namespace flag

// ACL categories, as COMMAND INFO names them ("@string").
namespace acl {
enum : uint32_t {
  kKeyspace = 1u << 0,
  kRead = 1u << 1,
  kWrite = 1u << 2,
  kSet = 1u << 3,
  kSortedSet = 1u << 4,
  kList = 1u << 5,
  kHash = 1u << 6,
  kString = 1u << 7,
  kBitmap = 1u << 8,
  kHyperLogLog = 1u << 9,
  kGeo = 1u << 10,
  kStream = 1u << 11,
  kPubsub = 1u << 12,
  kAdmin = 1u << 13,
  kFast = 1u << 14,
  kSlow = 1u << 15,
  kBlocking = 1u << 16,
  kDangerous = 1u << 17,
  kConnection = 1u << 18,
  kTransaction = 1u << 19,
  kScripting = 1u << 20,
};
// By their bits.
inline constexpr std::array<std::string_view, 21> kNames = {
    "@keyspace",   "@read",        "@write",    "@set",         "@sortedset", "@list",
    "@hash",       "@string",      "@bitmap",   "@hyperloglog", "@geo",       "@stream",
    "@pubsub",     "@admin",       "@fast",     "@slow",        "@blocking",  "@dangerous",
    "@connection", "@transaction", "@scripting"};
}  // namespace acl

// What a command does with the keys of one specification, as COMMAND INFO names it.
namespace key {
enum : uint32_t {
  kRo = 1u << 0,
  kRw = 1u << 1,
  kOw = 1u << 2,
  kRm = 1u << 3,
  kAccess = 1u << 4,
  kUpdate = 1u << 5,
  kInsert = 1u << 6,
  kDelete = 1u << 7,
  kNotKey = 1u << 8,
  kIncomplete = 1u << 9,
  kVariableFlags = 1u << 10,
  kUnread = 1u << 11,  // not Redis': what the key held may stay unread
};
}  // namespace key

// An option and how many arguments are its own.
struct OptionWord {
  std::string_view word;
  int values = 0;
};

// Where keys stand among the arguments (Redis 7.0's key specifications).
struct KeySpec {
  uint32_t flags = 0;
  // Where they begin: at an index, or after a keyword among options (see below), which COMMAND says
  // is searched from an index (negative: from the end).
  std::string_view keyword;  // empty: at `begin`
  int begin = 0;
  // Which they are: a range up to `last` (relative to the first; -1: the last argument, -2 the one
  // before), or counted by an argument. kUnknown: COMMAND tells nobody; the one key behind the last
  // `keyword`, or keys that the arguments do not tell.
  enum class Find : uint8_t { kRange, kKeyCount, kUnknown } find = Find::kRange;
  int last = 0;       // range; for kKeyCount: index of the count, relative to the beginning
  int first_key = 0;  // kKeyCount: index of the first key, relative to the beginning
  int step = 1;
  int limit = 0;  // range to the end divided by it; 0: all
  std::string_view notes;
  // With a keyword: where the options begin among which it stands (it itself not before `begin`),
  // and those whose arguments may read like it.
  int options_begin = 1;
  std::span<const OptionWord> options = {};
};

// A list of specifications that a constant row can hold by value.
class KeySpecs {
 public:
  constexpr KeySpecs() = default;
  constexpr KeySpecs(std::initializer_list<KeySpec> specs) {
    for (const KeySpec& spec : specs) specs_[count_++] = spec;
  }
  constexpr const KeySpec* begin() const { return specs_.data(); }
  constexpr const KeySpec* end() const { return specs_.data() + count_; }
  constexpr size_t size() const { return count_; }

 private:
  std::array<KeySpec, 3> specs_{};
  size_t count_ = 0;
};

// Which arguments are channels that the command publishes to or listens on. (Nobody is kept from
// leaving a channel.)
enum class ChannelArguments : uint8_t { kNone, kFirst, kAll, kAllPatterns };

// What only those may call whom a setting lets.
enum class Guard : uint8_t { kNone, kDebug, kModules };  // enable-debug-command, ...-module-command

constexpr KeySpec key_at(int index, uint32_t flags) {
  return {.flags = flags, .begin = index};
}
// From argument `first` to `last` (negative: from the end), every `step`th.
constexpr KeySpec keys_between(int first, int last, int step, uint32_t flags) {
  return {.flags = flags, .begin = first, .last = last, .step = step};
}

constexpr KeySpec keys_unknown(uint32_t flags, std::string_view notes,
                               std::string_view keyword = {}, int options_begin = 1,
                               std::span<const OptionWord> options = {}) {
  return {.flags = flags,
          .keyword = keyword,
          .begin = -2,
          .find = KeySpec::Find::kUnknown,
          .notes = notes,
          .options_begin = options_begin,
          .options = options};
}

inline constexpr std::string_view kNoComplexity = "-";

struct CommandRow {
  std::string_view name;  // lower case; of a subcommand the part after the container's
  int arity = 0;          // with the name; negative: at least
  uint32_t flags = 0;
  uint32_t acl = 0;
  KeySpecs keys;
  std::string_view group;  // as COMMAND DOCS names it: "string", "generic", ...
  std::string_view since;
  std::string_view complexity;  // kNoComplexity where Redis tells none either
  std::string_view summary;
  std::string_view deprecated_since;  // empty: it is not
  std::string_view replaced_by;
  // Our compact forms of lists, parsed only by COMMAND (see commands/command_docs.cc):
  std::string_view history;  // "6.2.0: Added the `GET` option.; 7.0.0: ..."
  std::string_view tips;     // comma separated
  // Nodes "name:type[=TOKEN][#key spec][@since][?][*][+][!deprecated since][(nodes)]", with spaces
  // between; ? optional, * multiple, + multiple with the token each time.
  std::string_view arguments;
  Handler handler;
  std::span<const CommandRow> subcommands;
  // What a key::kVariableFlags specification comes to for these arguments.
  uint32_t (*key_flags)(Args) = nullptr;
  ChannelArguments channels = ChannelArguments::kNone;
  // Of a command that can read keys which its arguments do not name: what it answers who may not
  // read every key; empty when these arguments name all.
  std::string (*unnamed_keys_error)(Args) = nullptr;

  // A row of the same command that takes these arguments instead, or null: what reads in one form
  // and writes or waits in another. It differs in how it is run alone.
  const CommandRow* (*instead)(Args) = nullptr;
  const CommandRow* base = nullptr;  // of such a row: the one in the table
  // Answered at once, before earlier commands of the connection are: it depends on none of them.
  bool immediate = false;
  // What its connection has sent behind it waits until it is answered.
  bool alone = false;
  // Waits as those with flag::kBlocking do, which Redis does not tell of it.
  bool blocks = false;
  // Answers with pushes, or with all that a replica is told: CLIENT REPLY does not silence that.
  bool pushes = false;
  // A subscriber may send it under RESP2.
  bool from_subscribers = false;
  // May take long (a checkpoint, a sleep): runs in the pool while its connection waits.
  bool offload = false;
  // A read that walks an unbounded part of the data: straight to the pool, no probe.
  bool scans = false;
  // A read that tells whether what has expired is still there: after the reads before it, which
  // remove that.
  bool after_reads = false;
  // What it finds counts as hit or missed, although it writes. (Of rows that make one key of
  // others, and of those that only read, that is derived.)
  bool counts_lookups = false;
  Guard guard = Guard::kNone;
  // For tests and other servers, not for applications.
  bool is_internal = false;
  // Calls commands by its context's caller, for as long as it likes.
  bool runs_script = false;
  // Its row when what it runs is known to write nothing, or null.
  const CommandRow* (*if_script_reads)(const script::Scripts&, Args) = nullptr;
  // The argument that holds a value to store, which may be in the engine already when it is large;
  // 0: none.
  int value_index = 0;
  // Where a command that changes some members of its first key's collection names them: whoever
  // is about to run it may fetch them ahead.
  struct Members {
    uint8_t first = 0;  // 0: nowhere
    uint8_t step = 1;
  };
  Members members = {};
};

// For CommandRow::instead. `row` is one of the table's.
constexpr CommandRow variant_of(const CommandRow& row, Handler handler) {
  CommandRow variant = row;
  variant.handler = handler;
  variant.base = &row;
  return variant;
}

// The one in the table, which statistics count.
inline const CommandRow& listed_row(const CommandRow& row) {
  return row.base != nullptr ? *row.base : row;
}

constexpr bool is_read(const CommandRow& row) {
  return std::holds_alternative<ReadHandler>(row.handler);
}
constexpr bool is_write(const CommandRow& row) {
  return std::holds_alternative<WriteHandler>(row.handler);
}
constexpr bool is_session(const CommandRow& row) {
  return std::holds_alternative<SessionHandler>(row.handler);
}
constexpr bool may_block(const CommandRow& row) {
  return row.blocks || (row.flags & flag::kBlocking) != 0;
}
constexpr bool is_exec(const CommandRow& row) {
  return std::holds_alternative<Control>(row.handler);
}

}  // namespace ingot::contract
