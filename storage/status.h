// The result of a storage operation: ok, or what kind of failure with a sentence for the log.
// Values; no thread rule. Whatever a disk or a file can cause is a Status, never an assertion.
#pragma once

#include <string>
#include <utility>

namespace ingot::storage {

class [[nodiscard]] Status {
 public:
  enum class Code {
    kOk,
    kInvalid,      // the caller or the configuration asked for something that cannot be
    kIo,           // the disk or the filesystem failed
    kNoSpace,      // the disk is full; heals once there is space
    kCorruption,   // bytes on disk are not what was written
    kBusy,         // another process holds the directory
    kUnsupported,  // this engine cannot do it (see Engine::capabilities)
  };

  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

}  // namespace ingot::storage
