// Who waits behind a script that does not end is answered, instead of waiting as long as it runs.
#include <algorithm>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>

#include "src/contract/reply.h"
#include "src/exec/accounting.h"
#include "src/exec/writer.h"
#include "src/metrics/stats.h"

namespace ingot::exec {
namespace {

// What runs already: the pool has made something for it, and keys may be held for it.
bool is_begun(const Unit& unit) {
  return !unit.from_pool.empty() || !unit.went_on.empty() ||
         (unit.exec_client && !unit.exec_client->ran.empty());
}

// What a master or a log tells waits; so does what is allowed while a script runs.
bool is_refused(const WriteJob& job) {
  return std::ranges::none_of(job.units, [](const Unit& unit) {
    return unit.happened_elsewhere() || is_begun(unit) ||
           (unit.row != nullptr && (unit.row->flags & contract::flag::kAllowBusy) != 0);
  });
}

bool has_exec(const WriteJob& job) {
  return std::ranges::any_of(job.units, [](const Unit& unit) {
    return unit.row != nullptr && contract::is_exec(*unit.row);
  });
}

void refuse(Services& services, WriteJob& job, std::string_view error) {
  for (; job.next < job.units.size(); ++job.next) {
    const Unit& unit = job.units[job.next];
    if (unit.row == nullptr) {
      job.replies.bytes.append(unit.canned);
      continue;
    }
    const std::string text = rejection(services, unit.row, error);
    contract::RespSink sink(job.replies, unit.resp);
    if (!unit.silent) sink.error(text);
  }
}

}  // namespace

Writer::ScriptTurn::ScriptTurn(Writer& writer, const Unit& unit) : writer_(writer) {
  runs_ = unit.row != nullptr && (unit.row->runs_script || contract::is_exec(*unit.row));
  if (!runs_) return;
  const std::lock_guard lock(writer_.mutex_);
  writer_.behind_script_ = std::span(writer_.items_).last(writer_.items_left_);
}

Writer::ScriptTurn::~ScriptTurn() {
  if (!runs_) return;
  const std::lock_guard lock(writer_.mutex_);
  writer_.behind_script_ = {};
}

void Writer::refuse_waiting(std::string_view error) {
  std::vector<std::unique_ptr<WriteJob>> refused;
  {
    const std::lock_guard lock(mutex_);
    const auto take = [&](Item& item) {
      if (item.job && is_refused(*item.job)) refused.push_back(std::move(item.job));
    };
    std::ranges::for_each(behind_script_, take);  // an item without anything does nothing
    std::ranges::for_each(queue_, take);
  }
  for (std::unique_ptr<WriteJob>& job : refused) {
    refuse(services_, *job, error);
    if (has_exec(*job)) unwatch(job->client->id);
    net::IoThread& thread = *job->thread;
    thread.post([job = std::move(job)] { job->done(std::move(job->replies), job->given_up); });
  }
}

}  // namespace ingot::exec
