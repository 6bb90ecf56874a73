// Replies with the elements of a collection, however many they are: a few are written at once, many
// or large ones are streamed from the view while the client takes them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

// Writes the next part of a long reply until it is enough(), and answers whether there is more.
// Runs later and on other threads, one call at a time: let it capture by value.
using Enough = std::function<bool()>;
using WritePiece = std::move_only_function<bool(storage::Reader& data, contract::ReplySink& reply,
                                                const Enough& enough)>;
// All that it writes, read from the view.
void stream_reply(data::Services& services, std::shared_ptr<const data::View> view,
                  contract::ReplySink& reply, WritePiece write, data::PieceSource::Use use = {});

// What `answer` writes for each of the names, in their order, read from the view. The rest of a
// reply of which so much is held that more has to be streamed.
using AnswerName =
    std::function<void(storage::Reader& data, std::string_view name, contract::ReplySink& reply)>;
void stream_answers(contract::ReadContext& ctx, contract::Args names, AnswerName answer);

// Whether the rest of a reply can be streamed. Else it is held: there is no view, or a script wants
// it whole. False with a miss latched: the handler returns, and runs again with a view.
bool can_stream(contract::ReadContext& ctx);

}  // namespace ingot::commands
