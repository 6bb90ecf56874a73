// The command table: look-up and Redis' errors, renaming, key positions, and that every row is
// sound.
#include "src/contract/table.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "src/commands/command_docs.h"
#include "src/commands/families.h"
#include "src/contract/capture.h"
#include "src/contract/context.h"
#include "src/contract/family.h"

namespace ingot::contract {
namespace {

using Words = std::vector<std::string_view>;
using Rename = std::pair<std::string, std::string>;
using Renames = std::vector<Rename>;
using std::string_view_literals::operator""sv;

void get(ReadContext&, Args) {}

constexpr CommandRow kBoxParts[] = {
    {.name = "open", .arity = 3, .handler = get},
    {.name = "list", .arity = -2, .handler = get},
};
constexpr CommandRow kRows[] = {
    {.name = "get", .arity = 2, .keys = {key_at(1, key::kRo)}, .handler = get},
    {.name = "box", .arity = -2, .subcommands = kBoxParts},
};
const std::span<const CommandRow> kFamilies[] = {kRows};

std::string error_of(const Table& table, const Words& words) {
  std::string error;
  (void)table.resolve(words, &error);
  return error;
}

TEST_CASE("commands are found in any case", "[table]") {
  Table table(kFamilies);
  std::string error;
  CHECK(table.find("gEt") == &kRows[0]);
  CHECK(table.find("ge") == nullptr);
  CHECK(table.find("") == nullptr);
  Words line = {"BOX", "Open", "x"};
  Resolved open = table.resolve(line, &error);
  CHECK(open.row == &kBoxParts[0]);
  CHECK(open.parent == &kRows[1]);
  CHECK(error.empty());
  CHECK(full_name(open.parent, *open.row) == "box|open");
}

TEST_CASE("an arity that does not fit", "[table]") {
  Table table(kFamilies);
  CHECK(error_of(table, {"GET"}) == "ERR wrong number of arguments for 'get' command");
  CHECK(error_of(table, {"GET", "a", "b"}) == "ERR wrong number of arguments for 'get' command");
  CHECK(error_of(table, {"box"}) == "ERR wrong number of arguments for 'box' command");
  CHECK(error_of(table, {"box", "OPEN"}) == "ERR wrong number of arguments for 'box|open' command");
  CHECK(error_of(table, {"box", "list"}).empty());
  CHECK(error_of(table, {"box", "list", "a", "b"}).empty());
}

TEST_CASE("unknown commands are answered in Redis' words", "[table]") {
  Table table(kFamilies);
  constexpr std::string_view kWith = "', with args beginning with: ";
  CHECK(error_of(table, {"Nope"}) == "ERR unknown command 'Nope" + std::string(kWith));
  CHECK(error_of(table, {"x\0y"sv, "a\0b"sv, "c"}) ==
        "ERR unknown command 'x" + std::string(kWith) + "'a' 'c' ");
  const std::string many(200, 'n');
  // 128 bytes of the name, and of the arguments with their quotes.
  CHECK(error_of(table, {many, std::string(120, 'a'), "bcdefghij", "never shown"}) ==
        "ERR unknown command '" + std::string(128, 'n') + std::string(kWith) + "'" +
            std::string(120, 'a') + "' 'bcdef' ");
  CHECK(error_of(table, {"Box", "x\0y"sv}) == "ERR unknown subcommand 'x'. Try BOX HELP.");
  CHECK(error_of(table, {"box", many}) ==
        "ERR unknown subcommand '" + std::string(128, 'n') + "'. Try BOX HELP.");
}

TEST_CASE("commands are renamed and removed", "[table]") {
  const std::string secret(128, 'S');
  Renames renames = {{"GET", secret}, {"box", "Get"}};
  REQUIRE_FALSE(Table::check_renames(kFamilies, renames));
  Table table(kFamilies, renames);
  CHECK(table.find(std::string(128, 's')) == &kRows[0]);
  CHECK(table.find("get") == &kRows[1]);
  CHECK(table.find("box") == nullptr);
  CHECK(table.rows().size() == 2);
  CHECK(error_of(table, {"get", "x"}) == "ERR unknown subcommand 'x'. Try GET HELP.");
  CHECK(error_of(table, {secret}) == "ERR wrong number of arguments for 'get' command");

  Renames removal = {{"get", ""}};
  REQUIRE_FALSE(Table::check_renames(kFamilies, removal));
  Table smaller(kFamilies, removal);
  CHECK(smaller.find("get") == nullptr);
  CHECK(smaller.rows() == std::vector{&kRows[1]});
}

TEST_CASE("renames that cannot be", "[table]") {
  auto check = [](Renames renames) { return Table::check_renames(kFamilies, renames); };
  CHECK(check({{"nope", "x"}}) == "No such command in rename-command: 'nope' to 'x'");
  CHECK(check({{"get", "BOX"}}) == "Target command name already exists: 'get' to 'BOX'");
  CHECK(check({{"get", "x"}, {"get", "y"}}) == "No such command in rename-command: 'get' to 'y'");
  CHECK(check({{"get", ""}, {"get", "y"}}) == "No such command in rename-command: 'get' to 'y'");
  CHECK_FALSE(check({{"get", "GET"}}));
  CHECK_FALSE(check({{"box", "b"}, {"get", "box"}}));
}

std::vector<size_t> indexes(const KeySpec& spec, const Words& words) {
  const CommandRow row = {.name = "x", .arity = -1, .keys = {spec}};
  std::vector<size_t> found;
  for (const KeyAt& key : keys_of(row, words)) {
    CHECK(key.flags == spec.flags);
    found.push_back(key.index);
  }
  return found;
}

TEST_CASE("where keys stand", "[table]") {
  using Found = std::vector<size_t>;
  const Words line = {"cmd", "a", "2", "b", "c", "STORE", "d"};
  CHECK(indexes(key_at(1, key::kRo), line) == Found{1});
  CHECK(indexes(key_at(7, key::kRo), line).empty());
  CHECK(indexes(keys_between(1, -1, 1, key::kRo), line) == Found{1, 2, 3, 4, 5, 6});
  CHECK(indexes(keys_between(1, -1, 2, key::kRw), line) == Found{1, 3, 5});
  CHECK(indexes(keys_between(1, -2, 1, key::kRw), line) == Found{1, 2, 3, 4, 5});
  CHECK(indexes(keys_between(1, 1, 1, key::kRw), line) == Found{1, 2});
  // The first half of what is left, as XREAD's.
  CHECK(indexes({.begin = 3, .last = -1, .limit = 2}, line) == Found{3, 4});
  // Behind a word among options.
  CHECK(indexes({.keyword = "store"}, line) == Found{6});
  CHECK(indexes({.keyword = "STORE", .options_begin = 6}, line).empty());
  CHECK(indexes({.keyword = "d"}, line).empty());
  // Counted, as EVAL's.
  KeySpec counted = {.begin = 2, .find = KeySpec::Find::kKeyCount, .last = 0, .first_key = 1};
  CHECK(indexes(counted, line) == Found{3, 4});
  CHECK(indexes(counted, {"cmd", "a", "9", "b"}).empty());
  CHECK(indexes(counted, {"cmd", "a", "0", "b"}).empty());
  CHECK(indexes(counted, {"cmd", "a", "-1", "b"}).empty());
  CHECK(indexes(counted, {"cmd", "a", "99999999999999999999999", "b"}).empty());
  CHECK(indexes(counted, {"cmd", "a"}).empty());
}

TEST_CASE("what reads like the word before a key is not taken for it", "[table]") {
  const auto families = commands::all_families();
  const Table table(families);
  const auto found = [&](const Words& words) {
    std::vector<std::string> keys;
    for (const KeyAt& key : keys_of(*table.find(words[0]), words))
      keys.emplace_back(words[key.index]);
    return keys;
  };
  using Keys = std::vector<std::string>;
  CHECK(found({"migrate", "h", "1", "k", "0", "1", "AUTH2", "KEYS", "other"}) == Keys{"k"});
  CHECK(found({"migrate", "h", "1", "k", "0", "1", "AUTH", "KEYS"}) == Keys{"k"});
  CHECK(found({"migrate", "h", "1", "KEYS", "0", "1", "COPY"}) == Keys{"KEYS"});
  CHECK(found({"migrate", "h", "1", "", "0", "1", "AUTH", "KEYS", "KEYS", "a", "KEYS"}) ==
        Keys{"a", "KEYS"});
  CHECK(found({"sort", "STORE", "alpha"}) == Keys{"STORE"});
  CHECK(found({"sort", "k", "by", "store", "get", "STORE", "store", "to"}) == Keys{"k", "to"});
  CHECK(found({"sort", "k", "store", "store"}) == Keys{"k", "store"});
  CHECK(found({"sort", "k", "store", "a", "store", "b"}) == Keys{"k", "b"});
  CHECK(found({"georadius", "k", "0", "0", "1", "m", "STORE", "a", "STORE", "b"}) ==
        Keys{"k", "b"});
  CHECK(found({"georadius", "k", "0", "0", "1", "m", "STORE", "STOREDIST"}) ==
        Keys{"k", "STOREDIST"});
  CHECK(found({"georadiusbymember", "k", "m", "1", "m", "STORE", "a", "STOREDIST", "b"}) ==
        Keys{"k", "a", "b"});
  CHECK(found({"xreadgroup", "COUNT", "1", "GROUP", "g", "STREAMS", "STREAMS", "k", ">"}) ==
        Keys{"k"});
  CHECK(found({"xread", "COUNT", "1", "STREAMS", "streams", "b", "0", "0"}) ==
        Keys{"streams", "b"});
}

// Every node of an argument tree as COMMAND DOCS shows it.
void check_arguments(const CommandRow& row, const Value& nodes) {
  static const std::set<std::string> kTypes = {
      "string", "integer", "double", "key", "pattern", "oneof", "block", "unix-time", "pure-token"};
  for (const Value& node : nodes.items) {
    INFO(printable(node));
    for (size_t i = 0; i < node.items.size(); i += 2) {
      const std::string& field = node.items[i].text;
      const Value& value = node.items[i + 1];
      if (field == "name") CHECK_FALSE(value.text.empty());
      if (field == "type") CHECK(kTypes.contains(value.text));
      if (field == "key_spec_index") {
        CHECK(value.integer < static_cast<int64_t>(row.keys.size()));
      }
      if (field == "arguments") check_arguments(row, value);
    }
  }
}

void check_row(const CommandRow& row, const CommandRow* parent) {
  INFO(full_name(parent, row));
  CHECK(row_problem(row).empty());

  CaptureSink sink;
  commands::reply_info(sink, parent, row);
  commands::reply_docs(sink, parent, row);
  REQUIRE(sink.complete());
  REQUIRE(sink.values().size() == 3);  // INFO; the name and the map of DOCS
  const Value& docs = sink.values()[2];
  for (size_t i = 0; i < docs.items.size(); i += 2) {
    if (docs.items[i].text == "arguments") check_arguments(row, docs.items[i + 1]);
  }
  for (const CommandRow& subcommand : row.subcommands) check_row(subcommand, &row);
}

// The rows are checked when they are compiled; that the check sees something is checked here.
TEST_CASE("rows that cannot be", "[table]") {
  const CommandRow good = {.name = "get",
                           .arity = 2,
                           .flags = flag::kReadonly,
                           .keys = {key_at(1, key::kRo)},
                           .group = "string",
                           .since = "1.0.0",
                           .complexity = "O(1)",
                           .summary = "A value",
                           .handler = get};
  CHECK(row_problem(good).empty());
  const auto problem_of = [&](auto change) {
    CommandRow row = good;
    change(row);
    return std::string(row_problem(row));
  };
  CHECK(problem_of([](CommandRow& row) { row.name = {}; }) == "it has no name");
  CHECK(problem_of([](CommandRow& row) { row.name = "Get"; }) == "its name is not in lower case");
  CHECK(problem_of([](CommandRow& row) { row.arity = 0; }) == "it has no arity");
  CHECK(problem_of([](CommandRow& row) { row.group = {}; }) == "it is not documented");
  CHECK(problem_of([](CommandRow& row) { row.complexity = {}; }) ==
        "its complexity is not documented");
  CHECK_FALSE(problem_of([](CommandRow& row) { row.deprecated_since = "7.0.0"; }).empty());
  CHECK(problem_of([](CommandRow& row) { row.handler = {}; }) == "nothing runs it");
  CHECK(problem_of([](CommandRow& row) { row.flags = flag::kWrite; }) ==
        "its handler cannot write");
  CHECK(problem_of([](CommandRow& row) { row.flags |= flag::kWrite; }) ==
        "it reads only, and writes");
  CHECK(problem_of([](CommandRow& row) { row.immediate = true; }) ==
        "what is immediate touches no data");
  CHECK(problem_of([](CommandRow& row) { row.keys = {key_at(2, key::kRo)}; }) ==
        "its keys lie behind its arguments");
  CHECK(problem_of([](CommandRow& row) { row.value_index = 2; }) ==
        "its value lies behind its arguments");
}

TEST_CASE("what follows from flags is derived", "[table]") {
  static constexpr CommandRow kListed[] = {
      {.name = "look",
       .arity = 2,
       .flags = flag::kReadonly | flag::kFast,
       .since = "1.0.0",
       .complexity = "O(1)",
       .summary = "Look",
       .handler = get},
      {.name = "box",
       .arity = -2,
       .flags = flag::kAdmin,
       .acl = acl::kScripting,
       .group = "other",
       .since = "1.0.0",
       .summary = "Several",
       .subcommands = kBoxParts},
  };
  static constexpr auto kComplete = family({.group = "hash", .acl = acl::kHash}, kListed);
  CHECK(kComplete[0].group == "hash");
  CHECK(kComplete[0].acl == (acl::kRead | acl::kFast | acl::kHash));
  CHECK(kComplete[1].group == "other");
  CHECK(kComplete[1].acl == (acl::kScripting | acl::kAdmin | acl::kDangerous | acl::kSlow));
}

TEST_CASE("every command's row is sound", "[table]") {
  const auto families = commands::all_families();
  const Table table(families);
  std::set<std::string_view> names;
  for (const CommandRow* row : table.rows()) {
    CHECK(names.insert(row->name).second);
    check_row(*row, nullptr);
  }
}

}  // namespace
}  // namespace ingot::contract
