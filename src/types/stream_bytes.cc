// Encoding and decoding of a stream's notes, entries, groups, consumers and pending entries.
#include "src/types/stream_bytes.h"

namespace ingot::types {

using storage::append_le32;
using storage::append_le64;
using storage::read_le32;
using storage::read_le64;

namespace {

constexpr size_t kGroupBytes = 1 + 4 + kStreamIdBytes + 8 + 8 + 4 + 4;
constexpr size_t kConsumerBytes = 1 + 4 + 8 + 8;
constexpr size_t kPendingBytesMin = 1 + 8 + 8;

// Takes numbers off the front of bytes that are known to be enough.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}
  uint32_t u32() { return read_le32(take(4)); }
  uint64_t u64() { return read_le64(take(8)); }
  int64_t i64() { return static_cast<int64_t>(u64()); }
  StreamId id() { return read_stream_id(take(kStreamIdBytes)); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view take(size_t bytes) {
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  std::string_view rest_;
};

// Whether a key has what its part says that it has.
bool is_element_key(std::string_view key) {
  if (key.empty()) return false;
  switch (static_cast<StreamPart>(key.front())) {
    case StreamPart::kEntry:
      return key.size() == 1 + kStreamIdBytes;
    case StreamPart::kGroup:
      return true;
    case StreamPart::kConsumer:
      return key.size() >= 1 + 4;
    case StreamPart::kPending:
      return key.size() == 1 + 4 + kStreamIdBytes;
    case StreamPart::kOwned:
      return key.size() == 1 + 4 + 4 + kStreamIdBytes;
  }
  return false;
}

}  // namespace

std::string prefix_end(std::string prefix) {
  while (static_cast<uint8_t>(prefix.back()) == 0xff) prefix.pop_back();
  ++prefix.back();
  return prefix;
}

void encode_notes(const StreamNotes& notes, std::string* out) {
  out->append(stream_id_bytes(notes.first));
  out->append(stream_id_bytes(notes.last));
  out->append(stream_id_bytes(notes.max_deleted));
  append_le64(out, notes.added);
  append_le32(out, notes.groups);
  append_le32(out, notes.next_group);
}

bool decode_notes(std::string_view bytes, StreamNotes* notes) {
  if (bytes.size() < kNotesBytes) return false;
  Bytes in(bytes);
  notes->first = in.id();
  notes->last = in.id();
  notes->max_deleted = in.id();
  notes->added = in.u64();
  notes->groups = in.u32();
  notes->next_group = in.u32();
  return true;
}

std::optional<uint64_t> count_entries(std::string_view packed) {
  uint64_t entries = 0;
  PackedReader reader(packed);
  std::string_view key, value;
  while (reader.next(&key)) {
    if (!is_element_key(key) || !reader.next(&value) || value.empty()) return std::nullopt;
    if (static_cast<StreamPart>(key.front()) == StreamPart::kEntry) ++entries;
  }
  if (reader.broken()) return std::nullopt;
  return entries;
}

std::string encode_group(const StreamGroup& group) {
  std::string out(1, storage::kPlainElement);
  append_le32(&out, group.number);
  out.append(stream_id_bytes(group.last));
  append_le64(&out, static_cast<uint64_t>(group.entries_read));
  append_le64(&out, group.pending);
  append_le32(&out, group.consumers);
  append_le32(&out, group.next_consumer);
  return out;
}

bool decode_group(std::string_view stored, StreamGroup* group) {
  if (stored.size() != kGroupBytes) return false;
  Bytes in(stored.substr(1));
  group->number = in.u32();
  group->last = in.id();
  group->entries_read = in.i64();
  group->pending = in.u64();
  group->consumers = in.u32();
  group->next_consumer = in.u32();
  return true;
}

std::string encode_consumer(const StreamConsumer& consumer) {
  std::string out(1, storage::kPlainElement);
  append_le32(&out, consumer.number);
  append_le64(&out, static_cast<uint64_t>(consumer.seen_ms));
  append_le64(&out, consumer.pending);
  return out;
}

bool decode_consumer(std::string_view stored, StreamConsumer* consumer) {
  if (stored.size() != kConsumerBytes) return false;
  Bytes in(stored.substr(1));
  consumer->number = in.u32();
  consumer->seen_ms = in.i64();
  consumer->pending = in.u64();
  return true;
}

std::string encode_pending(const StreamPending& pending) {
  std::string out(1, storage::kPlainElement);
  append_le64(&out, static_cast<uint64_t>(pending.delivered_ms));
  append_le64(&out, pending.deliveries);
  out.append(pending.consumer);
  return out;
}

bool decode_pending(std::string_view stored, StreamPending* pending) {
  if (stored.size() < kPendingBytesMin) return false;
  Bytes in(stored.substr(1));
  pending->delivered_ms = in.i64();
  pending->deliveries = in.u64();
  pending->consumer = in.rest();
  return true;
}

}  // namespace ingot::types
