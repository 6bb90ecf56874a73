// The clients that wait in a blocking command, in the order in which they came, and the keys that
// they wait for. The writer thread's own.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/contract/context.h"
#include "src/exec/write_job.h"

namespace ingot::exec {

class BlockTable {
 public:
  using Key = std::pair<int, std::string>;  // database and name
  using Number = uint64_t;                  // of a waiter, rising

  bool empty() const { return waiters_.empty(); }
  size_t size() const { return waiters_.size(); }
  size_t timed() const { return deadlines_.size(); }  // whose wait ends by itself

  // Takes a job whose next unit, run in `db`, waits.
  Number add(std::unique_ptr<WriteJob> job, int db, contract::Block block);

  // A key was stored: if somebody waits for it, it joins the keys to be served.
  void fed(int db, std::string_view key);
  // Databases changed places: every awaited key in them may have come into being.
  void fed_all(int db);
  // The next key to be served, in the order of feeding.
  std::optional<Key> next_fed();
  // Offers the key to each job that waits for it, the longest waiting first. `serve` answers
  // whether the job has been served; then `take` gets it. kStop ends the round.
  enum class Served : uint8_t { kYes, kNo, kStop };
  void offer(const Key& key, const std::function<Served(WriteJob&, const contract::Block&)>& serve,
             const std::function<void(std::unique_ptr<WriteJob>)>& take);

  // When the next wait ends by itself, in Unix milliseconds; INT64_MAX: never.
  int64_t next_deadline_ms() const;
  // Takes out a job whose wait is over; null: none is.
  std::unique_ptr<WriteJob> take_due(int64_t now_ms);
  // Takes out what the client waits in, if it does.
  std::unique_ptr<WriteJob> take_client(uint64_t client);
  WriteJob* find(Number number);         // null: it waits no more
  std::unique_ptr<WriteJob> take_any();  // null: nobody waits
  // Takes out a waiter; null: it waits no more.
  std::unique_ptr<WriteJob> take(Number number);

 private:
  struct Waiter {
    std::unique_ptr<WriteJob> job;
    int db;
    contract::Block block;
  };

  Number next_number_ = 1;
  std::map<Number, Waiter> waiters_;
  struct Awaited {
    std::set<Number> waiters;
    bool is_fed = false;  // it stands in fed_
  };
  std::map<Key, Awaited> by_key_;
  std::map<uint64_t, Number> by_client_;
  std::set<std::pair<int64_t, Number>> deadlines_;
  std::deque<Key> fed_;  // some perhaps twice, or awaited no more
};

}  // namespace ingot::exec
