// Asking io_uring for what work wants, and running it again.
#include "storage/read_ring.h"

#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "storage/check.h"

namespace ingot::storage {
namespace {

constexpr size_t kAlignment = 4096;  // of memory, for O_DIRECT on any device
// What they bring about is asked for before the next ones run: the disk must not run dry meanwhile.
constexpr unsigned kCompletionsPerTurn = 8;

char* allocate(size_t bytes) {
  return static_cast<char*>(
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
}

}  // namespace

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

struct ReadRing::Running {
  Work work;
  NoWaitReads reads;
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

void ReadRing::run(Work work, NoWaitReads reads) {
  running_.push_back(std::make_unique<Running>(
      Running{.work = std::move(work), .reads = std::move(reads), .index = running_.size()}));
  Running& running = *running_.back();
  running.reads.wants() ? submit(running) : attempt(running);
}

void ReadRing::attempt(Running& running) {
  bool done = false;
  {
    const NoWaitReads::Scope scope(&running.reads);
    done = running.work();
  }
  INGOT_CHECK(done || running.reads.wants());
  // Done without what it had asked for: the kernel is not asked either.
  done ? end(running) : submit(running);
}

void ReadRing::submit(Running& running) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_->uring);
  INGOT_CHECK(entry != nullptr);
  NoWaitReads::Landing& landing = running.reads.landings_.back();
  if (landing.buffer == nullptr) landing.buffer.reset(allocate(landing.bytes));
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

void ReadRing::came(Running& running, int result) {
  NoWaitReads::Landing& landing = running.reads.landings_.back();
  const bool again = result == -EINTR || result == -EAGAIN;
  if (result > 0) landing.got += static_cast<size_t>(result);
  // A part of it only, as a signal may leave it.
  const bool torn = result > 0 && landing.got < landing.bytes &&
                    landing.offset + landing.got < landing.file->size();
  if (again || torn) return submit(running);
  if (result < 0) landing.error = -result;
  running.reads.wants_ = false;
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
    if (count == kCompletionsPerTurn) break;
    ++count;
    auto* running = static_cast<Running*>(io_uring_cqe_get_data(entry));
    running == nullptr ? ring_->await_wake() : came(*running, entry->res);
  }
  io_uring_cq_advance(&ring_->uring, count);
  for (Running* running : ready_) attempt(*running);
  ready_.clear();
}

void ReadRing::wake() {
  const uint64_t one = 1;
  // It can only fail where the counter is full, and then it is awake.
  (void)!::write(ring_->wake_fd, &one, sizeof one);
}

}  // namespace ingot::storage
