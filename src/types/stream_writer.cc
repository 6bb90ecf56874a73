// Adding, removing and trimming entries, and what happens to groups and their consumers.
#include <algorithm>

#include "src/types/collection.h"
#include "src/types/stream_bytes.h"
#include "src/types/stream_value.h"

namespace ingot::types {

StreamWriter::StreamWriter(KeyWriter& keys, int db, std::string_view key, const Record* before,
                           uint64_t inline_max_bytes)
    : StreamReader(before != nullptr ? StreamReader(keys.data(), *before)
                                     : StreamReader(keys.data())),
      keys_(keys),
      db_(db),
      key_(key),
      before_(before),
      inline_max_bytes_(inline_max_bytes) {
  if (before != nullptr) {
    after_ = before->metadata();
  } else {
    after_.type = storage::ValueType::kStream;
    changed_ = true;
  }
}

void StreamWriter::put(const std::string& key, std::string_view value) {
  elements_.put(keys_.overlay(), key, value);
  note_growth();
}

void StreamWriter::note_growth() {
  changed_ = true;
  if (!is_large() && kNotesBytes + elements_.packed().size() > inline_max_bytes_) {
    elements_.make_large(keys_.overlay(), keys_.new_collection());
  }
}

void StreamWriter::erase(std::string_view key) {
  elements_.remove(keys_.overlay(), key);
  changed_ = true;
}

void StreamWriter::erase_all(const std::string& prefix) {
  walk_prefix(prefix, [&](std::string_view key, std::string_view) {
    erase(key);
    return true;
  });
}

void StreamWriter::look_ahead(std::span<const StreamId> ids, const StreamGroup* group) {
  if (!is_large() || ids.size() < 2) return;
  std::vector<std::string> keys;
  std::vector<storage::HashedKey> hashed;
  for (const StreamId each : ids) {
    keys.push_back(storage::collection_begin(id()));
    keys.back().append(group != nullptr ? pending_key(group->number, each) : entry_key(each));
  }
  for (const std::string& key : keys) hashed.emplace_back(storage::Space::kData, key);
  keys_.overlay().look_ahead(hashed);
}

void StreamWriter::add(StreamId id, std::span<const std::string_view> fields) {
  std::string entry(1, storage::kPlainElement);
  for (std::string_view item : fields) append_packed(&entry, item);
  elements_.add(keys_.overlay(), entry_key(id), entry);
  note_growth();
  if (length_ == 0) notes_.first = id;
  notes_.last = id;
  ++notes_.added;
  ++length_;
}

void StreamWriter::find_first() {
  const StreamId from = notes_.first;
  notes_.first = {};
  first_is_gone_ = false;
  if (length_ == 0) return;
  walk(from, kStreamIdMax, /*reverse=*/false, [&](StreamId id, const StreamFields&) {
    notes_.first = id;
    return false;
  });
}

bool StreamWriter::remove(StreamId id) {
  return remove({&id, 1}) != 0;
}

uint64_t StreamWriter::remove(std::span<const StreamId> ids) {
  uint64_t removed = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i % kLookedUpAhead == 0) {
      look_ahead(ids.subspan(i, std::min(ids.size() - i, kLookedUpAhead)));
    }
    removed += take_out(ids[i]) ? 1 : 0;
  }
  if (first_is_gone_) find_first();
  return removed;
}

bool StreamWriter::take_out(StreamId id) {
  std::string stored;
  const std::string key = entry_key(id);
  if (id < notes_.first || !elements_.get(key, &stored)) return false;
  erase(key);
  --length_;
  notes_.max_deleted = std::max(notes_.max_deleted, id);
  if (id == notes_.first) first_is_gone_ = true;
  return true;
}

uint64_t StreamWriter::trim(const StreamTrim& trim) {
  std::vector<std::string> keys;
  const uint64_t gone = walk_trimmed(trim, [&](StreamId id) {
    keys.push_back(entry_key(id));
    return true;
  });
  for (uint64_t i = 0; i < gone; ++i) erase(keys[i]);
  length_ -= gone;
  if (gone != 0) find_first();
  return gone;
}

