// How the entries of a stream stand in a dump: in listpacks of up to some hundred,
//
//   master   live | deleted | fields, their names | 0
//   entries  flags | ms - master's | seq - master's | (fields, name, value ... or only values)
//            | how many items to go back
#include "src/types/rdb/rdb_stream.h"

#include <algorithm>
#include <span>

#include "src/types/rdb/rdb_listpack.h"
#include "storage/codec.h"

namespace ingot::types::rdb {

namespace {

constexpr int64_t kDeleted = 1;
constexpr int64_t kSameFields = 2;  // as the master's
constexpr uint64_t kNodeBytesMax = 1 << 30;

}  // namespace

void append_id(std::string* out, StreamId id) {
  append_length(out, id.ms);
  append_length(out, id.seq);
}

bool read_id(Input& in, StreamId* id) {
  return in.length(&id->ms) && in.length(&id->seq);
}

bool read_raw_id(Input& in, StreamId* id) {
  std::string_view raw;
  if (!in.take(kStreamIdBytes, &raw)) return false;
  *id = read_stream_id(raw);
  return true;
}

namespace {

// --- encoding

bool same_names(const Stream::Entry& a, const Stream::Entry& b) {
  return std::ranges::equal(a.fields, b.fields, {}, &std::pair<std::string, std::string>::first,
                            &std::pair<std::string, std::string>::first);
}

size_t entry_bytes(const Stream::Entry& entry) {
  size_t bytes = 0;
  for (const auto& [name, value] : entry.fields) bytes += name.size() + value.size();
  return bytes;
}

void add_entry(const Stream::Entry& entry, const Stream::Entry& master, ListpackWriter& items) {
  const bool same = same_names(entry, master);
  const auto fields = static_cast<int64_t>(entry.fields.size());
  items.add(same ? kSameFields : int64_t{0});
  items.add(static_cast<int64_t>(entry.id.ms - master.id.ms));
  items.add(static_cast<int64_t>(entry.id.seq - master.id.seq));
  if (!same) items.add(fields);
  for (const auto& [name, value] : entry.fields) {
    if (!same) items.add(name);
    items.add(value);
  }
  items.add(same ? fields + 3 : 2 * fields + 4);
}

}  // namespace

void append_stream_node(std::span<const Stream::Entry> entries, bool compress, std::string* out) {
  const Stream::Entry& master = entries.front();
  ListpackWriter items;
  items.add(static_cast<int64_t>(entries.size()));
  items.add(int64_t{0});
  items.add(static_cast<int64_t>(master.fields.size()));
  for (const auto& [name, value] : master.fields) items.add(name);
  items.add(int64_t{0});
  for (const Stream::Entry& entry : entries) add_entry(entry, master, items);
  append_length(out, kStreamIdBytes);
  out->append(stream_id_bytes(master.id));
  append_string(out, items.finish(), compress);
}

namespace {

// How many entries from `begin` on Redis' XADD puts into one listpack.
size_t node_size(std::span<const Stream::Entry> entries, const EncodeOptions& options) {
  const uint64_t bytes_max = options.stream_node_max_bytes == 0
                                 ? kNodeBytesMax
                                 : std::min(options.stream_node_max_bytes, kNodeBytesMax);
  const Stream::Entry& master = entries.front();
  ListpackWriter items;  // as it was filled when the next entry came
  items.add(int64_t{1});
  items.add(int64_t{0});
  items.add(static_cast<int64_t>(master.fields.size()));
  for (const auto& [name, value] : master.fields) items.add(name);
  items.add(int64_t{0});
  add_entry(master, master, items);
  size_t size = 1;
  for (; size < entries.size(); ++size) {
    if (items.bytes() + entry_bytes(entries[size]) >= bytes_max) break;
    if (options.stream_node_max_entries > 0 && size >= options.stream_node_max_entries) break;
    add_entry(entries[size], master, items);
  }
  return size;
}

void append_group(const Stream::Group& group, bool compress, std::string* out) {
  append_string(out, group.name, compress);
  append_id(out, group.last_id);
  append_length(out, static_cast<uint64_t>(group.entries_read));
  append_length(out, group.pending.size());
  for (const Stream::Pending& pending : group.pending) {
    out->append(stream_id_bytes(pending.id));
    append_le(out, static_cast<uint64_t>(pending.delivered_ms), 8);
    append_length(out, pending.deliveries);
  }
  std::vector<std::vector<StreamId>> of_consumer(group.consumers.size());
  for (const Stream::Pending& pending : group.pending) {
    of_consumer[pending.consumer].push_back(pending.id);
  }
  append_length(out, group.consumers.size());
  for (size_t i = 0; i < group.consumers.size(); ++i) {
    append_string(out, group.consumers[i].name, compress);
    append_le(out, static_cast<uint64_t>(group.consumers[i].seen_ms), 8);
    append_length(out, of_consumer[i].size());
    for (const StreamId id : of_consumer[i]) out->append(stream_id_bytes(id));
  }
}

// --- decoding

// Hands out a node's items one by one.
class ItemReader {
 public:
  explicit ItemReader(const Items& items) : items_(items) {}
  bool text(std::string* out) {
    if (next_ == items_.size()) return false;
    *out = items_[next_++];
    return true;
  }
  bool number(int64_t* out) {
    if (next_ == items_.size()) return false;
    const std::optional<int64_t> number = as_integer(items_[next_++]);
    if (number) *out = *number;
    return number.has_value();
  }
  bool count(size_t* out) {
    int64_t value;
    if (!number(&value) || value < 0 || static_cast<uint64_t>(value) > left()) return false;
    *out = static_cast<size_t>(value);
    return true;
  }
  size_t left() const { return items_.size() - next_; }

