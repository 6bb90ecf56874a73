// Sorting a stream's elements by their parts, which stream_bytes.h draws.
#include "src/repair/stream_repair.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/repair/collection_repair.h"
#include "src/types/stream_bytes.h"

namespace ingot::repair {

using storage::Space;
using types::StreamPart;

namespace {

constexpr size_t kPartBytes = 1;
constexpr size_t kGroupNumberBytes = 4;

}  // namespace

StreamRepair::StreamRepair(const types::Record& record, const types::PutElement& put)
    : record_(record), put_(put), has_notes_(types::decode_notes(record.payload(), &notes_)) {}

bool StreamRepair::add(std::string_view element, std::string_view value) {
  if (element.empty() || value.empty()) return false;
  switch (static_cast<StreamPart>(element[0])) {
    case StreamPart::kEntry:
      if (element.size() != kPartBytes + types::kStreamIdBytes) return false;
      add_entry(element, value);
      return true;
    case StreamPart::kGroup:
      return add_group(element, value);
    case StreamPart::kConsumer:
      return add_consumer(element, value);
    case StreamPart::kPending:
      return add_pending(element, value);
    case StreamPart::kOwned:
      return true;  // follows from the pending ones
  }
  return false;
}

void StreamRepair::add_entry(std::string_view element, std::string_view value) {
  last_ = types::entry_id(element);
  if (entries_++ == 0) first_ = last_;
  put_(Space::kData, element, value);
}

bool StreamRepair::add_group(std::string_view element, std::string_view value) {
  Group group;
  if (!types::decode_group(value, &group.group)) return false;
  group.group.name = element.substr(kPartBytes);
  group.pending_before = std::exchange(group.group.pending, 0);
  group.consumers_before = std::exchange(group.group.consumers, 0);
  const uint32_t number = group.group.number;
  return groups_.emplace(number, std::move(group)).second;
}

bool StreamRepair::add_consumer(std::string_view element, std::string_view value) {
  types::StreamConsumer consumer;
  if (element.size() < kPartBytes + kGroupNumberBytes ||
      !types::decode_consumer(value, &consumer)) {
    return false;
  }
  const uint32_t number = storage::read_be32(element.substr(kPartBytes));
  const auto group = groups_.find(number);
  if (group == groups_.end()) return ++of_lost_groups_ > 0;
  consumer.name = element.substr(kPartBytes + kGroupNumberBytes);
  consumer.pending = 0;
  uint32_t& next = group->second.group.next_consumer;
  next = std::max(next, consumer.number + 1);
  ++group->second.group.consumers;
  consumers_[{number, consumer.name}] = consumer;
  return true;
}

bool StreamRepair::add_pending(std::string_view element, std::string_view value) {
  types::StreamPending pending;
  if (element.size() != kPartBytes + kGroupNumberBytes + types::kStreamIdBytes ||
      !types::decode_pending(value, &pending)) {
    return false;
  }
  const uint32_t number = storage::read_be32(element.substr(kPartBytes));
  const auto found = groups_.find(number);
  if (found == groups_.end()) return ++of_lost_groups_ > 0;
  types::StreamGroup& group = found->second.group;
  const auto [consumer, is_new] = consumers_.try_emplace({number, pending.consumer});
  if (is_new) {
    consumer->second = {
        .name = pending.consumer, .number = group.next_consumer++, .seen_ms = pending.delivered_ms};
    ++group.consumers;
  }
  ++consumer->second.pending;
  ++group.pending;
  put_(Space::kData, element, value);
  put_(Space::kData, types::owned_key(number, consumer->second.number, types::entry_id(element)),
       {&storage::kPlainElement, 1});
  return true;
}

RepairedValue StreamRepair::finish() {
  RepairedValue made;
  const auto lose = [&](std::string text) { made.lost.push_back(std::move(text)); };
  const uint64_t expected = record_.collection()->count;
  if (entries_ < expected) {
    lose(fmt::format("{} of its {} entries are lost", expected - entries_, expected));
  } else if (entries_ > expected) {
    lose(fmt::format("it has {} entries more than it should, which had been removed",
                     entries_ - expected));
  }
  if (!has_notes_) lose("what it notes of its IDs is lost");
  if (groups_.size() != notes_.groups) {
    lose(fmt::format("it had {} groups, {} are there", notes_.groups, groups_.size()));
  }
  if (of_lost_groups_ > 0) {
    lose(fmt::format("{} consumers and pending entries of groups that are lost", of_lost_groups_));
  }
  for (const auto& [number, each] : groups_) {
    const types::StreamGroup& group = each.group;
    put_(Space::kData, types::group_key(group.name), types::encode_group(group));
    if (group.pending != each.pending_before || group.consumers != each.consumers_before) {
      lose(fmt::format("its group {:?} had {} pending entries of {} consumers, it has {} of {}",
                       group.name, each.pending_before, each.consumers_before, group.pending,
                       group.consumers));
    }
    notes_.next_group = std::max(notes_.next_group, number + 1);
  }
  for (const auto& [key, consumer] : consumers_) {
    put_(Space::kData, types::consumer_key(key.first, key.second),
         types::encode_consumer(consumer));
  }
  notes_.groups = static_cast<uint32_t>(groups_.size());
  notes_.first = first_;
  notes_.last = std::max(notes_.last, last_);
  notes_.added = std::max(notes_.added, entries_);

  made.value.metadata = record_.metadata();
  made.value.metadata.collection->count = entries_;
  types::encode_notes(notes_, &made.value.payload);
  // A stream without entries is one; one of which all is lost is not.
  const bool all_lost = entries_ == 0 && expected > 0 && groups_.empty();
  made.value.size = all_lost ? 0 : std::max<uint64_t>(1, entries_);
  return made;
}

}  // namespace ingot::repair
