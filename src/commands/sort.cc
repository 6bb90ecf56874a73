// SORT and SORT_RO: the elements of a list, set or sorted set in the order of their own or of other
// keys' values, answered, replaced by those of other keys, or stored as a list.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/families.h"
#include "src/commands/sorted_reply.h"
#include "src/commands/store_result.h"
#include "src/commands/typed_key.h"
#include "src/contract/thresholds.h"
#include "src/data/spill_sort.h"
#include "src/data/view.h"
#include "src/settings/config.h"
#include "src/types/hash_value.h"
#include "src/types/list_builder.h"
#include "src/types/list_value.h"
#include "src/types/set_value.h"
#include "src/types/sorted_set_bytes.h"
#include "src/types/sorted_set_value.h"
#include "src/types/string_value.h"

namespace ingot::commands {
namespace {

using data::SpillSort;
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

// What the caller may do beside sorting.
struct Allowed {
  bool store = true;
  bool read_all_keys = true;  // those that the elements name
};

Options parse(ArgReader& reader, Allowed allowed) {
  Options options;
  while (reader.more()) {
    if (reader.word("asc")) {
      options.descending = false;
    } else if (reader.word("desc")) {
      options.descending = true;
    } else if (reader.word("alpha")) {
      options.alpha = true;
    } else if (reader.word("limit", 2)) {
      options.offset = reader.integer();
      options.count = reader.integer();
    } else if (allowed.store && reader.word("store", 1)) {
      options.store = reader.text();
    } else if (reader.word("by", 1)) {
      const std::string_view pattern = reader.text();
      if (!allowed.read_all_keys && pattern.find('*') != pattern.npos) {
        reader.fail("ERR BY option of SORT denied due to insufficient ACL permissions.");
      }
      // After one that gives no order a later one gives none, either.
      if (!options.unsorted()) options.by = pattern;
    } else if (reader.word("get", 1)) {
      options.get.push_back(reader.text());
      if (!allowed.read_all_keys) {
        reader.fail("ERR GET option of SORT denied due to insufficient ACL permissions.");
      }
    } else {
      reader.fail(contract::error::kSyntax);
    }
  }
  return options;
}

// "prefix*suffix" or "prefix*suffix->field".
struct Pattern {
  std::string_view prefix, suffix, field;
};
std::optional<Pattern> read_pattern(std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::nullopt;
  Pattern read{.prefix = pattern.substr(0, star), .suffix = pattern.substr(star + 1), .field = {}};
  const size_t arrow = read.suffix.find("->");
  if (arrow != std::string_view::npos && arrow + 2 < read.suffix.size()) {
    read.field = read.suffix.substr(arrow + 2);
    read.suffix = read.suffix.substr(0, arrow);
  }
  return read;
}

// The value that a pattern names for an element: "#" the element itself, "k*" the string of that
// key, "k*->f" the field of that hash.
std::optional<std::string> look_up(types::KeyReader& keys, int db, std::string_view pattern,
                                   std::string_view element) {
  if (pattern == "#") return std::string(element);
  const auto named = read_pattern(pattern);
  if (!named) return std::nullopt;
  const auto& [prefix, suffix, field] = *named;
  const std::string name = std::string(prefix).append(element).append(suffix);
  Record record;
  if (!keys.find(db, name, &record)) return std::nullopt;
  std::string held;
  if (!field.empty()) {
    types::FieldValue value;
    if (record.type() != ValueType::kHash) return std::nullopt;
    types::HashReader hash(keys.data(), record, keys.expired_by_ms());
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

uint64_t size_of(storage::Reader& data, const Record& record) {
  if (record.type() == ValueType::kList) return types::ListReader(data, record).length();
  if (record.type() == ValueType::kSet) return types::SetReader(data, record).size();
  return types::SortedSetReader(data, record).size();
}

// In the order of the collection; stops when `each` returns false.
void walk(storage::Reader& data, const Record& record,
          const std::function<bool(std::string_view element)>& each) {
  if (record.type() == ValueType::kList) types::ListReader(data, record).walk(0, each);
  if (record.type() == ValueType::kSet) types::SetReader(data, record).walk(each);
  if (record.type() == ValueType::kSortedSet) {
    types::SortedSetReader(data, record).walk([&](std::string_view member, double) {
      return each(member);
    });
  }
}

// Bytes that sort as `text` does when others follow: a zero byte becomes 00 ff, the end is 00 00.
void append_text(std::string* key, std::string_view text) {
  for (const char byte : text) {
    key->push_back(byte);
    if (byte == '\0') key->push_back('\xff');
  }
  key->append(2, '\0');
}

// What an element is sorted by. Nothing: it should be a number and is none.
std::optional<std::string> weigh(types::KeyReader& keys, int db, const Options& options,
                                 std::string_view element) {
  std::string key;
  std::optional<std::string> weight(element);
  if (options.by) weight = look_up(keys, db, *options.by, element);
  if (!options.alpha) {
    double number = 0;
    if (weight && !parse_weight(*weight, &number)) return std::nullopt;
    storage::append_be64(&key, types::ordered_bits(number));
    append_text(&key, element);
  } else if (weight) {
    key.push_back('\1');
    append_text(&key, *weight);
  } else {
    key.push_back('\0');
  }
  return key;
}

// How many in order LIMIT asks for, with those that it leaves out before them.
uint64_t wanted(const Options& options) {
  if (options.count < 0) return UINT64_MAX;
  return static_cast<uint64_t>(std::max<int64_t>(options.offset, 0)) +
         static_cast<uint64_t>(options.count);
}

// The elements in order, at least the wanted ones; equal ones keep the order of the collection.
// Null when an element should be a number and is none.
std::shared_ptr<SpillSort> sort_elements(data::Services& services, types::KeyReader& keys, int db,
                                         const Record& record, const Options& options) {
  auto sorted = std::make_shared<SpillSort>(services);
  const bool backward =
      options.unsorted() && options.descending && record.type() != ValueType::kSet;
  bool numbers = true;
  sorted->keep_first(wanted(options));
  walk(keys.data(), record, [&](std::string_view element) {
    std::string key;
    if (!options.unsorted()) {
      std::optional<std::string> weight = weigh(keys, db, options, element);
      // The others are looked up all the same: what is to be loaded is found in one run.
      numbers = numbers && weight;
      if (!numbers) return true;
      key = std::move(*weight);
      if (options.descending) std::ranges::transform(key, key.begin(), std::bit_not());
    }
    storage::append_be64(&key, backward ? ~sorted->size() : sorted->size());
    sorted->add(key, element);
    return !options.unsorted() || backward || sorted->size() < wanted(options);
  });
  const storage::Status status = sorted->finish();
  if (!status.ok()) keys.data().latch_error(status);
  return numbers ? sorted : nullptr;
}

ItemRange limited(uint64_t elements, const Options& options) {
  const auto size = static_cast<int64_t>(elements);
  const int64_t first = std::clamp<int64_t>(options.offset, 0, size);
  const int64_t count = options.count < 0 ? size : std::min(options.count, size);
  return {.first = static_cast<uint64_t>(first),
          .count = static_cast<uint64_t>(std::min(count, size - first))};
}

constexpr std::string_view kNotNumbers = "ERR One or more scores can't be converted into double";

void write_element(types::KeyReader& keys, int db, std::span<const std::string> get,
                   std::string_view element, ReplySink& reply) {
  if (get.empty()) return reply.bulk(element);
  for (const std::string& pattern : get) {
    const auto value = look_up(keys, db, pattern, element);
    value ? reply.bulk(*value) : reply.null();
  }
}

// Nothing when the reply is made already.
struct Request {
  Options options;
  Record record;
  bool exists = false;
};

template <typename Context>
std::optional<Request> read_request(Context& ctx, Args args, bool may_store) {
  ArgReader reader(args, 2);
  Request request{.options = parse(reader, {.store = may_store}), .record = {}};
  if (reader.failed()) {
    ctx.reply.error(reader.error());
    return std::nullopt;
  }
  request.exists = ctx.keys.find(ctx.db, args[1], &request.record);
  if (request.exists && !can_be_sorted(request.record)) {
    ctx.reply.error(contract::error::kWrongType);
    return std::nullopt;
  }
  return request;
}

// What is stored must not depend on the order in which a set happens to be kept.
void order_for_storing(const Record& record, Options* options) {
  if (record.type() != ValueType::kSet || !options->unsorted()) return;
  options->alpha = true;
  options->by.reset();
}

types::BuiltValue build_list(data::Services& services, types::KeyReader& keys, int db,
                             const Record& record, const Options& options,
                             const types::PutElement& put) {
  types::ListBuilder list(services.config.settings()->inline_max_bytes, put);
  const auto sorted = sort_elements(services, keys, db, record, options);
  if (!sorted) return {.error = std::string(kNotNumbers)};
  ItemRange range = limited(sorted->size(), options);
  const storage::Status status = sorted->walk({}, [&](std::string_view, std::string_view element) {
    if (range.first > 0) {
      --range.first;
      return true;
    }
    if (range.count == 0) return false;
    --range.count;
    if (options.get.empty()) list.add(element);
    for (const std::string_view pattern : options.get) {
      list.add(look_up(keys, db, pattern, element).value_or(""));
    }
    return true;
  });
  if (!status.ok()) keys.data().latch_error(status);
  return list.finish();
}

// Which other keys decide about the result: "prefix*suffix".
std::vector<std::string> looked_up(const Options& options) {
  std::vector<std::string> keys;
  const auto note = [&](std::string_view pattern) {
    const auto named = read_pattern(pattern);
    if (named) keys.push_back(std::string(named->prefix).append("*").append(named->suffix));
  };
  if (options.by) note(*options.by);
  for (const std::string_view pattern : options.get) note(pattern);
  return keys;
}

void store_sorted(WriteContext& ctx, Args args, const Request& request) {
  const bool is_large =
      request.exists && size_of(ctx.keys.data(), request.record) > contract::kMadeByWriter;
  std::optional others = looked_up(request.options);
  const bool in_exec = !ctx.may_block;  // it may have changed some of them
  const bool by_writer = in_exec && !others->empty();
  if (by_writer) others.reset();
  store_result(ctx,
               {.target = *request.options.store,
                .recipe = {.sources = args.subspan(1, 1),
                           .is_large = is_large,
                           .by_writer = by_writer,
                           .holds = std::move(others)},
                .kind = types::notify::kList,
                .event = "sortstore",
                .counts_elements = true},
               [&services = ctx.data, db = ctx.db, source = args[1], given = request.options](
                   types::KeyReader& keys, const types::PutElement& put) -> types::BuiltValue {
                 Record record;
                 if (!keys.find(db, source, &record) || !can_be_sorted(record)) return {};
                 Options options = given;
                 order_for_storing(record, &options);
                 return build_list(services, keys, db, record, options, put);
               });
}

// The elements, behind the announced header. Null when the reply is made already.
template <typename Context>
std::shared_ptr<SpillSort> begin_reply(Context& ctx, const Request& request, ItemRange* range) {
  if (!request.exists) {
    ctx.reply.array(0);
    return nullptr;
  }
  const auto& collection = request.record.collection();
  if (!ctx.keys.data().begin_walk(collection ? collection->count : 0)) return nullptr;
  auto sorted = sort_elements(ctx.data, ctx.keys, ctx.db, request.record, request.options);
  if (!sorted) {
    ctx.reply.error(kNotNumbers);
    return nullptr;
  }
  *range = limited(sorted->size(), request.options);
  ctx.reply.array(range->count * std::max<size_t>(request.options.get.size(), 1));
  return sorted;
}

template <typename Context>
void write_now(Context& ctx, const Request& request, const SpillSort& sorted, ItemRange range) {
  const std::vector<std::string> get(request.options.get.begin(), request.options.get.end());
  write_sorted(
      ctx.keys.data(), sorted, range,
      [&](storage::Reader&, std::string_view, std::string_view element, ReplySink& reply) {
        write_element(ctx.keys, ctx.db, get, element, reply);
      },
      ctx.reply);
}

void sort(WriteContext& ctx, Args args) {
  const auto request = read_request(ctx, args, /*may_store=*/true);
  if (!request) return;
  if (request->options.store) return store_sorted(ctx, args, *request);
  ItemRange range;
  const auto sorted = begin_reply(ctx, *request, &range);
  if (sorted) write_now(ctx, *request, *sorted, range);
}

void sort_ro(ReadContext& ctx, Args args) {
  const auto request = read_request(ctx, args, /*may_store=*/false);
  if (!request) return;
  ItemRange range;
  const auto sorted = begin_reply(ctx, *request, &range);
  if (!sorted) return;
  if (!ctx.view) return write_now(ctx, *request, *sorted, range);
  reply_sorted(
      ctx, sorted, range,
      [view = ctx.view, db = ctx.db, now_ms = ctx.now_ms(),
       get = std::vector<std::string>(request->options.get.begin(), request->options.get.end())](
          storage::Reader& data, std::string_view, std::string_view element, ReplySink& reply) {
        types::KeyReader keys(data, view->databases(), now_ms, nullptr);
        write_element(keys, db, get, element, reply);
      });
}

template <bool kMayStore>
std::string unnamed_keys_error(Args args) {
  ArgReader reader(args, 2);
  (void)parse(reader, {.store = kMayStore, .read_all_keys = false});
  return reader.error();
}

const CommandRow* row_for_reading(Args args);

constexpr contract::OptionWord kSortOptions[] = {{"limit", 2}, {"get", 1}, {"by", 1}, {"store", 1}};

constexpr CommandRow kTable[] = {
    {.name = "sort",
     .arity = -2,
     .flags = flag::kWrite | flag::kDenyOom | flag::kMovableKeys,
     .keys = {key_at(1, key::kRo | key::kAccess),
              contract::keys_unknown(key::kRo | key::kAccess,
                                     "BY and GET: the elements decide which keys are read"),
              contract::keys_unknown(key::kOw | key::kUpdate,
                                     "STORE may stand anywhere among the options", "store", 2,
                                     kSortOptions)},
     .since = "1.0.0",
     .complexity = "O(N+M*log(M)) for N elements, M of them answered; O(N) unsorted",
     .summary = "Answer the elements of a list, set or sorted set in order, or store them",
     .arguments =
         "key:key#0 pattern:pattern=BY#1? offset_count:block=LIMIT?(offset:integer count:integer) "
         "pattern:pattern=GET#1?*+ order:oneof?(asc:pure-token=ASC desc:pure-token=DESC) "
         "sorting:pure-token=ALPHA? destination:key=STORE#2?",
     .handler = sort,
     .unnamed_keys_error = unnamed_keys_error<true>,
     .instead = row_for_reading},
    {.name = "sort_ro",
     .arity = -2,
     .flags = flag::kReadonly | flag::kMovableKeys,
     .keys = {key_at(1, key::kRo | key::kAccess),
              contract::keys_unknown(key::kRo | key::kAccess,
                                     "BY and GET: the elements decide which keys are read")},
     .since = "7.0.0",
     .complexity = "O(N+M*log(M)) for N elements, M of them answered; O(N) unsorted",
     .summary = "Answer the elements of a list, set or sorted set in order",
     .arguments =
         "key:key#0 pattern:pattern=BY#1? offset_count:block=LIMIT?(offset:integer count:integer) "
         "pattern:pattern=GET#1?*+ order:oneof?(asc:pure-token=ASC desc:pure-token=DESC) "
         "sorting:pure-token=ALPHA?",
     .handler = sort_ro,
     .unnamed_keys_error = unnamed_keys_error<false>,
     .scans = true},
};
constexpr auto kRows = contract::family(
    {.group = "generic", .acl = acl::kSet | acl::kSortedSet | acl::kList | acl::kDangerous},
    kTable);

constexpr CommandRow kReadingRow = contract::variant_of(kRows[0], sort_ro);

const CommandRow* row_for_reading(Args args) {
  const bool stores = std::ranges::any_of(args.subspan(1), [](std::string_view word) {
    return contract::equals_ignore_case(word, "store");
  });
  return stores ? nullptr : &kReadingRow;
}

}  // namespace

std::span<const CommandRow> sort_rows() {
  return kRows;
}

}  // namespace ingot::commands
