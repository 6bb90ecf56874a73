// What a script calls while it runs in the writer: each command under a savepoint in the group that
// is being built. The writer thread's.
#pragma once

#include <cstdint>

#include "src/exec/group.h"
#include "src/exec/script_calls.h"

namespace ingot::exec {

class GroupCalls : public ScriptCalls {
 public:
  // `index`: of the command that runs the script, among those of its unit.
  GroupCalls(Group& group, Services& services, WriteJob& job, size_t index, const Call& script,
             const Group::Refusals& refusals, types::KeyWriter& keys)
      : ScriptCalls(services,
                    {.client = *job.client,
                     .account = job.units[job.next].permission.account,
                     .db = script.db},
                    keys.data(), keys.effects().notices),
        group_(group),
        unit_(job.units[job.next]),
        place_(place_in_unit(index)),
        script_(script),
        refusals_(refusals),
        keys_(keys),
        bytes_before_(held_bytes()) {}

  Place place() const override { return Place::kWriter; }
  uint64_t seed() override;
  // What the last command asked for instead of answering, if anything.
  Wish take_wish() { return std::move(wish_); }

 protected:
  bool run(const Call& call, const contract::ScriptCall& script,
           contract::ReplySink& reply) override;

 private:
  // By what the group has changed and is to tell replicas.
  size_t held_bytes() const { return keys_.overlay().bytes() + keys_.effects().told.bytes(); }
  const std::string* refusal(const contract::CommandRow& row,
                             const contract::ScriptCall& script) const;

  Group& group_;
  Unit& unit_;
  uint64_t place_;  // of the last call
  const Call& script_;
  const Group::Refusals& refusals_;
  types::KeyWriter& keys_;
  const size_t bytes_before_;
  bool has_written_ = false;
  bool has_remembered_ = false;
  Wish wish_;
};

}  // namespace ingot::exec
