// A stream of an RDB file: its nodes of entries one by one, then what it notes, then its groups. Of
// a group what is pending is held until its consumers have told what of it is theirs.
#include <algorithm>
#include <optional>

#include "src/data/rdb_value.h"
#include "src/types/rdb/rdb_stream.h"
#include "src/types/stream_bytes.h"
#include "src/types/stream_value.h"

namespace ingot::data {

using types::StreamId;
using types::rdb::Input;
using types::rdb::ObjectType;

namespace {

class StreamValue : public RdbValue {
 public:
  StreamValue(ObjectType type, const StreamPlace& place) : type_(type), place_(place) {
    if (!place.kept) return;
    writer_.emplace(place.keys, place.db, place.key, nullptr, place.inline_max_bytes);
  }

  bool take(Input& in) override {
    switch (state_) {
      case State::kNodes:
        if (!in.length(&nodes_)) return false;
        state_ = State::kNode;
        return true;
      case State::kNode:
        if (nodes_ > 0) return take_node(in);
        state_ = State::kNotes;
        return true;
      case State::kNotes:
        return take_notes(in);
      case State::kGroup:
        return take_group(in);
      case State::kPending:
        return take_pending(in);
      case State::kConsumers:
        return in.length(&consumers_) && next_consumer();
      case State::kConsumer:
        return take_consumer(in);
      case State::kOwned:
        return take_owned(in);
      case State::kEnd:
        break;
    }
    return false;
  }
  bool complete() const override { return state_ == State::kEnd; }

  bool store() override {
    writer_->finish();
    types::KeyWriter& keys = place_.keys;
    types::Record record;
    if (place_.expire_ms == 0 || !keys.peek(place_.db, place_.key, &record)) return true;
    storage::Metadata expiring = record.metadata();
    expiring.expire_ms = place_.expire_ms;
    keys.store(place_.db, place_.key, &record, expiring, types::Touch::kQuiet);
    return true;
  }

 private:
  enum class State : uint8_t {
    kNodes,
    kNode,
    kNotes,
    kGroup,
    kPending,
    kConsumers,
    kConsumer,
    kOwned,
    kEnd
  };
  struct Pending {
    StreamId id;
    int64_t delivered_ms;
    uint64_t deliveries;
    bool owned = false;
  };

  bool take_node(Input& in) {
    std::string master, node;
    if (!in.string(&master) || !in.string(&node)) return false;
    if (master.size() != types::kStreamIdBytes) return false;
    std::vector<types::rdb::Stream::Entry> entries;
    if (!types::rdb::read_stream_node(types::read_stream_id(master), node, &entries)) return false;
    std::vector<std::string_view> fields;
    for (const auto& entry : entries) {
      if (length_ > 0 && entry.id <= last_) return false;
      if (length_++ == 0) first_ = entry.id;
      last_ = entry.id;
      if (!writer_) continue;
      fields.clear();
      for (const auto& [field, value] : entry.fields) {
        fields.push_back(field);
        fields.push_back(value);
      }
      writer_->add(entry.id, fields);
    }
    --nodes_;
    return true;
  }

  bool take_notes(Input& in) {
    uint64_t length;
    StreamId last, first, max_deleted;
    if (!in.length(&length) || !types::rdb::read_id(in, &last)) return false;
    added_ = length;
    if (type_ != ObjectType::kStream &&
        (!types::rdb::read_id(in, &first) || !types::rdb::read_id(in, &max_deleted) ||
         !in.length(&added_))) {
      return false;
    }
    if (!in.length(&groups_)) return false;
    if (length != length_ || (length_ > 0 && last_ > last)) return false;
    last_ = last;
    if (writer_) writer_->set_notes(last, added_, max_deleted);
    state_ = groups_ == 0 ? State::kEnd : State::kGroup;
    return true;
  }

