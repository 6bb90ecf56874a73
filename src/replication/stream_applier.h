// From the commands of a master's stream to units of the writer: counts the stream's bytes, follows
// SELECT, makes one unit of MULTI ... EXEC, and keeps the units in order.
//
// One job is at the writer at a time; what comes meanwhile waits here, while the pool fetches the
// blocks of its keys. Each unit has its place in the stream, and the writer takes none that is out
// of turn: so if one is not taken (no space, a failed commit), none behind it is, and has_failed()
// says that the stream is to be asked for anew from where the data stands.
//
// Threads: take() and wait_for_room() by the link's; the rest by any. Shared with the writer's
// jobs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "net/command_batch.h"
#include "src/contract/client.h"
#include "src/exec/services.h"
#include "src/exec/unit_cutter.h"
#include "src/exec/write_job.h"

namespace ingot::exec {
class Writer;
}

namespace ingot::replication {

class StreamApplier : public std::enable_shared_from_this<StreamApplier> {
 public:
  struct Begin {
    uint64_t link = 0;    // see exec::Following
    uint64_t offset = 0;  // of the stream, before the first command
    int db = 0;           // selected there
  };
  // `wants_ack` is called, on the writer's thread perhaps, when the master waits to hear how far
  // all is applied.
  StreamApplier(exec::Services& services, exec::Writer& writer,
                std::shared_ptr<contract::Client> client, const Begin& begin,
                std::function<void()> wants_ack);

  // Commands that came one behind another, up to the offset `end` of the stream. False: they are
  // not as a master sends them.
  [[nodiscard]] bool take(const net::BatchPtr& batch, uint64_t end);
  // While too much waits: until it does not, or for so long. Whether there is room.
  [[nodiscard]] bool wait_for_room(int64_t timeout_ms);

  uint64_t taken_offset() const;    // behind what was taken
  uint64_t applied_offset() const;  // behind what is committed
  bool has_failed() const;
  uint64_t synced_offset() const;  // behind what is known to be on stable storage; 0: nothing
  // The master waits for it, and it can be given now: once that it is applied, once more that it is
  // on stable storage.
  bool take_ack_wish();
  // What waits is dropped, and what is at the writer is over when this returns.
  void end();

 private:
  using Units = std::vector<exec::Unit>;

  void note_bytes(const net::Command& command);
  uint64_t gathered_offset() const { return unit_begin_ + bytes_.size() + long_bytes_; }
  bool take_command(const net::BatchPtr& batch, const net::Command& command, Units* units);
  void take_script(contract::Args args);
  void add_unit(exec::Unit unit, Units* units);
  void fetch_ahead(const Units& units);
  std::unique_ptr<exec::WriteJob> next_job();  // by mutex_
  bool rests();                                // the same
  void go_on();
  void on_job_done(uint64_t end);
  void await_sync();
  void on_sync(uint64_t offset, bool synced);

  exec::Services& services_;
  exec::Writer& writer_;
  const std::shared_ptr<contract::Client> client_;
  const std::function<void()> wants_ack_;
  const uint64_t link_;
  const uint64_t unit_bytes_max_;

  // The link's thread:
  exec::UnitCutter cutter_;
  uint64_t unit_begin_;                        // the place of `bytes_`
  std::string bytes_;                          // of the unit that is being gathered
  std::vector<exec::FromMaster::Long> longs_;  // ... and what is not held of it
  uint64_t long_bytes_ = 0;                    // of these

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // By mutex_:
  Units waiting_;
  size_t waiting_bytes_ = 0;
  bool in_flight_ = false;
  uint64_t pause_ticket_ = 0;  // of the pause that ends before the next job begins; 0: of none
  bool failed_ = false;
  bool ended_ = false;
  uint64_t taken_;
  uint64_t applied_;
  uint64_t synced_ = 0;
  bool awaits_sync_ = false;
  std::optional<uint64_t> ack_at_;       // the master waits until this is applied
  std::optional<uint64_t> ack_sync_at_;  // ... is on stable storage
};

}  // namespace ingot::replication