 private:
  const Items& items_;
  size_t next_ = 0;
};

// One entry of a node; a deleted one is read over.
bool read_entry(ItemReader& items, StreamId master, const std::vector<std::string>& names,
                bool* deleted, Stream::Entry* entry) {
  const size_t begin = items.left();
  int64_t flags, ms, seq, items_back;
  if (!items.number(&flags) || !items.number(&ms) || !items.number(&seq)) return false;
  if ((flags & ~(kDeleted | kSameFields)) != 0) return false;
  *deleted = (flags & kDeleted) != 0;
  const bool same = (flags & kSameFields) != 0;
  size_t fields = names.size();
  if (!same && !items.count(&fields)) return false;
  if (fields > items.left()) return false;
  entry->id = {master.ms + static_cast<uint64_t>(ms), master.seq + static_cast<uint64_t>(seq)};
  for (size_t i = 0; i < fields; ++i) {
    auto& [name, value] = entry->fields.emplace_back();
    if (same) {
      name = names[i];
    } else if (!items.text(&name)) {
      return false;
    }
    if (!items.text(&value)) return false;
  }
  const auto read = static_cast<int64_t>(begin - items.left());
  return items.number(&items_back) && items_back == read;
}

}  // namespace

bool read_stream_node(StreamId master, std::string_view bytes,
                      std::vector<Stream::Entry>* entries) {
  Items packed;
  if (!read_listpack(bytes, &packed)) return false;
  ItemReader items(packed);
  int64_t live, dead, end;
  size_t fields;
  if (!items.number(&live) || !items.number(&dead) || !items.count(&fields)) return false;
  std::vector<std::string> names(fields);
  for (std::string& name : names) {
    if (!items.text(&name)) return false;
  }
  if (!items.number(&end) || end != 0) return false;
  while (items.left() > 0) {
    Stream::Entry entry;
    bool deleted;
    if (!read_entry(items, master, names, &deleted, &entry)) return false;
    --(deleted ? dead : live);
    if (deleted) continue;
    if (!entries->empty() && entry.id <= entries->back().id) return false;
    entries->push_back(std::move(entry));
  }
  return live == 0 && dead == 0;
}

int64_t entries_read_until(StreamId id, bool any, StreamId first, StreamId last, uint64_t added) {
  if (!any) return 0;
  if (id >= last) return id == last ? static_cast<int64_t>(added) : -1;
  if (id > first) return -1;
  return id == first ? 1 : 0;
}

void encode_stream(const Stream& stream, const EncodeOptions& options, std::string* out) {
  std::vector<std::span<const Stream::Entry>> nodes;
  for (std::span<const Stream::Entry> rest(stream.entries); !rest.empty();) {
    nodes.push_back(rest.first(node_size(rest, options)));
    rest = rest.subspan(nodes.back().size());
  }
  append_length(out, nodes.size());
  for (const auto node : nodes) append_stream_node(node, options.compress, out);
  append_length(out, stream.entries.size());
  append_id(out, stream.last_id);
  append_id(out, stream.entries.empty() ? StreamId{} : stream.entries.front().id);
  append_id(out, stream.max_deleted_id);
  append_length(out, stream.entries_added);
  append_length(out, stream.groups.size());
  for (const Stream::Group& group : stream.groups) append_group(group, options.compress, out);
}

}  // namespace ingot::types::rdb