void StreamWriter::set_notes(StreamId last, uint64_t added, StreamId max_deleted) {
  notes_.last = last;
  notes_.added = added;
  notes_.max_deleted = max_deleted;
  changed_ = true;
}

StreamGroup StreamWriter::create_group(std::string_view name, StreamId last, int64_t entries_read) {
  StreamGroup group{.name = std::string(name),
                    .number = notes_.next_group++,
                    .last = last,
                    .entries_read = entries_read};
  ++notes_.groups;
  store(group);
  return group;
}

void StreamWriter::store(const StreamGroup& group) {
  put(group_key(group.name), encode_group(group));
}

void StreamWriter::destroy(const StreamGroup& group) {
  erase(group_key(group.name));
  for (const auto part : {StreamPart::kConsumer, StreamPart::kPending, StreamPart::kOwned}) {
    erase_all(group_prefix(part, group.number));
  }
  --notes_.groups;
}

StreamConsumer StreamWriter::create_consumer(StreamGroup* group, std::string_view name,
                                             int64_t now_ms) {
  StreamConsumer consumer{
      .name = std::string(name), .number = group->next_consumer++, .seen_ms = now_ms};
  ++group->consumers;
  store(*group, consumer);
  return consumer;
}

void StreamWriter::store(const StreamGroup& group, const StreamConsumer& consumer) {
  put(consumer_key(group.number, consumer.name), encode_consumer(consumer));
}

void StreamWriter::store(const StreamGroup& group, const StreamPending& pending) {
  put(pending_key(group.number, pending.id), encode_pending(pending));
}

void StreamWriter::remove(StreamGroup* group, const StreamConsumer& consumer) {
  const std::string prefix = owned_prefix(group->number, consumer.number);
  walk_prefix(prefix, [&](std::string_view key, std::string_view) {
    erase(pending_key(group->number, read_stream_id(key.substr(prefix.size()))));
    erase(key);
    return true;
  });
  erase(consumer_key(group->number, consumer.name));
  group->leave(consumer);
}

// Takes the entry from its owner's share. (Not from what is pending in the group.)
void StreamWriter::disown(StreamGroup* group, const StreamPending& pending,
                          StreamConsumer* consumer) {
  std::optional<StreamConsumer> other;
  if (consumer == nullptr || consumer->name != pending.consumer) {
    other = StreamReader::consumer(*group, pending.consumer);
    if (!other) return latch_corrupt();
    consumer = &*other;
  }
  erase(owned_key(group->number, consumer->number, pending.id));
  --consumer->pending;
  --group->pending;
  if (other) store(*group, *other);
}

void StreamWriter::give(StreamGroup* group, StreamConsumer* consumer, const StreamPending& pending,
                        const StreamPending* before) {
  if (before != nullptr) disown(group, *before, consumer);
  store(*group, pending);
  put(owned_key(group->number, consumer->number, pending.id),
      std::string_view(&storage::kPlainElement, 1));
  ++consumer->pending;
  ++group->pending;
}

void StreamWriter::release(StreamGroup* group, const StreamPending& pending,
                           StreamConsumer* consumer) {
  disown(group, pending, consumer);
  erase(pending_key(group->number, pending.id));
}

void StreamWriter::finish(Touch touch) {
  if (!changed_) return;
  std::string payload;
  encode_notes(notes_, &payload);
  if (is_large()) {
    if (!after_.collection) after_.collection = storage::Metadata::Collection{.id = id()};
    after_.collection->count = length_;
    revise(&after_);
  } else {
    payload.append(elements_.packed());
  }
  after_.payload = payload;
  keys_.store(db_, key_, before_, after_, before_ == nullptr ? Touch::kModified : touch);
}

}  // namespace ingot::types
