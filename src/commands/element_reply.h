// Replies with the elements of a collection, however many they are: a few are written at once, many
// or large ones are streamed from the view while the client takes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "src/contract/context.h"
#include "src/data/piece_source.h"

namespace ingot::commands {

// Writes one record's part of the reply, and answers how many elements it held. Runs later and on
// other threads, too: let it capture by value.
using WriteElement = std::function<uint64_t(std::string_view key, std::string_view value,
                                            contract::ReplySink& reply)>;

// Every record of the range, `count` elements together, behind the header that the caller has
// announced (reply.array(count), reply.map(count), ...). A collection that holds more or fewer is
// damaged: an error, or the end of the connection, for its client would wait for the rest for ever.
void reply_elements(contract::ReadContext& ctx, data::RecordRange range, uint64_t count,
                    WriteElement write);

}  // namespace ingot::commands
