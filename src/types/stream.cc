// Reading streams; see stream.h.
#include "src/types/stream.h"

#include "src/types/stream_bytes.h"

namespace ingot::types {

using storage::Space;
using storage::Status;

uint64_t StreamFields::count() const {
  uint64_t count = 0;
  std::string_view item;
  for (PackedReader reader(packed_); reader.next(&item);) ++count;
  return count;
}

StreamReader::StreamReader(storage::Reader& data, const Record& record)
    : data_(data), id_(record.collection() ? record.collection()->id : 0) {
  if (record.collection() && decode_notes(record.payload(), &notes_)) {
    length_ = record.collection()->count;
  } else {
    latch_corrupt();
  }
}

void StreamReader::latch_corrupt() const {
  data_.latch_error(Status(Status::Code::kCorruption, "unreadable record of a stream"));
}

void StreamReader::walk(StreamId first, StreamId last, bool reverse, const EachEntry& each) const {
  if (length_ == 0) return;
  first = std::max(first, notes_.first);
  last = std::min(last, notes_.last);
  if (first > last) return;
  const std::string lower = entry_key(id_, first);
  const std::string upper = entry_key(id_, last);
  const auto at = data_.cursor(Space::kData, lower, upper + '\0');
  for (reverse ? at->seek_for_prev(upper) : at->seek(lower); at->valid();
       reverse ? at->prev() : at->next()) {
    const StreamId id = entry_id(at->key());
    if (!each(id, StreamFields(at->value().substr(1)))) break;
  }
  data_.check(*at);
}

StreamId StreamReader::last_entry() const {
  StreamId last;
  walk(notes_.first, kStreamIdMax, true, [&](StreamId id, const StreamFields&) {
    last = id;
    return false;
  });
  return last;
}

bool StreamReader::entry(StreamId id, const EachEntry& each) const {
  std::string stored;
  if (id < notes_.first || !data_.get(Space::kData, entry_key(id_, id), &stored)) return false;
  each(id, StreamFields(std::string_view(stored).substr(1)));
  return true;
}

// Every record whose key begins with the prefix, from the key `from` on.
void StreamReader::walk_records(const std::string& prefix, const std::string& from,
                                const Each& each) const {
  const auto at = data_.cursor(Space::kData, from, prefix_end(prefix));
  for (at->seek(from); at->valid(); at->next()) {
    if (!each(at->key(), at->value())) break;
  }
  data_.check(*at);
}

std::optional<StreamGroup> StreamReader::group(std::string_view name) const {
  std::string stored;
  if (!data_.get(Space::kData, group_key(id_, name), &stored)) return std::nullopt;
  StreamGroup group{.name = std::string(name)};
  if (decode_group(stored, &group)) return group;
  latch_corrupt();
  return std::nullopt;
}

void StreamReader::walk_groups(const std::function<bool(const StreamGroup&)>& each) const {
  const std::string prefix = stream_prefix(id_, StreamPart::kGroup);
  walk_records(prefix, prefix, [&](std::string_view key, std::string_view value) {
    StreamGroup group{.name = std::string(key.substr(prefix.size()))};
    if (decode_group(value, &group)) return each(group);
    latch_corrupt();
    return false;
  });
}

std::optional<StreamConsumer> StreamReader::consumer(const StreamGroup& group,
                                                     std::string_view name) const {
  std::string stored;
  if (!data_.get(Space::kData, consumer_key(id_, group.number, name), &stored)) return std::nullopt;
  StreamConsumer consumer{.name = std::string(name)};
  if (decode_consumer(stored, &consumer)) return consumer;
  latch_corrupt();
  return std::nullopt;
}

void StreamReader::walk_consumers(const StreamGroup& group,
                                  const std::function<bool(const StreamConsumer&)>& each) const {
  const std::string prefix = group_prefix(id_, StreamPart::kConsumer, group.number);
  walk_records(prefix, prefix, [&](std::string_view key, std::string_view value) {
    StreamConsumer consumer{.name = std::string(key.substr(prefix.size()))};
    if (decode_consumer(value, &consumer)) return each(consumer);
    latch_corrupt();
    return false;
  });
}

std::optional<StreamPending> StreamReader::pending(const StreamGroup& group, StreamId id) const {
  std::string stored;
  if (!data_.get(Space::kData, pending_key(id_, group.number, id), &stored)) return std::nullopt;
  StreamPending pending{.id = id};
  if (decode_pending(stored, &pending)) return pending;
  latch_corrupt();
  return std::nullopt;
}

std::optional<StreamId> StreamReader::last_pending(const StreamGroup& group) const {
  const std::string prefix = group_prefix(id_, StreamPart::kPending, group.number);
  const std::string last = prefix + stream_id_bytes(kStreamIdMax);
  const auto at = data_.cursor(Space::kData, prefix, prefix_end(prefix));
  at->seek_for_prev(last);
  std::optional<StreamId> id;
  if (at->valid()) id = read_stream_id(at->key().substr(prefix.size()));
  data_.check(*at);
  return id;
}

void StreamReader::walk_pending(const StreamGroup& group, StreamId first,
                                const EachPending& each) const {
  const std::string prefix = group_prefix(id_, StreamPart::kPending, group.number);
  walk_records(prefix, prefix + stream_id_bytes(first),
               [&](std::string_view key, std::string_view value) {
                 StreamPending pending{.id = read_stream_id(key.substr(prefix.size()))};
                 if (decode_pending(value, &pending)) return each(pending);
                 latch_corrupt();
                 return false;
               });
}

void StreamReader::walk_pending(const StreamGroup& group, const StreamConsumer& consumer,
                                StreamId first, const EachPending& each) const {
  const std::string prefix = owned_prefix(id_, group.number, consumer.number);
  walk_records(prefix, prefix + stream_id_bytes(first),
               [&](std::string_view key, std::string_view) {
                 const auto found = pending(group, read_stream_id(key.substr(prefix.size())));
                 if (!found) latch_corrupt();
                 return found && each(*found);
               });
}

bool StreamReader::deleted_since(StreamId id) const {
  return length_ != 0 && notes_.max_deleted != kStreamIdMin && id <= notes_.max_deleted;
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
