// Clients that come to wait, run out of time or leave, and the keys offered to them once fed.
#include "src/exec/block_table.h"

#include <limits>

namespace ingot::exec {

BlockTable::Number BlockTable::add(std::unique_ptr<WriteJob> job, int db, contract::Block block) {
  const Number number = next_number_++;
  for (const std::string& key : block.keys) by_key_[{db, key}].waiters.insert(number);
  if (block.until_ms != 0) deadlines_.insert({block.until_ms, number});
  by_client_[job->client->id] = number;
  job->client->waits_in = job->units[job->next].row;
  waiters_.emplace(number, Waiter{.job = std::move(job), .db = db, .block = std::move(block)});
  return number;
}

void BlockTable::fed(int db, std::string_view key) {
  const auto awaited = by_key_.find({db, std::string(key)});
  if (awaited == by_key_.end() || std::exchange(awaited->second.is_fed, true)) return;
  fed_.push_back(awaited->first);
}

void BlockTable::fed_all(int db) {
  for (auto at = by_key_.lower_bound({db, ""}); at != by_key_.end() && at->first.first == db;
       ++at) {
    fed(db, at->first.second);
  }
}

std::optional<BlockTable::Key> BlockTable::next_fed() {
  if (fed_.empty()) return std::nullopt;
  Key key = std::move(fed_.front());
  fed_.pop_front();
  if (const auto awaited = by_key_.find(key); awaited != by_key_.end()) {
    awaited->second.is_fed = false;
  }
  return key;
}

void BlockTable::offer(const Key& key,
                       const std::function<Served(WriteJob&, const contract::Block&)>& serve,
                       const std::function<void(std::unique_ptr<WriteJob>)>& take_job) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  const std::set<Number>& waiters = found->second.waiters;
  const std::vector<Number> waiting(waiters.begin(), waiters.end());
  for (const Number number : waiting) {
    Waiter& waiter = waiters_.at(number);
    const Served served = serve(*waiter.job, waiter.block);
    if (served == Served::kStop) return;
    if (served == Served::kYes) take_job(take(number));
  }
}

int64_t BlockTable::next_deadline_ms() const {
  return deadlines_.empty() ? std::numeric_limits<int64_t>::max() : deadlines_.begin()->first;
}

std::unique_ptr<WriteJob> BlockTable::take_due(int64_t now_ms) {
  if (next_deadline_ms() > now_ms) return nullptr;
  return take(deadlines_.begin()->second);
}

std::unique_ptr<WriteJob> BlockTable::take_client(uint64_t client) {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? nullptr : take(found->second);
}

WriteJob* BlockTable::find(Number number) {
  const auto found = waiters_.find(number);
  return found == waiters_.end() ? nullptr : found->second.job.get();
}

std::unique_ptr<WriteJob> BlockTable::take_any() {
  return waiters_.empty() ? nullptr : take(waiters_.begin()->first);
}

std::unique_ptr<WriteJob> BlockTable::take(Number number) {
  auto node = waiters_.extract(number);
  if (node.empty()) return nullptr;
  Waiter& waiter = node.mapped();
  for (const std::string& name : waiter.block.keys) {
    const auto key = by_key_.find({waiter.db, name});
    if (key == by_key_.end()) continue;  // the same key twice
    key->second.waiters.erase(number);
    if (key->second.waiters.empty()) by_key_.erase(key);
  }
  if (waiter.block.until_ms != 0) deadlines_.erase({waiter.block.until_ms, number});
  by_client_.erase(waiter.job->client->id);
  waiter.job->client->waits_in = nullptr;
  return std::move(waiter.job);
}

}  // namespace ingot::exec
