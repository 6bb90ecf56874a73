// SORT and SORT_RO: the elements of a list, set or sorted set in the order of their own or of other
// keys' values, answered, replaced by those of other keys, or stored as a list.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "src/command/context.h"
#include "src/commands/families.h"
#include "src/commands/typed_key.h"
#include "src/exec/services.h"
#include "src/server/config.h"
#include "src/types/hash.h"
#include "src/types/list.h"
#include "src/types/set.h"
#include "src/types/sorted_set.h"
#include "src/types/string_value.h"

namespace ingot::commands {
namespace {

namespace acl = command::acl;
namespace flag = command::flag;
namespace key = command::key;
using command::ArgReader;
using command::Args;
using command::CommandRow;
using command::key_at;
using command::ReadContext;
using command::WriteContext;
using storage::ValueType;
using types::Record;

struct Options {
  bool descending = false;
  bool alpha = false;
  int64_t offset = 0;
  int64_t count = -1;  // -1: all
  std::optional<std::string_view> by;
  std::vector<std::string_view> get;
  std::optional<std::string_view> store;

  // A pattern that names one key for all elements gives no order.
  bool unsorted() const { return by && by->find('*') == std::string_view::npos; }
};

struct Element {
  std::string value;
  double score = 0;
  std::optional<std::string> weight;  // BY with ALPHA: what is compared
};

Options parse(ArgReader& reader, bool may_store) {
  Options options;
  while (reader.more()) {
    if (reader.word("asc")) {
      options.descending = false;
    } else if (reader.word("desc")) {
      options.descending = true;
    } else if (reader.word("alpha")) {
      options.alpha = true;
    } else if (reader.left() >= 3 && reader.word("limit")) {
      options.offset = reader.integer();
      options.count = reader.integer();
    } else if (may_store && reader.left() >= 2 && reader.word("store")) {
      options.store = reader.text();
    } else if (reader.left() >= 2 && reader.word("by")) {
      options.by = reader.text();
    } else if (reader.left() >= 2 && reader.word("get")) {
      options.get.push_back(reader.text());
    } else {
      reader.fail(command::error::kSyntax);
    }
  }
  return options;
}

// The value that a pattern names for an element: "#" the element itself, "k*" the string of that
// key, "k*->f" the field of that hash.
std::optional<std::string> look_up(types::KeyReader& keys, int db, std::string_view pattern,
                                   std::string_view element) {
  if (pattern == "#") return std::string(element);
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::nullopt;
  std::string_view suffix = pattern.substr(star + 1), field;
  const size_t arrow = suffix.find("->");
  if (arrow != std::string_view::npos && arrow + 2 < suffix.size()) {
    field = suffix.substr(arrow + 2);
    suffix = suffix.substr(0, arrow);
  }
  const std::string name = std::string(pattern.substr(0, star)).append(element).append(suffix);
  Record record;
  if (!keys.find(db, name, &record)) return std::nullopt;
  std::string held;
  if (!field.empty()) {
    types::HashValue value;
    if (record.type() != ValueType::kHash) return std::nullopt;
    types::HashReader hash(keys.data(), record, keys.now_ms());
    if (!hash.get(field, &held, &value)) return std::nullopt;
    return std::string(value.bytes);
  }
  if (!types::is_string(record)) return std::nullopt;
  types::read_string(keys.data(), record, 0, types::string_length(record), &held);
  return held;
}

// As Redis' strtod() takes it: spaces in front, hexadecimal and nothing at all are numbers, too.
bool parse_weight(const std::string& text, double* weight) {
  char* end;
  errno = 0;
  *weight = std::strtod(text.c_str(), &end);
  return *end == '\0' && errno != ERANGE && !std::isnan(*weight);
}

bool can_be_sorted(const Record& record) {
  return record.type() == ValueType::kList || record.type() == ValueType::kSet ||
         record.type() == ValueType::kSortedSet;
}

// The elements in the order of the collection.
std::vector<Element> read_elements(types::KeyReader& keys, const Record& record) {
  std::vector<Element> elements;
  const auto add = [&](std::string_view element) {
    elements.push_back({.value = std::string(element), .weight = {}});
    return true;
  };
  if (record.type() == ValueType::kList) types::ListReader(keys.data(), record).walk(0, add);
  if (record.type() == ValueType::kSet) types::SetReader(keys.data(), record).walk(add);
  if (record.type() == ValueType::kSortedSet) {
    types::SortedSetReader(keys.data(), record).walk([&](std::string_view member, double) {
      return add(member);
    });
  }
  return elements;
}

// False when one of them should be a number and is none.
bool weigh(types::KeyReader& keys, int db, const Options& options, std::vector<Element>* elements) {
  bool numbers = true;
  for (Element& element : *elements) {
    if (!options.by) {
      if (!options.alpha) numbers &= parse_weight(element.value, &element.score);
      continue;
    }
    std::optional<std::string> weight = look_up(keys, db, *options.by, element.value);
    if (options.alpha) {
      element.weight = std::move(weight);
    } else if (weight) {
      numbers &= parse_weight(*weight, &element.score);
    }
  }
  return numbers;
}

int compare(const Options& options, const Element& a, const Element& b) {
  if (!options.alpha) {
    if (a.score != b.score) return a.score < b.score ? -1 : 1;
    return a.value.compare(b.value);
  }
  if (!options.by) return a.value.compare(b.value);
  if (a.weight && b.weight) return a.weight->compare(*b.weight);
  return a.weight ? 1 : b.weight ? -1 : 0;
}

std::span<const Element> limited(std::span<const Element> elements, const Options& options) {
  const auto size = static_cast<int64_t>(elements.size());
  const int64_t offset = std::clamp<int64_t>(options.offset, 0, size);
  const int64_t count = options.count < 0 ? size : std::min(options.count, size);
  return elements.subspan(static_cast<size_t>(offset),
                          static_cast<size_t>(std::min(count, size - offset)));
}

void answer(types::KeyReader& keys, int db, const Options& options,
            std::span<const Element> elements, command::ReplySink& reply) {
  reply.array(elements.size() * std::max<size_t>(options.get.size(), 1));
  for (const Element& element : elements) {
    if (options.get.empty()) reply.bulk(element.value);
    for (const std::string_view pattern : options.get) {
      const auto value = look_up(keys, db, pattern, element.value);
      value ? reply.bulk(*value) : reply.null();
    }
  }
}

void store(WriteContext& ctx, const Options& options, std::span<const Element> elements) {
  const std::string_view target = *options.store;
  std::vector<std::string> values;
  for (const Element& element : elements) {
    if (options.get.empty()) values.push_back(element.value);
    for (const std::string_view pattern : options.get) {
      values.push_back(look_up(ctx.keys, ctx.db, pattern, element.value).value_or(""));
    }
  }
  Record old;
  const bool exists = ctx.keys.peek(ctx.db, target, &old);
  if (exists) ctx.keys.remove(ctx.db, target, old);
  if (!values.empty()) {
    types::ListWriter list(ctx.keys, ctx.db, target, nullptr,
                           ctx.services.config.settings()->inline_max_bytes);
    for (const std::string& value : values) list.push(types::ListEnd::kRight, value);
    list.finish();
    ctx.keys.notify(types::notify::kList, "sortstore", ctx.db, target);
  } else if (exists) {
    ctx.keys.notify(types::notify::kGeneric, "del", ctx.db, target);
  }
  ctx.reply.integer(static_cast<int64_t>(values.size()));
}

template <typename Context>
void sort_any(Context& ctx, Args args) {
  constexpr bool kMayStore = std::is_same_v<Context, WriteContext>;
  ArgReader reader(args, 2);
  Options options = parse(reader, kMayStore);
  if (reader.failed()) return ctx.reply.error(reader.error());
  Record record;
  const bool exists = ctx.keys.find(ctx.db, args[1], &record);
  if (exists && !can_be_sorted(record)) return ctx.reply.error(command::error::kWrongType);
  if (exists && !ctx.keys.data().begin_walk()) return;
  bool sorted = !options.unsorted();
  if (exists && record.type() == ValueType::kSet && options.store && !sorted) {
    // What is stored must not depend on the order in which a set happens to be kept.
    sorted = options.alpha = true;
    options.by.reset();
  }
  std::vector<Element> elements;
  if (exists) elements = read_elements(ctx.keys, record);
  if (sorted) {
    if (!weigh(ctx.keys, ctx.db, options, &elements)) {
      return ctx.reply.error("ERR One or more scores can't be converted into double");
    }
    std::ranges::stable_sort(elements, [&](const Element& a, const Element& b) {
      const int order = compare(options, a, b);
      return options.descending ? order > 0 : order < 0;
    });
  } else if (options.descending && exists && record.type() != ValueType::kSet) {
    std::ranges::reverse(elements);
  }
  const std::span<const Element> chosen = limited(elements, options);
  if constexpr (kMayStore) {
    if (options.store) return store(ctx, options, chosen);
  }
  answer(ctx.keys, ctx.db, options, chosen, ctx.reply);
}

void sort(WriteContext& ctx, Args args) {
  sort_any(ctx, args);
}

void sort_ro(ReadContext& ctx, Args args) {
  sort_any(ctx, args);
}

const CommandRow* row_for_reading(Args args);

constexpr CommandRow kRows[] = {
    {.name = "sort",
     .arity = -2,
     .flags = flag::kWrite | flag::kDenyOom | flag::kMovableKeys,
     .acl = acl::kWrite | acl::kSet | acl::kSortedSet | acl::kList | acl::kSlow | acl::kDangerous,
     .keys = {key_at(1, key::kRo | key::kAccess),
              command::keys_unknown(key::kRo | key::kAccess,
                                    "BY and GET: the elements decide which keys are read"),
              command::keys_unknown(key::kOw | key::kUpdate,
                                    "STORE may stand anywhere among the options", "store")},
     .group = "generic",
     .since = "1.0.0",
     .complexity = "O(N+M*log(M)) for N elements, M of them answered; O(N) unsorted",
     .summary = "Answer the elements of a list, set or sorted set in order, or store them",
     .arguments =
         "key:key#0 pattern:pattern=BY#1? offset_count:block=LIMIT?(offset:integer count:integer) "
         "pattern:pattern=GET#1?*+ order:oneof?(asc:pure-token=ASC desc:pure-token=DESC) "
         "sorting:pure-token=ALPHA? destination:key=STORE#2?",
     .handler = sort,
     .instead = row_for_reading},
    {.name = "sort_ro",
     .arity = -2,
     .flags = flag::kReadonly | flag::kMovableKeys,
     .acl = acl::kRead | acl::kSet | acl::kSortedSet | acl::kList | acl::kSlow | acl::kDangerous,
     .keys = {key_at(1, key::kRo | key::kAccess),
              command::keys_unknown(key::kRo | key::kAccess,
                                    "BY and GET: the elements decide which keys are read")},
     .group = "generic",
     .since = "7.0.0",
     .complexity = "O(N+M*log(M)) for N elements, M of them answered; O(N) unsorted",
     .summary = "Answer the elements of a list, set or sorted set in order",
     .arguments =
         "key:key#0 pattern:pattern=BY#1? offset_count:block=LIMIT?(offset:integer count:integer) "
         "pattern:pattern=GET#1?*+ order:oneof?(asc:pure-token=ASC desc:pure-token=DESC) "
         "sorting:pure-token=ALPHA?",
     .handler = sort_ro,
     .scans = true},
};

constexpr CommandRow kReadingRow = command::variant_of(kRows[0], sort_ro);

const CommandRow* row_for_reading(Args args) {
  const bool stores = std::ranges::any_of(args.subspan(1), [](std::string_view word) {
    return command::equals_ignore_case(word, "store");
  });
  return stores ? nullptr : &kReadingRow;
}

}  // namespace

std::span<const CommandRow> sort_rows() {
  return kRows;
}

}  // namespace ingot::commands
