// The configuration: loaded at the start, read by everybody, changed by CONFIG SET, written back by
// CONFIG REWRITE.
//
// Threads: load(), on_change() and their like before the other threads start; everything else by
// any thread.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/settings/setting_rows.h"
#include "src/settings/settings.h"

namespace ingot::settings {

// Why the server cannot take a new value: the setting's name and the reason, as Redis words it
// ({"port", "Unable to listen on this port. Check server logs."}).
struct Refusal {
  std::string setting;
  std::string why;
};

// Makes the server work by `after`, or leaves it working by `before` and says why. Called by the
// thread that runs CONFIG SET, one at a time; `after` is not yet what settings() answers.
using ApplyChange =
    std::function<std::optional<Refusal>(const Settings& before, const Settings& after)>;

// Why the server would not take a "user" line, which is given without that word. Called while the
// settings are loaded; `settings` are those of the lines before.
using CheckUser =
    std::function<Error(const Settings& settings, std::span<const std::string> words)>;
// The "user" lines that make the users what they are, or why there are none that do.
using DescribeUsers = std::function<std::expected<std::vector<std::string>, std::string>()>;

class Config {
 public:
  // `version` is Ingot's own, for error messages.
  explicit Config(std::string version);

  // Loads "[file] [-] [--directive value ...]", as redis-server is called: the file, then standard
  // input when there is a "-", then the directives. The error is the text to print before exiting.
  [[nodiscard]] Error load(std::span<const std::string> arguments);

  void on_change(ApplyChange apply) { apply_ = std::move(apply); }
  void check_users_by(CheckUser check) { check_user_ = std::move(check); }
  void describe_users_by(DescribeUsers describe) { describe_users_ = std::move(describe); }

  // The state now; it never changes, so keep it no longer than needed. Takes a lock: hot code
  // keeps its own copy of what it needs and learns of changes through on_change().
  std::shared_ptr<const Settings> settings() const;

  // Absolute, empty when there is none.
  const std::string& file() const { return file_; }

  // Directives that were given and mean nothing in Ingot, for one line in the log.
  const std::vector<std::string>& accepted_without_meaning() const { return without_meaning_; }

  using Pairs = std::vector<std::pair<std::string, std::string>>;
  // CONFIG GET: names and values of all settings that a pattern names, each once. A name without
  // wildcards is answered as it was asked for.
  Pairs get(std::span<const std::string_view> patterns) const;

  // CONFIG SET: all or, with an error, none. `client_is_local`: for enable-protected-configs.
  [[nodiscard]] Error set(std::span<const std::pair<std::string_view, std::string_view>> pairs,
                          bool client_is_local);

  // REPLICAOF, which changes what CONFIG SET may not.
  void set_master(MasterAddress master);

  // Where the limit of open files allows fewer than were asked for.
  void set_maxclients(unsigned clients);

  // CONFIG REWRITE.
  [[nodiscard]] Error rewrite();

 private:
  void change(const std::function<void(Settings&)>& make);

  const std::string version_;

  // Constant after load():
  std::string file_;
  std::vector<std::string> without_meaning_;
  ApplyChange apply_;
  CheckUser check_user_;
  DescribeUsers describe_users_;

  std::mutex change_mutex_;  // held by set() and rewrite() throughout, before mutex_
  mutable std::mutex mutex_;
  std::shared_ptr<const Settings> settings_;  // by mutex_
};

}  // namespace ingot::settings
