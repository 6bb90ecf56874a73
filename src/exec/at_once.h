// For who has no loop: what is posted runs at once, on the thread that posts it (the writer's, the
// pool's). Holds nothing; any thread.
#pragma once

#include <functional>

#include "net/connection.h"

namespace ingot::exec {

inline net::IoThread& at_once() {
  class AtOnce : public net::IoThread {
   public:
    void post(std::move_only_function<void()> task) override { task(); }
    bool is_current() const override { return false; }
    int index() const override { return 0; }
  };
  static AtOnce thread;
  return thread;
}

}  // namespace ingot::exec
