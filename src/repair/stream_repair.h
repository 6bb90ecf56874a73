// A large stream made anew: its entries, and its groups with those of their consumers and pending
// entries that were salvaged, counted again. A consumer who is lost and has entries pending is made
// anew, so that they can be claimed.
//
// One thread. Memory: the groups and consumers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "src/types/built_value.h"
#include "src/types/stream_value.h"

namespace ingot::repair {

struct RepairedValue;

class StreamRepair {
 public:
  // Both must outlive this.
  StreamRepair(const types::Record& record, const types::PutElement& put);

  // In the order of their keys. False for what is no element of a stream.
  [[nodiscard]] bool add(std::string_view element, std::string_view value);
  RepairedValue finish();

 private:
  struct Group {
    types::StreamGroup group;  // as it will be
    uint64_t pending_before = 0;
    uint32_t consumers_before = 0;
  };

  void add_entry(std::string_view element, std::string_view value);
  bool add_group(std::string_view element, std::string_view value);
  bool add_consumer(std::string_view element, std::string_view value);
  bool add_pending(std::string_view element, std::string_view value);

  const types::Record& record_;
  const types::PutElement& put_;
  types::StreamNotes notes_;
  bool has_notes_ = false;
  uint64_t entries_ = 0;
  types::StreamId first_, last_;
  std::map<uint32_t, Group> groups_;
  std::map<std::pair<uint32_t, std::string>, types::StreamConsumer> consumers_;
  uint64_t of_lost_groups_ = 0;  // consumers and pending entries
};

}  // namespace ingot::repair
