// Asking io_uring for what work wants, and running it again.
#include "storage/read_ring.h"

#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "storage/check.h"

namespace ingot::storage {
namespace {

constexpr size_t kAlignment = 4096;  // of memory, for O_DIRECT on any device

thread_local ReadRing* current_ring = nullptr;

char* allocate(size_t bytes) {
  return static_cast<char*>(
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
}

}  // namespace

OpenFile::~OpenFile() {
  ::close(fd_);
}

struct ReadRing::Ring {
  io_uring uring;
  int wake_fd;
  uint64_t woken;  // where the kernel puts what it reads of wake_fd

  // The only entry without a work: its completion is what wake() is for.
  void await_wake() {
    io_uring_sqe* entry = io_uring_get_sqe(&uring);
    INGOT_CHECK(entry != nullptr);
    io_uring_prep_read(entry, wake_fd, &woken, sizeof woken, 0);
    io_uring_sqe_set_data(entry, nullptr);
  }
};

// A stretch of a file that was asked for.
struct ReadRing::Landing {
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::shared_ptr<const OpenFile> file;
  uint64_t offset;
  size_t bytes;
  std::unique_ptr<char[], Free> buffer;
  size_t got = 0;
  int error = 0;  // errno
};

struct ReadRing::Running {
  Work work;
  std::vector<Landing> landings;  // the last one is under way while `wants`
  bool wants = false;
  size_t index;  // in running_
};

std::unique_ptr<ReadRing> ReadRing::open(unsigned works_max, Status* why) {
  auto ring = std::make_unique<Ring>();
  // A read for each work, and wake_fd. Not to be interrupted for a completion saves the thread as
  // much as the hand-over costs; older kernels do not know how.
  int result = io_uring_queue_init(works_max + 1, &ring->uring, IORING_SETUP_COOP_TASKRUN);
  if (result == -EINVAL) result = io_uring_queue_init(works_max + 1, &ring->uring, 0);
  if (result < 0) {
    *why = {Status::Code::kUnsupported, std::string("io_uring: ") + std::strerror(-result)};
    return nullptr;
  }
  ring->wake_fd = ::eventfd(0, EFD_CLOEXEC);
  if (ring->wake_fd < 0) {
    *why = {Status::Code::kIo, std::string("eventfd: ") + std::strerror(errno)};
    io_uring_queue_exit(&ring->uring);
    return nullptr;
  }
  ring->await_wake();
  return std::unique_ptr<ReadRing>(new ReadRing(std::move(ring)));
}

ReadRing::ReadRing(std::unique_ptr<Ring> ring) : ring_(std::move(ring)) {}

ReadRing::~ReadRing() {
  INGOT_CHECK(running_.empty());
  io_uring_queue_exit(&ring_->uring);
  ::close(ring_->wake_fd);
}

ReadRing* ReadRing::current() {
  return current_ring;
}

bool ReadRing::wants() const {
  return now_->wants;
}

void ReadRing::run(Work work) {
  auto running = std::make_unique<Running>();
  running->work = std::move(work);
  running->index = running_.size();
  running_.push_back(std::move(running));
  attempt(*running_.back());
}

void ReadRing::attempt(Running& running) {
  current_ring = this;
  now_ = &running;
  const bool done = running.work();
  now_ = nullptr;
  current_ring = nullptr;
  INGOT_CHECK(done || running.wants);
  // Done without what it had asked for: the kernel still writes there.
  if (done) running.work = nullptr;
  running.wants ? submit(running) : end(running);
}

void ReadRing::submit(Running& running) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_->uring);
  INGOT_CHECK(entry != nullptr);
  Landing& landing = running.landings.back();
  io_uring_prep_read(entry, landing.file->fd(), landing.buffer.get() + landing.got,
                     static_cast<unsigned>(landing.bytes - landing.got),
                     landing.offset + landing.got);
  io_uring_sqe_set_data(entry, &running);
}

void ReadRing::end(Running& running) {
  const size_t index = running.index;
  running_.back()->index = index;
  std::swap(running_[index], running_.back());
  running_.pop_back();
}

ReadRing::Answer ReadRing::read(const std::shared_ptr<const OpenFile>& file, uint64_t offset,
                                size_t bytes, char* into) {
  if (now_->wants) return {Answer::Kind::kWanted};
  for (const Landing& landing : now_->landings) {
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
  // The page cache may have it.
  if (!file->direct()) {
    const iovec whole{into, bytes};
    const ssize_t got = ::preadv2(file->fd(), &whole, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    if (got == static_cast<ssize_t>(bytes)) return {Answer::Kind::kCame, bytes};
  }
  now_->landings.push_back({.file = file,
                            .offset = offset,
                            .bytes = bytes,
                            .buffer = std::unique_ptr<char[], Landing::Free>(allocate(bytes))});
  now_->wants = true;
  return {Answer::Kind::kWanted};
}

void ReadRing::came(Running& running, int result) {
  Landing& landing = running.landings.back();
  const bool again = result == -EINTR || result == -EAGAIN;
  if (result > 0) landing.got += static_cast<size_t>(result);
  // A part of it only, as a signal may leave it. What does not end on a page is the file's end.
  const bool torn = result > 0 && landing.got < landing.bytes &&
                    (!landing.file->direct() || landing.got % kAlignment == 0);
  if (again || torn) return submit(running);
  if (result < 0) landing.error = -result;
  running.wants = false;
  ready_.push_back(&running);
}

void ReadRing::turn(bool may_wait) {
  // An error is a passing lack of memory, or a full queue of completions, which the next turn
  // finds emptied.
  (void)io_uring_submit_and_wait(&ring_->uring, may_wait ? 1 : 0);
  io_uring_cqe* entry = nullptr;
  unsigned head = 0;
  unsigned count = 0;
  io_uring_for_each_cqe(&ring_->uring, head, entry) {
    ++count;
    auto* running = static_cast<Running*>(io_uring_cqe_get_data(entry));
    running == nullptr ? ring_->await_wake() : came(*running, entry->res);
  }
  io_uring_cq_advance(&ring_->uring, count);
  for (Running* running : ready_) running->work ? attempt(*running) : end(*running);
  ready_.clear();
}

void ReadRing::wake() {
  const uint64_t one = 1;
  // It can only fail where the counter is full, and then it is awake.
  (void)!::write(ring_->wake_fd, &one, sizeof one);
}

}  // namespace ingot::storage
