// The cache of scripts, the idle Lua states, and the list of what runs.
#include "src/script/scripts.h"

#include <algorithm>
#include <chrono>

#include "src/contract/errors.h"

namespace ingot::script {

namespace {

int64_t monotonic_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

constexpr std::string_view kBusyScript =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
constexpr std::string_view kBusyFunction =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";
constexpr char kNotBusy[] = "NOTBUSY No scripts in execution right now.";
constexpr char kUnkillable[] =
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can "
    "either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE "
    "command.";

}  // namespace

void Scripts::set_bounds(const Bounds& bounds) {
  for (MemoryBudget& memory : memory_) memory.set_limit(bounds.memory_bytes);
  cache_bytes_max_ = bounds.cache_bytes;
  reply_bytes_max_ = bounds.reply_bytes;
  busy_ms_ = bounds.busy_ms;
}

std::shared_ptr<const Script> Scripts::find(std::string_view sha) const {
  constexpr size_t kShaDigits = 40;
  if (sha.size() != kShaDigits) return nullptr;
  std::lock_guard lock(mutex_);
  const auto found = by_sha_.find(lower_case(sha));
  return found == by_sha_.end() ? nullptr : found->second.script;
}

bool Scripts::add(std::shared_ptr<const Script> script) {
  std::lock_guard lock(mutex_);
  const std::string sha = script->sha;
  if (const auto found = by_sha_.find(sha); found != by_sha_.end()) {
    if (found->second.script->is_kept || !script->is_kept) return true;
    remove(sha);
  }
  cached_bytes_ += script->body.size() + kScriptBytes;
  Kept kept{.script = script, .age = by_age_.end()};
  if (!script->is_kept) kept.age = by_age_.insert(by_age_.end(), sha);
  by_sha_.emplace(sha, std::move(kept));
  while (cached_bytes_ > cache_bytes_max_ && !by_age_.empty()) remove(std::string(by_age_.front()));
  if (cached_bytes_ <= cache_bytes_max_) return true;
  remove(sha);
  return false;
}

std::string Scripts::keep(std::string_view body, std::string* sha) {
  std::string error;
  const auto script = read_script(body, &error);
  if (script == nullptr) return error;
  if (find(script->sha) == nullptr) error = compile(*script);
  if (!error.empty()) return error;
  auto kept = std::make_shared<Script>(*script);
  kept->is_kept = true;
  *sha = kept->sha;
  return add(std::move(kept)) ? std::string() : contract::kOutOfMemory;
}

// By mutex_.
void Scripts::remove(const std::string& sha) {
  const auto found = by_sha_.find(sha);
  if (found == by_sha_.end()) return;
  const Kept& kept = found->second;
  cached_bytes_ -= kept.script->body.size() + kScriptBytes;
  if (!kept.script->is_kept) by_age_.erase(kept.age);
  by_sha_.erase(found);
}

std::string Scripts::compile(const Script& script) {
  auto host = take_host(LuaHost::Kind::kScripts);
  if (host == nullptr) return contract::kOutOfMemory;
  std::string error = host->compile(script);
  give_back(std::move(host), LuaHost::Kind::kScripts);
  return error;
}

// In a state of its own: what its code did there is gone with it.
std::string Scripts::load(Library* library) {
  const auto host = LuaHost::make(LuaHost::Kind::kFunctions, memory_of(LuaHost::Kind::kFunctions));
  return host == nullptr ? contract::kOutOfMemory : host->load(library);
}

void Scripts::flush() {
  std::lock_guard lock(mutex_);
  by_sha_.clear();
  by_age_.clear();
  cached_bytes_ = 0;
  ++flushes_;
}

std::unique_ptr<LuaHost> Scripts::take_host(LuaHost::Kind kind) {
  Idle idle{};
  bool is_stale = false;
  {
    std::lock_guard lock(mutex_);
    auto& hosts = idle_[static_cast<size_t>(kind)];
    if (!hosts.empty()) {
      idle = std::move(hosts.back());
      hosts.pop_back();
      is_stale = idle.flushes != flushes_;
    }
  }
  if (idle.host == nullptr) return LuaHost::make(kind, memory_of(kind));
  if (is_stale) idle.host->forget_scripts();
  return std::move(idle.host);
}

void Scripts::give_back(std::unique_ptr<LuaHost> host, LuaHost::Kind kind) {
  if (host->is_worn()) return;
  std::lock_guard lock(mutex_);
  auto& hosts = idle_[static_cast<size_t>(kind)];
  if (hosts.size() < kIdleHostsMax) hosts.push_back({.host = std::move(host), .flushes = flushes_});
}

Scripts::Lease::Lease(Scripts& scripts, RunInfo info)
    : scripts_(scripts),
      info_(info),
      since_ms_(monotonic_ms()),
      host_(scripts.take_host(info_.kind)) {
  if (info_.holds_writer) {
    scripts_.writer_client_ = info_.client_id;
    scripts_.writer_kind_ = info_.kind;
    scripts_.writer_since_ms_ = since_ms_;
  }
  std::lock_guard lock(scripts_.mutex_);
  place_ = scripts_.running_.insert(scripts_.running_.end(), this);
  if (scripts_.stopped_) run_.stop();
}

Scripts::Lease::~Lease() {
  if (info_.holds_writer) scripts_.writer_since_ms_ = 0;
  {
    std::lock_guard lock(scripts_.mutex_);
    scripts_.running_.erase(place_);
  }
  if (host_ != nullptr) scripts_.give_back(std::move(host_), info_.kind);
}

std::string Scripts::kill(LuaHost::Kind kind) {
  std::lock_guard lock(mutex_);
  bool any = false;
  bool any_of_kind = false;
  bool any_wrote = false;
  for (Lease* lease : running_) {
    if (lease->info_.is_dry) continue;
    any = true;
    if (lease->info_.kind != kind) continue;
    any_of_kind = true;
    if (!lease->run_.kill()) any_wrote = true;
  }
  if (!any) return kNotBusy;
  if (!any_of_kind && std::ranges::any_of(running_, [](const Lease* lease) {
        return lease->info_.holds_writer && lease->run_.wrote();
      })) {
    return kUnkillable;
  }
  if (!any_of_kind) {
    return std::string(kind == LuaHost::Kind::kScripts ? kBusyFunction : kBusyScript);
  }
  return any_wrote ? kUnkillable : "";
}

void Scripts::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  for (Lease* lease : running_) lease->run_.stop();
}

