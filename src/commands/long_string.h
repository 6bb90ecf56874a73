// What commands do with string values of any length, long ones included: those are answered as a
// stream, linked where they are in the engine already, and made beside the writer.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/contract/context.h"
#include "src/contract/thresholds.h"
#include "src/types/keyspace.h"

namespace ingot::commands {

// Answers bytes [offset, offset + bytes) of the string, which must lie within it. Chunked strings
// are streamed from `held_max` on.
void reply_string(contract::ReadContext& ctx, const types::Record& record, uint64_t offset,
                  uint64_t bytes, uint64_t held_max = contract::kHeldStringsBytes);
void reply_string(contract::ReadContext& ctx, const types::Record& record);
void reply_string(contract::WriteContext& ctx, const types::Record& record);

// The length of the argument that holds the value: `text`, or what is in the engine instead.
uint64_t value_length(const contract::WriteContext& ctx, std::string_view text);

// Whether a string may grow to `length` + `added` bytes; answers the error if not.
bool length_allowed(contract::WriteContext& ctx, uint64_t length, uint64_t added);

// Makes the value the whole string. Nothing is answered.
void store_value(contract::WriteContext& ctx, std::string_view key, const types::Record* before,
                 std::string_view text, int64_t expire_ms);

// Writes the value over the string at `offset`. False: the run is given up, return at once.
[[nodiscard]] bool splice_value(contract::WriteContext& ctx, std::string_view key,
                                const types::Record* before, uint64_t offset,
                                std::string_view text);

}  // namespace ingot::commands
