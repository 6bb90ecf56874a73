// Copies all that an SSDB server has to a server of Redis' kind: kv to strings, hashes to hashes,
// zsets to sorted sets, queues to lists.
//
// SSDB has a namespace for each of its types, Redis one for all. Where two types would come to the
// same key, the earlier one in that order has it, and the other is refused; prefixes keep them
// apart. A collection is written under another name and gets its own when it is whole, so a copy
// that was broken off can be run again. Memory: some megabytes and the largest value. One thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/client/resp_client.h"
#include "src/ssdb/ssdb_client.h"

namespace ingot::ssdb {

enum class SsdbType : uint8_t { kKv, kHash, kZset, kQueue };
inline constexpr size_t kSsdbTypes = 4;

struct ImportOptions {
  bool dry_run = false;  // reads everything and writes nothing
  bool replace = false;  // keys that are there already; else they stay as they are
  std::array<std::string, kSsdbTypes> prefixes;  // before the names of each type
};

struct ImportCounts {
  uint64_t copied = 0;
  uint64_t elements = 0;  // of what was copied
  uint64_t expiring = 0;  // of what was copied
  uint64_t there = 0;     // keys of the right type, left as they are
  uint64_t refused = 0;   // the key belongs to another type
  uint64_t failed = 0;    // the target answered with an error
  uint64_t rounded = 0;   // scores that no double has
  uint64_t uneven = 0;    // copied with another number of elements than SSDB tells: it was changed
  uint64_t bytes = 0;     // that were read
};

class SsdbImport {
 public:
  SsdbImport(SsdbClient& source, client::RespClient& target, ImportOptions options)
      : source_(source), target_(target), options_(std::move(options)) {}

  // Why it could not go on; empty: it came to its end.
  std::string run();

  const std::array<ImportCounts, kSsdbTypes>& counts() const { return counts_; }
  bool all_copied() const;  // each name as it is, now or before

 private:
  // A name on its way.
  struct Item {
    std::string name;
    std::string key;   // of the target
    std::string last;  // the last element that came, and its score
    std::string last_score;
    std::string wrong;      // why it was not copied
    uint64_t elements = 0;  // that came
    uint64_t told = 0;      // elements that SSDB tells of
    uint64_t asked = 0;     // elements of the page at hand
    bool expires = false;
    bool wanted = true;
    bool complete = false;
  };
  using Items = std::vector<Item>;

  void copy_all(SsdbType type);
  Items next_names(SsdbType type, const std::string& behind);
  void copy_strings(Items& items);
  void copy_collections(SsdbType type, Items& items);

  void refuse_shared(SsdbType type, Items& items);
  void look_for_keys(SsdbType type, Items& items);
  void ask_for_page(SsdbType type, Item& item);
  void came(SsdbType type, uint64_t elements, uint64_t bytes);
  void copy_page(SsdbType type, Items& items, size_t index);
  void publish(Items& items);

  // Elements go out many in one command.
  void gather(SsdbType type, size_t index, Item& item, std::string first, std::string second);
  void write_gathered(SsdbType type, size_t index, const Item& item);

  // A command of the item at `index`.
  void write(size_t index, const std::vector<std::string_view>& command);
  // Takes the replies to all that was written; an error is noted with its item.
  void settle(Items& items);
  bool read_target(client::Reply* reply);
  bool read_source(std::vector<std::string>* reply);
  uint64_t read_number();
  void count(SsdbType type, Items& items);
  void tell_of(SsdbType type, const Item& item, const std::string& what);
  void tell_progress();

  void stop(std::string why);
  bool stopped() const { return !why_.empty(); }

  SsdbClient& source_;
  client::RespClient& target_;
  const ImportOptions options_;
  std::array<ImportCounts, kSsdbTypes> counts_{};
  std::string why_;
  uint64_t page_ = 1;  // elements to be asked for at a time
  std::vector<std::string> gathered_;
  size_t gathered_bytes_ = 0;
  std::deque<size_t> under_way_;  // the items of the commands that are not answered
  uint64_t told_of_ = 0;          // names
  std::chrono::steady_clock::time_point told_at_ = std::chrono::steady_clock::now();
};

}  // namespace ingot::ssdb
