// What a script's calls have in common, wherever it runs: which commands it may call, the database
// that SELECT has chosen, and the bound of a reply. One thread: the script's.
#pragma once

#include <memory>
#include <string>

#include "src/contract/client.h"
#include "src/contract/command_caller.h"
#include "src/contract/reply.h"
#include "src/contract/table.h"
#include "src/data/sandbox.h"
#include "src/exec/accounting.h"
#include "src/exec/handlers.h"
#include "src/exec/permission.h"
#include "src/exec/services.h"

namespace ingot::exec {

// A reply that is held whole. Once it is too long, reads fail, so that its command soon ends.
class BoundedSink : public contract::RespSink {
 public:
  BoundedSink(contract::EncodedReply& out, int version, uint64_t bytes_max, storage::Reader& data)
      : RespSink(out, version), out_(out), bytes_max_(bytes_max), data_(data) {}

  void simple(std::string_view text) override;
  void integer(int64_t value) override;
  void bulk(std::string_view bytes) override;
  void null() override;
  void real(double value) override;
  void array(uint64_t count) override;
  void stream(contract::Stream body) override;
  void elements(std::unique_ptr<net::BodySource> body) override;
  uint64_t keeps_bytes_max() const override { return bytes_max_; }
  bool may_hold(uint64_t bytes) override { return has_room(bytes); }

  bool too_large() const { return too_large_; }

 private:
  bool has_room(size_t bytes);
  void refuse();

  contract::EncodedReply& out_;
  const uint64_t bytes_max_;
  storage::Reader& data_;
  bool too_large_ = false;
};

class ScriptCalls : public contract::CommandCaller {
 public:
  // Who has sent the script, when that came: a later AUTH does not change what it may do.
  struct Sender {
    const contract::Client& client;
    access::AccountPtr account;
    int db;
  };
  // `notices`: where others are told of the calls.
  ScriptCalls(Services& services, Sender sender, storage::Reader& data, types::Notices& notices)
      : services_(services),
        notices_(notices),
        caller_(sender.client),
        account_(std::move(sender.account)),
        db_(sender.db),
        data_(data) {}

  bool call(const contract::ScriptCall& script, std::string* reply) final;
  std::string begin_refusal(bool may_write, bool allows_stale) const final;
  uint64_t seed() override;
  std::optional<bool> allows(contract::Args args) const final;

 protected:
  // Runs a command that touches data. False: the run is given up.
  virtual bool run(const Call& call, const contract::ScriptCall& script,
                   contract::ReplySink& reply) = 0;

  Services& services_;
  types::Notices& notices_;
  const contract::Client& caller_;

 private:
  std::string refusal(const contract::Resolved& resolved, const std::string& resolve_error,
                      const contract::ScriptCall& script) const;
  void run_session(const Call& call, int resp, contract::ReplySink& reply);

  const access::AccountPtr account_;  // whose rights count
  int db_;
  storage::Reader& data_;
  // Stands for the caller, whose own state a script does not change.
  std::unique_ptr<contract::Client> client_;
};

// A script that only reads, at a view.
class ReadCalls : public ScriptCalls {
 public:
  ReadCalls(Services& services, Sender sender, types::KeyReader& keys, types::Notices& notices)
      : ScriptCalls(services, std::move(sender), keys.data(), notices), keys_(keys) {}

  Place place() const override { return Place::kPool; }
  bool is_wanted() const override { return !caller_.gone; }

 protected:
  bool run(const Call& call, const contract::ScriptCall& script,
           contract::ReplySink& reply) override;

 private:
  types::KeyReader& keys_;
};

// A run for the blocks that it reads.
class DryCalls : public ScriptCalls {
 public:
  DryCalls(Services& services, Sender sender, uint64_t seed, data::Sandbox& sandbox)
      : ScriptCalls(services, std::move(sender), sandbox.overlay(),
                    sandbox.keys().effects().notices),
        seed_(seed),
        sandbox_(sandbox) {}

  Place place() const override { return Place::kDry; }
  uint64_t seed() override { return seed_; }

 protected:
  bool run(const Call& call, const contract::ScriptCall& script,
           contract::ReplySink& reply) override;

 private:
  const uint64_t seed_;
  data::Sandbox& sandbox_;
};

}  // namespace ingot::exec
