// Streams in Redis' dumps: encoded whole or piece by piece, decoded piece by piece
// (data/rdb_value.h puts the pieces together). Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/types/rdb/rdb_bytes.h"
#include "src/types/rdb/rdb_object.h"

namespace ingot::types::rdb {

// --- for those that read or write a stream piece by piece

// What stands in a node is added to *entries, which rise.
[[nodiscard]] bool read_stream_node(StreamId master, std::string_view node,
                                    std::vector<Stream::Entry>* entries);
[[nodiscard]] bool read_id(Input& in, StreamId* id);      // as two lengths
[[nodiscard]] bool read_raw_id(Input& in, StreamId* id);  // as 16 bytes
void append_id(std::string* out, StreamId id);
// The node that these entries make, of which the first is the master.
void append_stream_node(std::span<const Stream::Entry> entries, bool compress, std::string* out);
// What version 5 did not note: how many entries a group that stands at `id` has read. `first` and
// `last`: of the stream, which has had `added` entries.
int64_t entries_read_until(StreamId id, bool any, StreamId first, StreamId last, uint64_t added);

// --- whole

void encode_stream(const Stream& stream, const EncodeOptions& options, std::string* out);

}  // namespace ingot::types::rdb
