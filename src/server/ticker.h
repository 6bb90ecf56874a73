// A thread that calls a function at a steady interval, for chores. Any thread may construct and
// destroy it; the destructor waits for the call at hand.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace ingot::server {

class Ticker {
 public:
  Ticker(std::chrono::milliseconds interval, std::function<void()> chore)
      : thread_([this, interval, chore = std::move(chore)] {
          std::unique_lock lock(mutex_);
          while (!wake_.wait_for(lock, interval, [this] { return stopping_; })) {
            lock.unlock();
            chore();
            lock.lock();
          }
        }) {}
  ~Ticker() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ingot::server
