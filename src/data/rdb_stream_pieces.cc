// A large stream in the bytes of an RDB file. Redis' form begins with the number of its nodes, so
// the entries are walked over twice: to count nodes, and to write them. The names of groups, and of
// the consumers of one group, are held.
#include <algorithm>

#include "src/data/rdb_pieces.h"
#include "src/types/packed.h"
#include "src/types/rdb/rdb_bytes.h"
#include "src/types/rdb/rdb_stream.h"
#include "src/types/stream_id.h"
#include "src/types/stream_value.h"

namespace ingot::data {

using types::StreamId;
using types::rdb::append_length;
using types::rdb::append_string;
using Entry = types::rdb::Stream::Entry;

namespace {

constexpr uint64_t kNodeEntries = 100;
constexpr uint64_t kNodeBytes = 4096;
constexpr uint64_t kCountedAtOnce = 10'000;  // entries that one piece looks at

class StreamPieces : public RdbPieces {
 public:
  explicit StreamPieces(const RdbSource& from) : from_(from), stream_(from.data, from.record) {}

  types::rdb::ObjectType type() const override { return types::rdb::ObjectType::kStream2; }

  bool next(std::string* out, size_t bytes_max) override {
    while (out->size() < bytes_max && state_ != State::kEnd && !from_.data.failed()) {
      if (!step(out, bytes_max)) break;
    }
    return state_ != State::kEnd;
  }

 private:
  enum class State : uint8_t {
    kCount,
    kEntries,
    kNotes,
    kGroup,
    kPending,
    kConsumer,
    kOwned,
    kEnd
  };

  // Where one node ends and the next begins, for both walks.
  struct Node {
    uint64_t entries = 0;
    uint64_t bytes = 0;
    bool takes(uint64_t more_bytes) const {
      return entries == 0 || (entries < kNodeEntries && bytes + more_bytes < kNodeBytes);
    }
    void add(uint64_t more_bytes) {
      ++entries;
      bytes += more_bytes;
    }
  };

  // False: it looked at much and wrote little.
  bool step(std::string* out, size_t bytes_max) {
    switch (state_) {
      case State::kCount:
        return count_nodes(out);
      case State::kEntries:
        write_entries(out, bytes_max);
        return true;
      case State::kNotes:
        write_notes(out);
        return true;
      case State::kGroup:
        begin_group(out);
        return true;
      case State::kPending:
        write_pending(out, bytes_max);
        return true;
      case State::kConsumer:
        begin_consumer(out);
        return true;
      case State::kOwned:
        write_owned(out, bytes_max);
        return true;
      case State::kEnd:
        break;
    }
    return true;
  }

  bool count_nodes(std::string* out) {
    uint64_t looked = 0;
    const bool ended = walk_entries([&](StreamId, const types::StreamFields& fields) {
      const uint64_t bytes = fields.packed().size();
      if (!node_.takes(bytes)) {
        ++nodes_;
        node_ = {};
      }
      node_.add(bytes);
      return ++looked < kCountedAtOnce;
    });
    if (!ended) return false;
    if (node_.entries > 0) ++nodes_;
    node_ = {};
    at_ = types::kStreamIdMin;
    append_length(out, nodes_);
    state_ = State::kEntries;
    return true;
  }

  void write_entries(std::string* out, size_t bytes_max) {
    std::vector<Entry> entries;
    Node node;
    StreamId node_begin = at_;
    const auto flush = [&] {
      types::rdb::append_stream_node(entries, from_.options.compress, out);
      entries.clear();
      node = {};
    };
    const bool ended = walk_entries([&](StreamId id, const types::StreamFields& fields) {
      const uint64_t bytes = fields.packed().size();
      if (!node.takes(bytes)) {
        flush();
        node_begin = id;
        if (out->size() >= bytes_max) return false;
      }
      node.add(bytes);
      Entry& entry = entries.emplace_back(Entry{.id = id, .fields = {}});
      types::PackedReader items = fields.items();
      for (std::string_view field, value; items.next(&field) && items.next(&value);) {
        entry.fields.emplace_back(field, value);
      }
      return true;
    });
    if (!ended) {
      at_ = node_begin;
      return;
    }
    if (!entries.empty()) flush();
    state_ = State::kNotes;
  }