  bool take_group(Input& in) {
    std::string name;
    StreamId last;
    uint64_t read = 0, pending;
    if (!in.string(&name) || !types::rdb::read_id(in, &last)) return false;
    if (type_ != ObjectType::kStream && !in.length(&read)) return false;
    if (!in.length(&pending)) return false;
    if (groups_seen_++ > 0 && name <= group_.name) return false;
    group_ = {.name = name};
    const int64_t entries_read =
        type_ == ObjectType::kStream
            ? types::rdb::entries_read_until(last, length_ > 0, first_, last_, added_)
            : static_cast<int64_t>(read);
    if (writer_) group_ = writer_->create_group(name, last, entries_read);
    pending_.clear();
    owned_ = 0;
    left_ = pending;
    state_ = left_ == 0 ? State::kConsumers : State::kPending;
    return true;
  }

  bool take_pending(Input& in) {
    Pending pending{};
    uint64_t delivered_ms;
    if (!types::rdb::read_raw_id(in, &pending.id) || !in.le64(&delivered_ms) ||
        !in.length(&pending.deliveries)) {
      return false;
    }
    if (!pending_.empty() && pending.id <= pending_.back().id) return false;
    pending.delivered_ms = static_cast<int64_t>(delivered_ms);
    pending_.push_back(pending);
    if (--left_ == 0) state_ = State::kConsumers;
    return true;
  }

  bool take_consumer(Input& in) {
    std::string name;
    uint64_t seen_ms, active_ms;
    if (!in.string(&name) || !in.le64(&seen_ms)) return false;
    // When it was given something last: nothing that we keep.
    if (type_ == ObjectType::kStream3 && !in.le64(&active_ms)) return false;
    if (!in.length(&left_)) return false;
    if (consumers_seen_++ > 0 && name <= consumer_.name) return false;
    consumer_ = {.name = name};
    if (writer_) {
      consumer_ = writer_->create_consumer(&group_, name, static_cast<int64_t>(seen_ms));
    }
    --consumers_;
    state_ = State::kOwned;
    return left_ > 0 || end_consumer();
  }

  bool take_owned(Input& in) {
    StreamId id;
    if (!types::rdb::read_raw_id(in, &id)) return false;
    const auto found = std::ranges::lower_bound(pending_, id, {}, &Pending::id);
    if (found == pending_.end() || found->id != id || found->owned) return false;
    found->owned = true;
    ++owned_;
    if (writer_) {
      writer_->give(&group_, &consumer_,
                    {.id = id,
                     .consumer = consumer_.name,
                     .delivered_ms = found->delivered_ms,
                     .deliveries = found->deliveries},
                    /*before=*/nullptr);
    }
    return --left_ > 0 || end_consumer();
  }

  bool end_consumer() {
    if (writer_) writer_->store(group_, consumer_);
    return next_consumer();
  }

  // False: the group is complete, and some of its pending entries are nobody's.
  bool next_consumer() {
    if (consumers_ > 0) {
      state_ = State::kConsumer;
      return true;
    }
    if (owned_ != pending_.size()) return false;
    consumers_seen_ = 0;
    if (writer_) writer_->store(group_);
    state_ = --groups_ == 0 ? State::kEnd : State::kGroup;
    return true;
  }

  const ObjectType type_;
  const StreamPlace place_;
  std::optional<types::StreamWriter> writer_;  // none: it is read over
  State state_ = State::kNodes;
  uint64_t nodes_ = 0;
  uint64_t length_ = 0;
  StreamId first_, last_;
  uint64_t added_ = 0;
  uint64_t groups_ = 0;  // to come
  size_t groups_seen_ = 0;
  types::StreamGroup group_;
  std::vector<Pending> pending_;  // of the group, by ID
  size_t owned_ = 0;
  uint64_t consumers_ = 0;  // to come
  size_t consumers_seen_ = 0;
  types::StreamConsumer consumer_;
  uint64_t left_ = 0;  // pending entries to come
};

}  // namespace

std::unique_ptr<RdbValue> begin_stream(ObjectType type, const StreamPlace& place) {
  return std::make_unique<StreamValue>(type, place);
}

}  // namespace ingot::data
