// Which keys a unit names, who has them, and who waits for them.
#include "src/exec/held_keys.h"

#include <algorithm>
#include <utility>

#include "src/contract/table.h"

namespace ingot::exec {

namespace {

// The database that the job's next unit works in; nothing when it may be several.
std::optional<int> database_of(const WriteJob& job) {
  const Unit& unit = job.units[job.next];
  const bool selects = std::ranges::any_of(
      unit.transaction, [](const auto& queued) { return contract::is_session(*queued.row); });
  return selects ? std::nullopt : std::optional(unit.db);
}

// Calls `each` with the keys that the job's next unit declares, until it answers true; whether it
// did.
template <typename Each>
bool any_key(const WriteJob& job, const Each& each) {
  const Unit& unit = job.units[job.next];
  const auto any_of = [&](const contract::CommandRow& row, contract::Args args) {
    return std::ranges::any_of(contract::keys_of(row, args),
                               [&](const contract::KeyAt& key) { return each(args[key.index]); });
  };
  if (unit.row == nullptr) return false;
  if (unit.transaction.empty()) return any_of(*unit.row, unit.command->args);
  return std::ranges::any_of(unit.transaction, [&](const contract::QueuedCommand& queued) {
    return any_of(*queued.row, queued.command->args);
  });
}

}  // namespace

bool HeldKeys::Holder::has(std::string_view key) const {
  return keys.contains(key) || std::ranges::any_of(patterns, [&](std::string_view pattern) {
           const size_t star = pattern.find('*');
           return key.size() + 1 >= pattern.size() && key.starts_with(pattern.substr(0, star)) &&
                  key.ends_with(pattern.substr(star + 1));
         });
}

void HeldKeys::hold(const WriteJob& job, std::vector<std::string> patterns) {
  if (std::ranges::find(holders_, &job, &Holder::job) != holders_.end()) return;
  Holder holder{.job = &job, .db = database_of(job), .keys = {}, .patterns = std::move(patterns)};
  any_key(job, [&](std::string_view key) {
    holder.keys.emplace(key);
    return false;
  });
  holders_.push_back(std::move(holder));
}

std::vector<std::unique_ptr<WriteJob>> HeldKeys::release(const WriteJob& job) {
  if (std::erase_if(holders_, [&](const Holder& each) { return each.job == &job; }) == 0) return {};
  return std::exchange(waiting_, {});
}

bool HeldKeys::is_held_from(const WriteJob& job) const {
  const auto db = database_of(job);
  return std::ranges::any_of(holders_, [&](const Holder& holder) {
    const bool elsewhere = db && holder.db && *db != *holder.db;
    return holder.job != &job && !elsewhere &&
           any_key(job, [&](std::string_view key) { return holder.has(key); });
  });
}

}  // namespace ingot::exec
