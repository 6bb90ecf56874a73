// Walking over the names of each type in groups, and copying the elements of a group page by page.
#include "src/ssdb/ssdb_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ingot::ssdb {
namespace {

using client::Reply;

struct TypeFacts {
  std::string_view name;
  std::string_view key_type;  // as TYPE tells it
  std::string_view list;      // names behind one
  std::string_view size;      // of a name; 0: it is none of this type
  std::string_view add;       // to what the target has
};
constexpr TypeFacts kFacts[kSsdbTypes] = {{"kv", "string", "keys", "exists", ""},
                                          {"hash", "hash", "hlist", "hsize", "HSET"},
                                          {"zset", "zset", "zlist", "zsize", "ZADD"},
                                          {"queue", "list", "qlist", "qsize", "RPUSH"}};
const TypeFacts& facts(SsdbType type) {
  return kFacts[static_cast<size_t>(type)];
}

// A zset of this beginning is SSDB's own: when kv expire.
constexpr std::string_view kInternal = "\xff\xff\xff\xff\xff|";
// What a collection is called until it is whole.
constexpr std::string_view kPartial = "ingot-import:partial:";

// Their commands fit into the buffers of sockets, so nobody waits to be read from.
constexpr uint64_t kNamesAtATime = 100;
constexpr uint64_t kPageBytes = 1 << 20;  // that SSDB makes at a time, about
constexpr uint64_t kPageMax = 1000;
constexpr uint64_t kPageMin = 4;
constexpr uint64_t kPageFirst = 16;
constexpr size_t kCommandBytes = 64 << 10;
constexpr size_t kCommandElements = 256;
constexpr size_t kUnsentBytes = 1 << 20;
constexpr size_t kUnderWayMax = 1000;  // replies that may be waiting for us
constexpr uint64_t kToldOf = 100;
constexpr const char* kTaken = "the target has got a key of this name meanwhile";
constexpr std::chrono::seconds kProgressEvery{10};

// Errors that any other command would get as well.
constexpr std::string_view kRefusesAll[] = {"MISCONF", "READONLY", "NOAUTH",     "NOPERM",
                                            "LOADING", "DENIED",   "MASTERDOWN", "CLUSTERDOWN"};

std::string shown_name(std::string_view name) {
  std::string text = "'";
  for (const char c : name) {
    if (c >= ' ' && c <= '~' && c != '\'' && c != '\\') {
      text += c;
    } else {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text + "'";
}

bool is_exact(std::string_view score) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(score.data(), score.data() + score.size(), number);
  if (error != std::errc() || end != score.data() + score.size()) return true;  // for ZADD to tell
  const double rounded = static_cast<double>(number);
  return rounded < 0x1p63 && static_cast<int64_t>(rounded) == number;
}

}  // namespace

std::string SsdbImport::run() {
  for (const SsdbType type : {SsdbType::kKv, SsdbType::kHash, SsdbType::kZset, SsdbType::kQueue}) {
    copy_all(type);
  }
  return why_;
}

bool SsdbImport::all_copied() const {
  return std::ranges::all_of(counts_, [](const ImportCounts& count) {
    return count.refused + count.failed + count.rounded + count.uneven == 0;
  });
}

void SsdbImport::copy_all(SsdbType type) {
  std::string behind;
  page_ = kPageFirst;
  while (!stopped()) {
    Items items = next_names(type, behind);
    if (items.empty()) return;
    if (items.back().name <= behind) return stop("SSDB tells names that it has told before");
    behind = items.back().name;
    refuse_shared(type, items);
    if (!options_.replace) look_for_keys(type, items);
    type == SsdbType::kKv ? copy_strings(items) : copy_collections(type, items);
    if (!stopped()) count(type, items);
  }
}

SsdbImport::Items SsdbImport::next_names(SsdbType type, const std::string& behind) {
  Items items;
  const std::string limit = std::to_string(std::min(page_, kNamesAtATime));
  source_.add({facts(type).list, behind, "", limit});
  std::vector<std::string> reply;
  if (!read_source(&reply)) return items;
  for (size_t i = 1; i < reply.size(); ++i) {
    Item item;
    item.key = options_.prefixes[static_cast<size_t>(type)] + reply[i];
    item.name = std::move(reply[i]);
    item.wanted = type != SsdbType::kZset || !item.name.starts_with(kInternal);
    items.push_back(std::move(item));
  }
  return items;
}

// Whether a name of an earlier type comes to the same key.
void SsdbImport::refuse_shared(SsdbType type, Items& items) {
  for (size_t earlier = 0; earlier < static_cast<size_t>(type); ++earlier) {
    const std::string& prefix = options_.prefixes[earlier];
    std::vector<Item*> asked;
    for (Item& item : items) {
      if (!item.wanted || !item.key.starts_with(prefix) || item.key.size() == prefix.size())
        continue;
      source_.add({kFacts[earlier].size, std::string_view(item.key).substr(prefix.size())});
      asked.push_back(&item);
    }
    for (Item* item : asked) {
      if (read_number() == 0) continue;
      item->wanted = false;
      item->wrong = fmt::format("a {} of SSDB has its key", kFacts[earlier].name);
    }
  }
}

// Those that are in the target already.
void SsdbImport::look_for_keys(SsdbType type, Items& items) {
  for (const Item& item : items) {
    if (item.wanted) target_.add({"TYPE", item.key});
  }
  if (!target_.send()) return stop("the target has hung up");
  for (Item& item : items) {
    Reply reply;
    if (!item.wanted) continue;
    if (!read_target(&reply)) return;
    if (reply.kind == Reply::Kind::kStatus && reply.text == "none") continue;
    item.wanted = false;
    if (reply.text == facts(type).key_type) {
      ++counts_[static_cast<size_t>(type)].there;
    } else {
      item.wrong = fmt::format("the target has a {} of this name", reply.text);
    }
  }
}

void SsdbImport::copy_strings(Items& items) {
  for (const Item& item : items) {
    if (!item.wanted) continue;
    source_.add({"ttl", item.name});
    source_.add({"get", item.name});
  }
  uint64_t bytes = 0;
  for (size_t i = 0; i < items.size() && !stopped(); ++i) {
    Item& item = items[i];
    if (!item.wanted) continue;
    std::vector<std::string> ttl;
    std::vector<std::string> value;
    if (!read_source(&ttl) || !read_source(&value)) return;
    if (value.size() != 2 || ttl.size() != 2) continue;  // it has gone meanwhile
    bytes += value[1].size();
    item.elements = item.told = 1;
    item.complete = true;
    std::vector<std::string_view> command = {"SET", item.key, value[1]};
    // It tells whole seconds, of which none may be left.
    const std::string seconds = ttl[1] == "0" ? "1" : ttl[1];
    if (!seconds.starts_with('-')) {
      item.expires = true;
      command.insert(command.end(), {"EX", seconds});
    }
    if (!options_.replace) command.emplace_back("NX");
    write(i, command);
  }
  came(SsdbType::kKv, items.size(), bytes);
  settle(items);
}

// SSDB makes a page as a whole: the next one is asked for by the size of the last, and larger step
// by step.
void SsdbImport::came(SsdbType type, uint64_t elements, uint64_t bytes) {
  counts_[static_cast<size_t>(type)].bytes += bytes;
  if (elements == 0) return;
  const uint64_t fitting = elements * kPageBytes / (bytes + 1);
  page_ = std::clamp(std::min(fitting, 2 * page_), kPageMin, kPageMax);
}

void SsdbImport::copy_collections(SsdbType type, Items& items) {
  for (const Item& item : items) {
    if (item.wanted) source_.add({facts(type).size, item.name});
  }
  for (Item& item : items) {
    if (item.wanted) item.told = read_number();
  }
  // Of small ones as many at a time as come to a page.
  for (size_t begin = 0, end = 0; begin < items.size() && !stopped(); begin = end) {
    uint64_t asked = 0;
    for (; end < items.size() && asked < page_; ++end) {
      if (!items[end].wanted) continue;
      ask_for_page(type, items[end]);
      asked += items[end].told;
    }
    for (size_t i = begin; i < end && !stopped(); ++i) {
      if (!items[i].wanted) continue;
      write(i, {"UNLINK", std::string(kPartial) + items[i].key});  // of a copy that was broken off
      copy_page(type, items, i);
    }
  }
  for (size_t i = 0; i < items.size(); ++i) {
    while (items[i].wanted && !items[i].complete && !stopped()) {
      ask_for_page(type, items[i]);
      copy_page(type, items, i);
    }
  }
  settle(items);
  publish(items);
}

void SsdbImport::ask_for_page(SsdbType type, Item& item) {
  item.asked = page_;
  const std::string limit = std::to_string(page_);
  switch (type) {
    case SsdbType::kHash:
      return source_.add({"hscan", item.name, item.last, "", limit});
    case SsdbType::kZset:
      return source_.add({"zscan", item.name, item.last, item.last_score, "", limit});
    case SsdbType::kQueue:
      return source_.add({"qrange", item.name, std::to_string(item.elements), limit});
    case SsdbType::kKv:
      return;  // has no elements
  }
}

// Element by element, so that no page is ever held.
void SsdbImport::copy_page(SsdbType type, Items& items, size_t index) {
  Item& item = items[index];
  uint64_t elements = 0;
  uint64_t bytes = 0;
  std::string status;
  std::string first;
  std::string second;
  SsdbClient::Next next = source_.next(&status);
  if (next == SsdbClient::Next::kItem && status != "ok") {
    return stop(fmt::format("SSDB fails to read {} {}: {}", facts(type).name, shown_name(item.name),
                            status));
  }
  while (next == SsdbClient::Next::kItem) {
    next = source_.next(&first);
    if (next != SsdbClient::Next::kItem) break;
    if (type != SsdbType::kQueue) next = source_.next(&second);
    if (next != SsdbClient::Next::kItem) break;
    ++elements;
    bytes += first.size() + second.size();
    gather(type, index, item, std::move(first), std::move(second));
    if (stopped()) return;
  }
  if (next != SsdbClient::Next::kEnd) return stop("SSDB has hung up");
  write_gathered(type, index, item);
  item.elements += elements;
  item.complete = elements < item.asked;
  came(type, elements, bytes);
  if (under_way_.size() > kUnderWayMax) settle(items);
  tell_progress();
}

void SsdbImport::gather(SsdbType type, size_t index, Item& item, std::string first,
                        std::string second) {
  gathered_bytes_ += first.size() + second.size();
  if (type == SsdbType::kZset) {
    if (!is_exact(second)) ++counts_[static_cast<size_t>(type)].rounded;
    item.last_score = second;
    gathered_.push_back(std::move(second));
  }
  if (type != SsdbType::kQueue) item.last = first;
  gathered_.push_back(std::move(first));
  if (type == SsdbType::kHash) gathered_.push_back(std::move(second));
  if (gathered_bytes_ >= kCommandBytes || gathered_.size() >= 2 * kCommandElements) {
    write_gathered(type, index, item);
  }
}

void SsdbImport::write_gathered(SsdbType type, size_t index, const Item& item) {
  if (gathered_.empty()) return;
  const std::string key = std::string(kPartial) + item.key;
  std::vector<std::string_view> command = {facts(type).add, key};
  command.insert(command.end(), gathered_.begin(), gathered_.end());
  write(index, command);
  gathered_.clear();
  gathered_bytes_ = 0;
}

// Gives what is whole its name.
void SsdbImport::publish(Items& items) {
  if (options_.dry_run) return;
  for (const Item& item : items) {
    const std::string partial = std::string(kPartial) + item.key;
    if (!item.wanted || item.elements == 0) continue;
    if (!item.wrong.empty()) {
      target_.add({"UNLINK", partial});
    } else {
      target_.add({options_.replace ? "RENAME" : "RENAMENX", partial, item.key});
    }
  }
  if (!stopped() && !target_.send()) stop("the target has hung up");
  for (size_t i = 0; i < items.size() && !stopped(); ++i) {
    Item& item = items[i];
    Reply reply;
    if (!item.wanted || item.elements == 0) continue;
    if (!read_target(&reply)) return;
    if (!item.wrong.empty()) continue;
    if (reply.kind == Reply::Kind::kError) item.wrong = reply.text;
    if (reply.kind == Reply::Kind::kInteger && reply.text == "0") {
      item.wrong = kTaken;
      write(i, {"UNLINK", std::string(kPartial) + item.key});
    }
  }
  settle(items);
}

void SsdbImport::write(size_t index, const std::vector<std::string_view>& command) {
  if (options_.dry_run || stopped()) return;
  target_.add(command);
  under_way_.push_back(index);
  if (target_.unsent_bytes() >= kUnsentBytes && !target_.send()) stop("the target has hung up");
}

void SsdbImport::settle(Items& items) {
  if (!stopped() && !target_.send()) stop("the target has hung up");
  while (!under_way_.empty() && !stopped()) {
    Item& item = items[under_way_.front()];
    under_way_.pop_front();
    Reply reply;
    if (!read_target(&reply)) return;
    if (reply.kind == Reply::Kind::kError && item.wrong.empty()) item.wrong = reply.text;
    if (reply.kind == Reply::Kind::kNull) item.wrong = kTaken;
  }
}

bool SsdbImport::read_target(Reply* reply) {
  if (stopped()) return false;
  if (!target_.read(reply)) {
    stop("the target has hung up, or has not answered for a minute");
    return false;
  }
  if (reply->kind != Reply::Kind::kError) return true;
  const bool refuses_all = std::ranges::any_of(
      kRefusesAll, [&](std::string_view code) { return reply->text.starts_with(code); });
  if (refuses_all) stop("the target refuses: " + reply->text);
  return !refuses_all;
}

bool SsdbImport::read_source(std::vector<std::string>* reply) {
  if (stopped()) return false;
  if (!source_.read(reply) || reply->empty()) {
    stop("SSDB has hung up, or has not answered for a minute");
    return false;
  }
  if (reply->front() == "ok" || reply->front() == "not_found") return true;
  stop("SSDB fails: " + fmt::format("{}", fmt::join(*reply, " ")));
  return false;
}

uint64_t SsdbImport::read_number() {
  std::vector<std::string> reply;
  uint64_t number = 0;
  if (!read_source(&reply) || reply.size() != 2) return 0;
  (void)std::from_chars(reply[1].data(), reply[1].data() + reply[1].size(), number);
  return number;
}

void SsdbImport::count(SsdbType type, Items& items) {
  ImportCounts& counts = counts_[static_cast<size_t>(type)];
  for (const Item& item : items) {
    if (!item.wrong.empty()) {
      ++(item.wanted ? counts.failed : counts.refused);
      tell_of(type, item, item.wrong);
      continue;
    }
    if (!item.wanted || item.elements == 0) continue;
    ++counts.copied;
    counts.elements += item.elements;
    if (item.expires) ++counts.expiring;
    if (item.elements == item.told) continue;
    ++counts.uneven;
    tell_of(type, item,
            fmt::format("{} elements copied, SSDB told of {}", item.elements, item.told));
  }
  tell_progress();
}

void SsdbImport::tell_of(SsdbType type, const Item& item, const std::string& what) {
  if (++told_of_ > kToldOf) return;
  fmt::print(stderr, "{} {}: {}\n", facts(type).name, shown_name(item.name), what);
  if (told_of_ == kToldOf) fmt::print(stderr, "... more such names are only counted\n");
}

void SsdbImport::tell_progress() {
  const auto now = std::chrono::steady_clock::now();
  if (now - told_at_ < kProgressEvery) return;
  told_at_ = now;
  uint64_t copied = 0;
  uint64_t bytes = 0;
  for (const ImportCounts& count : counts_) {
    copied += count.copied;
    bytes += count.bytes;
  }
  fmt::print(stderr, "{} names copied, {} MB read\n", copied, bytes >> 20);
}

void SsdbImport::stop(std::string why) {
  if (!stopped()) why_ = std::move(why);
}

}  // namespace ingot::ssdb
