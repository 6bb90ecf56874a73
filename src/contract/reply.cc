// Encoded replies with their streamed parts: how bodies are put into the sink and taken back.
#include "src/contract/reply.h"

namespace ingot::contract {

void EncodedReply::truncate(size_t mark) {
  bytes.resize(mark);
  while (!bodies.empty() && bodies.back().offset > mark) bodies.pop_back();
}

void RespSink::stream(Stream body) {
  writer_.bulk_header(body.bytes);
  out_.bodies.push_back({.offset = out_.bytes.size(), .source = std::move(body.source)});
  writer_.bulk_end();
}

void RespSink::elements(std::unique_ptr<net::BodySource> body) {
  out_.bodies.push_back({.offset = out_.bytes.size(), .source = std::move(body)});
}

}  // namespace ingot::contract
