// A RocksDB engine on a disk that fails when a test wants it.
#pragma once

#include <chrono>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/storage/test_engine.h"

namespace ingot::storage {

// An engine with a control file for its faults, which notes what the engine reports.
class FaultyEngine {
 public:
  FaultyEngine() : engine_("rocksdb", options()) {}

  TestEngine& operator*() { return engine_; }
  TestEngine* operator->() { return &engine_; }

  void set_faults(const std::string& words) {
    std::ofstream(control_) << words << std::flush;
    constexpr std::chrono::milliseconds kNoticed{30};  // the file is looked at every 10
    std::this_thread::sleep_for(kNoticed);
  }

  // Opens on a healthy disk, without the faults.
  void reopen() {
    set_faults("");
    engine_.reopen();
  }

  std::vector<Status::Code> reported() {
    std::lock_guard lock(mutex_);
    return reported_;
  }

 private:
  EngineOptions options() {
    EngineOptions options = TestEngine::small_options();
    options.fault_file = control_;
    options.on_background_error = [this](const Status& status) {
      std::lock_guard lock(mutex_);
      reported_.push_back(status.code());
    };
    return options;
  }

  TemporaryDirectory directory_;
  const std::string control_ = directory_.file("faults");
  std::mutex mutex_;
  std::vector<Status::Code> reported_;  // guarded by mutex_
  TestEngine engine_;
};

// Until writing works again, at most 20 seconds: RocksDB looks for space every five.
inline Status heal(Engine* engine) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  Status status = engine->try_resume();
  while (status.code() == Status::Code::kNoSpace && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    status = engine->try_resume();
  }
  return status;
}

}  // namespace ingot::storage
