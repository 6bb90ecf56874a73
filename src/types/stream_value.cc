// Reading streams: entries, groups, consumers, what is pending, and what was deleted since.
#include "src/types/stream_value.h"

#include "src/types/stream_bytes.h"

namespace ingot::types {

using storage::Status;

namespace {

StreamElements elements_of(storage::Reader& data, const Record& record) {
  if (record.collection()) return {data, record.collection()->id};
  const std::string_view payload = record.payload();
  return {data, std::string(payload.substr(std::min(payload.size(), kNotesBytes)))};
}

}  // namespace

uint64_t StreamFields::count() const {
  uint64_t count = 0;
  std::string_view item;
  for (PackedReader reader(packed_); reader.next(&item);) ++count;
  return count;
}

StreamReader::StreamReader(storage::Reader& data, const Record& record)
    : data_(data), elements_(elements_of(data, record)) {
  if (!record.exists()) return;
  const bool readable = decode_notes(record.payload(), &notes_);
  const auto length = elements_.is_large() ? std::optional(record.collection()->count)
                                           : count_entries(elements_.packed());
  if (!readable || !length) latch_corrupt();
  length_ = length.value_or(0);
}

void StreamReader::latch_corrupt() const {
  data_.latch_error(Status(Status::Code::kCorruption, "unreadable record of a stream"));
}

void StreamReader::walk(StreamId first, StreamId last, bool reverse, const EachEntry& each) const {
  if (length_ == 0) return;
  first = std::max(first, notes_.first);
  last = std::min(last, notes_.last);
  if (first > last) return;
  elements_.walk(entry_key(first), entry_key(last) + '\0', reverse,
                 [&](std::string_view key, std::string_view value) {
                   return each(entry_id(key), StreamFields(value.substr(1)));
                 });
}

StreamId StreamReader::last_entry() const {
  StreamId last;
  walk(notes_.first, kStreamIdMax, true, [&](StreamId id, const StreamFields&) {
    last = id;
    return false;
  });
  return last;
}

uint64_t StreamReader::walk_trimmed(const StreamTrim& trim,
                                    const std::function<bool(StreamId id)>& each) const {
  uint64_t seen = 0;
  walk(notes_.first, kStreamIdMax, false, [&](StreamId id, const StreamFields&) {
    const bool goes =
        seen < trim.at_most && (trim.min_id ? id < *trim.min_id : length_ - seen > trim.length);
    return goes && ++seen != 0 && each(id);
  });
  // The last step may be a short one.
  return seen == length_ ? seen : seen - seen % trim.step;
}

bool StreamReader::entry(StreamId id, const EachEntry& each) const {
  std::string stored;
  if (id < notes_.first || !elements_.get(entry_key(id), &stored)) return false;
  each(id, StreamFields(std::string_view(stored).substr(1)));
  return true;
}

void StreamReader::walk_prefix(const std::string& prefix, const StreamElements::Each& each) const {
  elements_.walk(prefix, prefix_end(prefix), /*reverse=*/false, each);
}

std::optional<StreamGroup> StreamReader::group(std::string_view name) const {
  std::string stored;
  if (!elements_.get(group_key(name), &stored)) return std::nullopt;
  StreamGroup group{.name = std::string(name)};
  if (decode_group(stored, &group)) return group;
  latch_corrupt();
  return std::nullopt;
}

void StreamReader::walk_groups(const std::function<bool(const StreamGroup&)>& each) const {
  const std::string prefix = stream_prefix(StreamPart::kGroup);
  walk_prefix(prefix, [&](std::string_view key, std::string_view value) {
    StreamGroup group{.name = std::string(key.substr(prefix.size()))};
    if (decode_group(value, &group)) return each(group);
    latch_corrupt();
    return false;
  });
}

std::optional<StreamConsumer> StreamReader::consumer(const StreamGroup& group,
                                                     std::string_view name) const {
  std::string stored;
  if (!elements_.get(consumer_key(group.number, name), &stored)) return std::nullopt;
  StreamConsumer consumer{.name = std::string(name)};
  if (decode_consumer(stored, &consumer)) return consumer;
  latch_corrupt();
  return std::nullopt;
}

void StreamReader::walk_consumers(const StreamGroup& group,
                                  const std::function<bool(const StreamConsumer&)>& each) const {
  const std::string prefix = group_prefix(StreamPart::kConsumer, group.number);
  walk_prefix(prefix, [&](std::string_view key, std::string_view value) {
    StreamConsumer consumer{.name = std::string(key.substr(prefix.size()))};
    if (decode_consumer(value, &consumer)) return each(consumer);
    latch_corrupt();
    return false;
  });
}

std::optional<StreamPending> StreamReader::pending(const StreamGroup& group, StreamId id) const {
  std::string stored;
  if (!elements_.get(pending_key(group.number, id), &stored)) return std::nullopt;
  StreamPending pending{.id = id};
  if (decode_pending(stored, &pending)) return pending;
  latch_corrupt();
  return std::nullopt;
}

std::optional<StreamId> StreamReader::last_pending(const StreamGroup& group) const {
  const std::string prefix = group_prefix(StreamPart::kPending, group.number);
  std::optional<StreamId> id;
  elements_.walk(prefix, prefix_end(prefix), /*reverse=*/true,
                 [&](std::string_view key, std::string_view) {
                   id = read_stream_id(key.substr(prefix.size()));
                   return false;
                 });
  return id;
}

void StreamReader::walk_pending(const StreamGroup& group, StreamId first,
                                const EachPending& each) const {
  const std::string prefix = group_prefix(StreamPart::kPending, group.number);
  elements_.walk(prefix + stream_id_bytes(first), prefix_end(prefix), /*reverse=*/false,
                 [&](std::string_view key, std::string_view value) {
                   StreamPending pending{.id = read_stream_id(key.substr(prefix.size()))};
                   if (decode_pending(value, &pending)) return each(pending);
                   latch_corrupt();
                   return false;
                 });
}

void StreamReader::walk_pending(const StreamGroup& group, const StreamConsumer& consumer,
                                StreamId first, const EachPending& each) const {
  const std::string prefix = owned_prefix(group.number, consumer.number);
  const std::string pending = group_prefix(StreamPart::kPending, group.number);
  StreamElements::Ascending records(elements_, pending, prefix_end(pending));
  std::string stored;
  elements_.walk(prefix + stream_id_bytes(first), prefix_end(prefix), /*reverse=*/false,
                 [&](std::string_view key, std::string_view) {
                   StreamPending found{.id = read_stream_id(key.substr(prefix.size()))};
                   if (records.get(pending_key(group.number, found.id), &stored) &&
                       decode_pending(stored, &found)) {
                     return each(found);
                   }
                   latch_corrupt();
                   return false;
                 });
}

bool StreamReader::deleted_since(StreamId id) const {
  return length_ != 0 && notes_.first <= notes_.max_deleted && id <= notes_.max_deleted;
}

std::optional<int64_t> StreamReader::added_until(StreamId id) const {
  const auto added = static_cast<int64_t>(notes_.added);
  if (added == 0) return 0;
  if (length_ == 0 && id <= notes_.last) return added;
  if (id == notes_.last) return added;
  if (id > notes_.last) return std::nullopt;
  // Only before the first entry is nothing missing.
  const bool whole = notes_.max_deleted == kStreamIdMin || notes_.max_deleted < notes_.first;
  const int64_t gone = added - static_cast<int64_t>(length_);
  if (whole && id < notes_.first) return gone;
  if (whole && id == notes_.first) return gone + 1;
  return std::nullopt;
}

std::optional<int64_t> StreamReader::lag(const StreamGroup& group) const {
  const auto added = static_cast<int64_t>(notes_.added);
  if (added == 0) return 0;
  if (group.entries_read != -1 && !deleted_since(group.last)) return added - group.entries_read;
  const auto read = added_until(group.last);
  return read ? std::optional(added - *read) : std::nullopt;
}

}  // namespace ingot::types
