// Recycles command batches with their buffers, so that a request costs no large allocation. Each
// I/O thread has one pool; batches dropped on other threads are simply freed.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "net/command_batch.h"

namespace ingot::net {

class BatchPool {
 public:
  static constexpr size_t kSmallBytes = 16 * 1024;
  static constexpr size_t kLargeBytes = 64 * 1024;

  // Serves the calling thread from now until it is destroyed, on the same thread.
  BatchPool();
  ~BatchPool();
  BatchPool(const BatchPool&) = delete;
  BatchPool& operator=(const BatchPool&) = delete;

  // An empty batch with a buffer of at least `capacity` bytes. Any thread.
  static std::unique_ptr<CommandBatch> take(size_t capacity);
  // Back to the calling thread's pool, if it has one. Any thread.
  static void give_back(std::unique_ptr<CommandBatch> batch);
  // Ends the batch's making: it goes to the pool of the thread that drops the last reference.
  static BatchPtr share(std::unique_ptr<CommandBatch> batch);

 private:
  std::vector<std::unique_ptr<CommandBatch>> small_;
  std::vector<std::unique_ptr<CommandBatch>> large_;
};

}  // namespace ingot::net
