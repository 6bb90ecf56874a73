// Parsing and printing IDs, their neighbours, and their bytes in the order of the IDs.
#include "src/types/stream_id.h"

#include <algorithm>
#include <charconv>

#include "storage/codec.h"

namespace ingot::types {
namespace {

// As strtoull takes it, which Redis uses here: spaces and a sign may stand before it.
std::optional<uint64_t> parse_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n\v\f\r"), text.size()));
  if (text.starts_with('+')) text.remove_prefix(1);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<StreamId> id_after(StreamId id) {
  if (id == kStreamIdMax) return std::nullopt;
  if (id.seq == UINT64_MAX) return StreamId{id.ms + 1, 0};
  return StreamId{id.ms, id.seq + 1};
}

std::optional<StreamId> id_before(StreamId id) {
  if (id == kStreamIdMin) return std::nullopt;
  if (id.seq == 0) return StreamId{id.ms - 1, UINT64_MAX};
  return StreamId{id.ms, id.seq - 1};
}

std::string stream_id_text(StreamId id) {
  return std::to_string(id.ms) + "-" + std::to_string(id.seq);
}

std::optional<StreamId> parse_stream_id(std::string_view text, uint64_t missing_seq) {
  const size_t dash = text.find('-');
  const auto ms = parse_number(text.substr(0, dash));
  const auto seq = dash == std::string_view::npos ? std::optional(missing_seq)
                                                  : parse_number(text.substr(dash + 1));
  if (!ms || !seq) return std::nullopt;
  return StreamId{*ms, *seq};
}

std::string stream_id_bytes(StreamId id) {
  std::string out;
  storage::append_be64(&out, id.ms);
  storage::append_be64(&out, id.seq);
  return out;
}

StreamId read_stream_id(std::string_view bytes) {
  return {storage::read_be64(bytes), storage::read_be64(bytes.substr(8))};
}

}  // namespace ingot::types
