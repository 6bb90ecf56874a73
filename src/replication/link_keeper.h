// Whom this server follows: REPLICAOF, and the thread that keeps a link to the master.
//
// Threads: any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "src/contract/master_link.h"
#include "src/exec/services.h"
#include "src/settings/settings.h"

namespace ingot::exec {
class Writer;
}

namespace ingot::replication {

class Link;

class LinkKeeper {
 public:
  LinkKeeper(exec::Services& services, exec::Writer& writer);
  ~LinkKeeper();  // stop()
  LinkKeeper(const LinkKeeper&) = delete;
  LinkKeeper& operator=(const LinkKeeper&) = delete;

  // Follows whom the settings name, if anybody, once the writer runs.
  void start();
  // Before the writer stops. Nothing is followed any more.
  void stop();

  // Whatever an earlier master has sent and is not committed yet is dropped; the data stay as they
  // are until the new one's have come. False: it is followed already.
  // `on_taken_over`: it is asked to lead, and answers once.
  using Answer = std::function<void(bool accepted)>;
  bool follow(settings::MasterAddress master, Answer on_taken_over = {});
  // The data go on under an id of their own.
  void lead();

  std::optional<contract::MasterLink> link() const;  // nothing: nobody is followed

 private:
  void set_master(settings::MasterAddress master);  // by mutex_
  void run();
  Answer ask_to_lead();  // by mutex_

  exec::Services& services_;
  exec::Writer& writer_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // By mutex_:
  settings::MasterAddress master_;
  uint64_t changes_ = 0;        // of master_
  Answer on_taken_over_;        // none: it is not asked to lead, or has answered
  std::shared_ptr<Link> link_;  // the last attempt; null: none yet
  int64_t lost_ms_ = -1;        // steady, when the stream of this master broke; -1: there was none
  bool has_parted_ = false;     // the data have no place in this master's stream: it sends its own
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ingot::replication
