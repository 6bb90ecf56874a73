// Taking a batch from the pool of the thread and giving it back there, or freeing it.
#include "net/batch_pool.h"

#include <algorithm>
#include <utility>

namespace ingot::net {
namespace {

// 1 MB and a bit in each list, so that a pool stays small beside what it serves.
constexpr size_t kSmallKept = 64;
constexpr size_t kLargeKept = 16;

thread_local BatchPool* current_pool = nullptr;

}  // namespace

BatchPool::BatchPool() {
  small_.reserve(kSmallKept);
  large_.reserve(kLargeKept);
  current_pool = this;
}

BatchPool::~BatchPool() {
  // What the batches own may drop further batches, which must no longer come here.
  current_pool = nullptr;
}

std::unique_ptr<CommandBatch> BatchPool::take(size_t capacity) {
  if (capacity <= kLargeBytes) {
    const bool small = capacity <= kSmallBytes;
    if (current_pool != nullptr) {
      auto& list = small ? current_pool->small_ : current_pool->large_;
      if (!list.empty()) {
        auto batch = std::move(list.back());
        list.pop_back();
        return batch;
      }
    }
    capacity = small ? kSmallBytes : kLargeBytes;
  }
  auto batch = std::make_unique<CommandBatch>();
  batch->buffer = std::make_unique_for_overwrite<char[]>(capacity);
  batch->buffer_capacity = capacity;
  return batch;
}

void BatchPool::give_back(std::unique_ptr<CommandBatch> batch) {
  if (current_pool == nullptr) return;
  const bool small = batch->buffer_capacity == kSmallBytes;
  if (!small && batch->buffer_capacity != kLargeBytes) return;
  // A batch of very many arguments must not stay larger than its buffer.
  if (batch->arg_store.capacity() * sizeof(std::string_view) > batch->buffer_capacity) return;
  if (batch->commands.capacity() * sizeof(Command) > batch->buffer_capacity) return;
  batch->commands.clear();  // may drop sinks, and those may come back here
  batch->arg_store.clear();
  auto& list = small ? current_pool->small_ : current_pool->large_;
  if (list.size() < (small ? kSmallKept : kLargeKept)) list.push_back(std::move(batch));
}

BatchPtr BatchPool::share(std::unique_ptr<CommandBatch> batch) {
  return {batch.release(),
          [](CommandBatch* dropped) { give_back(std::unique_ptr<CommandBatch>(dropped)); }};
}

BatchPtr copy_of(const Command& command) {
  auto batch = std::make_shared<CommandBatch>();
  for (const std::string_view arg : command.args) batch->buffer_capacity += arg.size();
  batch->buffer = std::make_unique_for_overwrite<char[]>(batch->buffer_capacity);
  batch->arg_store.reserve(command.args.size());
  char* at = batch->buffer.get();
  for (const std::string_view arg : command.args) {
    batch->arg_store.emplace_back(at, arg.size());
    at = std::ranges::copy(arg, at).out;
  }
  batch->commands.reserve(1);
  batch->commands.push_back(command);
  batch->commands[0].args = batch->arg_store;
  return batch;
}

}  // namespace ingot::net