std::string_view Scripts::busy(uint64_t client_id) const {
  const int64_t since_ms = writer_since_ms_.load(std::memory_order_relaxed);
  const int64_t threshold_ms = busy_ms_;
  if (since_ms == 0 || threshold_ms == 0) return {};
  if (monotonic_ms() - since_ms < threshold_ms || writer_client_ == client_id) return {};
  return writer_kind_ == LuaHost::Kind::kScripts ? kBusyScript : kBusyFunction;
}

// It names the command that ends the one which has run longest.
std::string_view Scripts::busy_in_pool() const {
  std::lock_guard lock(mutex_);
  const auto oldest = std::ranges::find_if(running_, [](const Lease* lease) {
    return !lease->info_.holds_writer && !lease->info_.is_dry;
  });
  const bool is_function =
      oldest != running_.end() && (*oldest)->info_.kind == LuaHost::Kind::kFunctions;
  return is_function ? kBusyFunction : kBusyScript;
}

std::optional<Scripts::Running> Scripts::running_function() const {
  std::lock_guard lock(mutex_);
  const Lease* shown = nullptr;
  for (const Lease* lease : running_) {
    if (lease->info_.kind != LuaHost::Kind::kFunctions) continue;
    if (shown == nullptr || lease->info_.holds_writer) shown = lease;
  }
  if (shown == nullptr) return std::nullopt;
  return Running{.name = std::string(shown->info_.name),
                 .command = {shown->info_.command.begin(), shown->info_.command.end()},
                 .duration_ms = monotonic_ms() - shown->since_ms_};
}

Scripts::Figures Scripts::figures() const {
  Figures figures{.script_lua_bytes = memory_[0].used(), .function_lua_bytes = memory_[1].used()};
  for (const auto& [name, library] : libraries()->all()) {
    figures.function_bytes += name.size() + library->code.size() + kScriptBytes;
  }
  std::lock_guard lock(mutex_);
  figures.scripts = by_sha_.size();
  figures.script_bytes = cached_bytes_;
  return figures;
}

}  // namespace ingot::script
