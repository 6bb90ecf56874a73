// How the server is asked to stop, and what lies between that and the end: replicas that lag get
// time to catch up, while nobody changes anything. Until they have, it can be called off.
//
// Threads: wait() by the main thread; the rest by any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "net/connection.h"
#include "src/exec/services.h"

namespace ingot::exec {
class Writer;
}

namespace ingot::server {

class Departure {
 public:
  // `now`: nobody is waited for. Who has asked before is not overridden. What is answered comes
  // when it is called off.
  std::unique_ptr<net::BodySource> ask(bool now);
  // Whoever has asked wants it now; false: nobody has.
  bool insist();
  // False: nobody has asked, or it is too late.
  bool call_off();
  bool is_asked_for() const;
  std::optional<int64_t> left_ms() const;  // for replicas; nothing: they are not waited for

  // Until the server is to end.
  void wait(exec::Services& services, exec::Writer& writer);

 private:
  struct Answer;
  class AnswerSource;
  enum class Step : uint8_t { kServes, kAsked, kEnds };

  uint64_t let_catch_up(exec::Services& services, exec::Writer& writer);
  void answer_all(bool called_off);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // By mutex_:
  Step step_ = Step::kServes;
  bool now_ = false;
  std::optional<int64_t> until_ms_;  // steady
  std::vector<std::shared_ptr<Answer>> answers_;
};

}  // namespace ingot::server
