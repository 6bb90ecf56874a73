// Answering from what has landed and from the page cache.
#include "storage/no_wait_reads.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/check.h"

namespace ingot::storage {
namespace {

thread_local NoWaitReads* own = nullptr;

}  // namespace

OpenFile::~OpenFile() {
  ::close(fd_);
}

NoWaitReads* NoWaitReads::current() {
  return own;
}

NoWaitReads::Scope::Scope(NoWaitReads* reads) {
  INGOT_CHECK(own == nullptr);
  own = reads;
}

NoWaitReads::Scope::~Scope() {
  own = nullptr;
}

NoWaitReads::Pause::Pause() : before_(std::exchange(own, nullptr)) {}

NoWaitReads::Pause::~Pause() {
  own = before_;
}

NoWaitReads::Refusal::Refusal() : before_(std::exchange(own, &none_)) {}

NoWaitReads::Refusal::~Refusal() {
  own = before_;
}

NoWaitReads::Answer NoWaitReads::read(const std::shared_ptr<const OpenFile>& file, uint64_t offset,
                                      size_t bytes, char* into) {
  if (wants_) return {Answer::Kind::kWanted};
  for (const Landing& landing : landings_) {
    if (landing.file != file || offset < landing.offset ||
        offset + bytes > landing.offset + landing.bytes) {
      continue;
    }
    if (landing.error != 0) return {Answer::Kind::kFailed, 0, landing.error};
    const size_t from = std::min<size_t>(offset - landing.offset, landing.got);
    const size_t copied = std::min(bytes, landing.got - from);
    std::memcpy(into, landing.buffer.get() + from, copied);
    return {Answer::Kind::kCame, copied};
  }
  if (!file->direct() && cached_left_ > 0) {
    --cached_left_;
    const iovec whole{into, bytes};
    const ssize_t got = ::preadv2(file->fd(), &whole, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    if (got == static_cast<ssize_t>(bytes)) return {Answer::Kind::kCame, bytes};
  }
  landings_.push_back({.file = file, .offset = offset, .bytes = bytes, .buffer = nullptr});
  wants_ = true;
  return {Answer::Kind::kWanted};
}

}  // namespace ingot::storage
