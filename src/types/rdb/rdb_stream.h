// Streams in Redis' dumps: one of the types that rdb_object.h encodes and decodes. Pure.
#pragma once

#include "src/types/rdb/rdb_bytes.h"
#include "src/types/rdb/rdb_object.h"

namespace ingot::types::rdb {

void encode_stream(const Stream& stream, const EncodeOptions& options, std::string* out);
// `second_form`: the one of version 7.0, which tells more about what was deleted.
[[nodiscard]] bool decode_stream(Input& in, bool second_form, Stream* stream);

}  // namespace ingot::types::rdb
