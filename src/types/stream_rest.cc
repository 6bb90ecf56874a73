// What is left of a large stream when very much of it goes: its records once more, without those.
#include "src/types/collection.h"
#include "src/types/stream_bytes.h"
#include "src/types/stream_value.h"

namespace ingot::types {

using storage::Space;

BuiltValue rest_of_stream(storage::Reader& data, const Record& record, const StreamTrim& trim,
                          const PutElement& put) {
  const StreamReader stream(data, record);
  const uint64_t gone = stream.walk_trimmed(trim, [](StreamId) { return true; });
  if (gone == 0) return {.metadata = record.metadata(), .payload = {}, .size = 1};
  StreamNotes notes = stream.notes();
  notes.first = {};
  const std::string entries = stream_prefix(StreamPart::kEntry);
  uint64_t seen = 0;
  BuiltValue rest =
      copy_collection(data, record, put, [&](Space, std::string_view element, std::string_view) {
        if (!element.starts_with(entries)) return true;
        if (seen++ == gone) notes.first = entry_id(element);
        return seen > gone;
      });
  rest.payload.clear();
  encode_notes(notes, &rest.payload);
  rest.metadata.collection->count -= gone;
  rest.changes = gone;
  return rest;
}

BuiltValue stream_without_group(storage::Reader& data, const Record& record,
                                const StreamGroup& group, const PutElement& put) {
  StreamNotes notes = StreamReader(data, record).notes();
  --notes.groups;
  const std::string key = group_key(group.name);
  const std::string parts[] = {group_prefix(StreamPart::kConsumer, group.number),
                               group_prefix(StreamPart::kPending, group.number),
                               group_prefix(StreamPart::kOwned, group.number)};
  BuiltValue rest =
      copy_collection(data, record, put, [&](Space, std::string_view element, std::string_view) {
        return element != key && !element.starts_with(parts[0]) && !element.starts_with(parts[1]) &&
               !element.starts_with(parts[2]);
      });
  rest.payload.clear();
  encode_notes(notes, &rest.payload);
  rest.changes = 1;
  return rest;
}

BuiltValue stream_without_consumer(storage::Reader& data, const Record& record,
                                   const StreamGroup& group, const StreamConsumer& consumer,
                                   const PutElement& put) {
  StreamGroup left = group;
  left.leave(consumer);
  const std::string key = group_key(group.name);
  const std::string name = consumer_key(group.number, consumer.name);
  const std::string owned = owned_prefix(group.number, consumer.number);
  const std::string pending = group_prefix(StreamPart::kPending, group.number);
  const auto keep = [&](Space space, std::string_view element, std::string_view value) {
    if (element == key) {
      put(space, element, encode_group(left));
      return false;
    }
    if (element == name || element.starts_with(owned)) return false;
    if (!element.starts_with(pending)) return true;
    StreamPending one;
    if (!decode_pending(value, &one)) {
      data.latch_error({storage::Status::Code::kCorruption, "unreadable record of a stream"});
    }
    return one.consumer != consumer.name;
  };
  BuiltValue rest = copy_collection(data, record, put, keep);
  rest.changes = 1;
  return rest;
}

}  // namespace ingot::types