  // From at_ on; at_ is then behind the last one that `each` took. True at the end of the stream.
  bool walk_entries(const types::StreamReader::EachEntry& each) {
    bool ended = true;
    stream_.walk(at_, types::kStreamIdMax, /*reverse=*/false,
                 [&](StreamId id, const types::StreamFields& fields) {
                   ended = each(id, fields);
                   at_ = after(id);
                   return ended && !from_.data.failed();
                 });
    return ended;
  }

  // There is always one: no entry of a group's or a stream's is behind the last ID.
  static StreamId after(StreamId id) { return types::id_after(id).value_or(types::kStreamIdMax); }

  void write_notes(std::string* out) {
    const types::StreamNotes& notes = stream_.notes();
    append_length(out, stream_.length());
    types::rdb::append_id(out, notes.last);
    types::rdb::append_id(out, notes.first);
    types::rdb::append_id(out, notes.max_deleted);
    append_length(out, notes.added);
    stream_.walk_groups([&](const types::StreamGroup& group) {
      groups_.push_back(group);
      return true;
    });
    append_length(out, groups_.size());
    next_group(0);
  }

  void next_group(size_t number) {
    group_ = number;
    state_ = number < groups_.size() ? State::kGroup : State::kEnd;
  }

  void begin_group(std::string* out) {
    const types::StreamGroup& group = groups_[group_];
    append_string(out, group.name, from_.options.compress);
    types::rdb::append_id(out, group.last);
    append_length(out, static_cast<uint64_t>(group.entries_read));
    append_length(out, group.pending);
    at_ = types::kStreamIdMin;
    state_ = State::kPending;
  }

  void write_pending(std::string* out, size_t bytes_max) {
    bool ended = true;
    stream_.walk_pending(groups_[group_], at_, [&](const types::StreamPending& pending) {
      out->append(types::stream_id_bytes(pending.id));
      types::rdb::append_le(out, static_cast<uint64_t>(pending.delivered_ms), 8);
      append_length(out, pending.deliveries);
      at_ = after(pending.id);
      ended = out->size() < bytes_max;
      return ended && !from_.data.failed();
    });
    if (!ended) return;
    consumers_.clear();
    stream_.walk_consumers(groups_[group_], [&](const types::StreamConsumer& consumer) {
      consumers_.push_back(consumer);
      return true;
    });
    append_length(out, consumers_.size());
    next_consumer(0);
  }

  void next_consumer(size_t number) {
    consumer_ = number;
    if (number < consumers_.size()) {
      state_ = State::kConsumer;
    } else {
      next_group(group_ + 1);
    }
  }

  void begin_consumer(std::string* out) {
    const types::StreamConsumer& consumer = consumers_[consumer_];
    append_string(out, consumer.name, from_.options.compress);
    types::rdb::append_le(out, static_cast<uint64_t>(consumer.seen_ms), 8);
    append_length(out, consumer.pending);
    at_ = types::kStreamIdMin;
    state_ = State::kOwned;
  }

  void write_owned(std::string* out, size_t bytes_max) {
    bool ended = true;
    stream_.walk_pending(groups_[group_], consumers_[consumer_], at_,
                         [&](const types::StreamPending& pending) {
                           out->append(types::stream_id_bytes(pending.id));
                           at_ = after(pending.id);
                           ended = out->size() < bytes_max;
                           return ended && !from_.data.failed();
                         });
    if (ended) next_consumer(consumer_ + 1);
  }

  const RdbSource from_;
  const types::StreamReader stream_;
  State state_ = State::kCount;
  StreamId at_ = types::kStreamIdMin;  // what is to be told next, of entries or what is pending
  Node node_;
  uint64_t nodes_ = 0;
  std::vector<types::StreamGroup> groups_;
  size_t group_ = 0;
  std::vector<types::StreamConsumer> consumers_;  // of the group at hand
  size_t consumer_ = 0;
};

}  // namespace

std::unique_ptr<RdbPieces> begin_stream_pieces(const RdbSource& from) {
  return std::make_unique<StreamPieces>(from);
}

}  // namespace ingot::data
