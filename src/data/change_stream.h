// The stream of changes that replicas are told: where it stands, which is kept in the engine in the
// same batch as the changes themselves, and its last bytes (the backlog).
//
// A stream is known by its id and has an offset for each byte. While it is off there is no id, and
// nothing of it costs anything. What is told after a start, or under another master, is told under
// another id: a power loss may have taken back the end of what was told under the old one, which so
// holds up to where the data now stands, and no further (`Place::former`).
//
// Threads: what is under "the writer" by the writer's thread alone; the rest by any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/data/backlog.h"
#include "storage/engine.h"

namespace ingot::data {

class ChangeStream {
 public:
  // The longest past of a stream that is remembered.
  static constexpr size_t kFormerMax = 16;

  struct Place {
    struct Former {
      std::string id;
      uint64_t offset;  // up to which it was the same stream
    };
    std::string id;              // 40 hex digits; empty: the stream is off
    uint64_t offset = 0;         // bytes so far
    int db = -1;                 // selected behind them; -1: whoever goes on selects one first
    std::vector<Former> former;  // the latest first
  };

  // What the engine and the directory have of it. `follows`: the data is a replica's, and goes on
  // under its master's id.
  static std::unique_ptr<ChangeStream> open(storage::Engine& engine, std::string directory,
                                            uint64_t backlog_bytes, bool follows,
                                            storage::Status* error);

  // Changes between groups only.
  bool on() const { return on_.load(std::memory_order_relaxed); }
  Place place() const;  // as it is committed

  // --- The writer, between groups
  storage::Status turn_on();               // for one who wants to follow; it was on, perhaps
  storage::Status turn_off();              // forgets everything but the offset
  storage::Status rename(std::string id);  // of a new master
  // Nothing more is told under a master's id, also should this fail.
  storage::Status lead();
  void keep_id() { is_id_old_ = false; }  // a master will tell under the same one
  void select_anew();                     // for one who did not hear of the last SELECT
  // --- The writer, of the group that is about to be committed
  uint64_t offset() const { return place_.offset; }
  uint64_t offset_behind() const { return next_ ? next_->offset : place_.offset; }  // the group
  // Selected behind all groups before it, see Place; what is told under a new id selects anew.
  int db() const { return is_id_old_ ? -1 : place_.db; }
  // Nothing was told since the start, and nobody follows: whoever has all of it may still go on
  // here, or this server there.
  bool is_untouched() const { return is_id_old_; }
  // The group tells these bytes behind those before, and behind them this database is selected.
  void append(std::string_view bytes, int db, storage::Batch& batch);
  void append(Backlog::Part& part, int db, storage::Batch& batch);
  // The group makes the data that of another stream, as it was at this place. The backlog begins
  // anew there.
  void adopt(Place place, storage::Batch& batch);
  void committed();
  void undo();  // it was not committed

  // --- Those who tell replicas
  // From the byte behind `offset` of the stream `id`, which is this one or was the same up to
  // there. Null when only all of the data will do.
  std::unique_ptr<Backlog::Reader> resume(std::string_view id, uint64_t offset);
  std::unique_ptr<Backlog::Reader> read_from(uint64_t offset) {
    return backlog_->read_from(offset);
  }
  // For what is large and may be told: see Backlog::Part. Null: the stream is off, or the disk
  // takes none.
  std::unique_ptr<Backlog::Part> begin_part();
  // Calls `then`, once, when the stream reaches beyond `offset` or is lost or turned off: at once,
  // or on the writer's thread.
  using Then = std::move_only_function<void()>;
  void when_beyond(uint64_t offset, Then then);
  void sweep() { backlog_->sweep(); }
  // What is kept for those who come back.
  void set_backlog_limit(uint64_t bytes) { backlog_->set_limit(bytes); }
  struct BacklogFigures {
    uint64_t begin = 0;  // the offset before its first byte
    uint64_t bytes = 0;  // of the stream
  };
  BacklogFigures backlog() const;

  static std::string new_id();  // random

 private:
  explicit ChangeStream(storage::Engine& engine) : engine_(engine) {}
  storage::Status load();
  static void take_id(std::string id, Place* place);
  storage::Status take_own_id();
  storage::Status write_place(Place place);
  const std::string& begin_telling(storage::Batch& batch);
  void note_append(const storage::Status& status, uint64_t bytes, int db, storage::Batch& batch);
  void call_waiting(bool all);

  storage::Engine& engine_;
  std::unique_ptr<Backlog> backlog_;
  std::atomic<bool> on_{false};
  bool is_id_old_ = false;      // the writer's: another one is needed before anything is told
  std::optional<Place> next_;   // the writer's: what the group under way makes of it
  bool lost_backlog_ = false;   // the writer's: it begins anew behind that group
  bool backlog_fails_ = false;  // the writer's: it was lost, and has taken nothing since

  mutable std::mutex mutex_;
  Place place_;  // changed by the writer, under mutex_
  struct Waiting {
    uint64_t offset;
    Then then;
  };
  std::vector<Waiting> waiting_;  // by mutex_
};

}  // namespace ingot::data
