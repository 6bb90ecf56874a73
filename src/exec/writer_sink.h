// Where a command of the writer writes its reply: no more than may be held, so that what nobody
// would get is not done either. The writer thread's own.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/contract/reply.h"
#include "storage/reader.h"

namespace ingot::exec {

// Replies of others stand before this one, and it may stream. Once it is too long, reads fail, so
// that its command soon ends, and is undone.
class WriterSink : public contract::RespSink {
 public:
  WriterSink(contract::EncodedReply& out, int version, uint64_t bytes_max, storage::Reader& data)
      : RespSink(out, version),
        out_(out),
        begin_(out.bytes.size()),
        bytes_max_(bytes_max),
        data_(data) {}

  void bulk(std::string_view bytes) override {
    if (may_hold(bytes.size())) RespSink::bulk(bytes);
  }
  bool may_hold(uint64_t bytes) override {
    if (out_.bytes.size() - begin_ + bytes <= bytes_max_) return true;
    too_large_ = true;
    data_.latch_error({storage::Status::Code::kInvalid, "a reply is too large"});
    return false;
  }

  bool too_large() const { return too_large_; }
  uint64_t bytes_max() const { return bytes_max_; }

 private:
  contract::EncodedReply& out_;
  const size_t begin_;
  const uint64_t bytes_max_;
  storage::Reader& data_;
  bool too_large_ = false;
};

}  // namespace ingot::exec
