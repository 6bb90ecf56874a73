// The marker, and reading files into the loader of RDB and the replay of logs.
#include "src/server/first_load.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>

#include "src/data/rdb_loader.h"
#include "src/data/store.h"
#include "src/exec/log_replay.h"
#include "src/exec/publish.h"
#include "src/exec/writer.h"
#include "src/metrics/log.h"
#include "src/server/process.h"
#include "src/settings/setting_rows.h"
#include "src/settings/setting_values.h"
#include "storage/durable_file.h"

namespace ingot::server {

namespace {

namespace fs = std::filesystem;
using Steady = std::chrono::steady_clock;

constexpr size_t kReadBytes = 1 << 20;
constexpr auto kToldEach = std::chrono::seconds(5);
constexpr std::string_view kRdbMagic = "REDIS";

bool has_content(const fs::path& path) {
  std::error_code ignored;
  const bool empty = fs::is_empty(path, ignored);
  return !ignored && !empty;
}

class File {
 public:
  explicit File(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return fd_ >= 0; }
  // The next bytes, none at the end; false: `errno` says why not.
  bool read(std::string* bytes) {
    bytes->resize(kReadBytes);
    const ssize_t got = ::read(fd_, bytes->data(), bytes->size());
    if (got < 0) return false;
    bytes->resize(static_cast<size_t>(got));
    // They pass by once: others need the page cache.
    at_ += got;
    (void)posix_fadvise(fd_, 0, at_, POSIX_FADV_DONTNEED);
    return true;
  }

 private:
  const int fd_;
  off_t at_ = 0;
};

// What is loaded of one file after the other.
class Loading {
 public:
  Loading(exec::Services& services, exec::Writer& writer, const std::function<bool()>& stopped,
          bool cut_off_is_taken)
      : services_(services),
        writer_(writer),
        stopped_(stopped),
        cut_off_is_taken_(cut_off_is_taken) {}

  bool load(const RedisFiles::Part& part, bool is_log);
  const std::string& error() const { return error_; }

 private:
  bool load_rdb(File& file, const RedisFiles::Part& part, bool is_log, std::string* bytes);
  bool replay(File& file, const RedisFiles::Part& part, std::string* bytes);
  bool publish(std::shared_ptr<data::RdbLoader> loader);
  bool next(File& file, std::string* bytes);
  bool fail(std::string why) {
    error_ = std::move(why);
    return false;
  }
  void tell();

  exec::Services& services_;
  exec::Writer& writer_;
  const std::function<bool()>& stopped_;
  const bool cut_off_is_taken_;
  std::string error_;
  uint64_t before_ = 0;  // bytes of the file at hand that an RDB file before its log took
  Steady::time_point told_ = Steady::now();
};

bool Loading::next(File& file, std::string* bytes) {
  if (stopped_()) return fail("the server is shutting down");
  if (!file.read(bytes)) return fail(std::strerror(errno));
  services_.loading.loaded_bytes += bytes->size();
  if (Steady::now() - told_ >= kToldEach) tell();
  return true;
}

void Loading::tell() {
  const exec::LoadProgress& loading = services_.loading;
  const double percent = 100 * static_cast<double>(loading.loaded_bytes) /
                         static_cast<double>(std::max<uint64_t>(loading.total_bytes, 1));
  metrics::log::notice("Loading: {:.1f}% of {} MB, {} keys", percent, loading.total_bytes >> 20,
                       loading.keys_loaded.load());
  // systemd would give up a start that takes long.
  notify_systemd(fmt::format("STATUS=Loading, {:.1f}%\nEXTEND_TIMEOUT_USEC=60000000", percent));
  told_ = Steady::now();
}

bool Loading::load(const RedisFiles::Part& part, bool is_log) {
  File file(part.path);
  if (!file.is_open()) return fail(std::strerror(errno));
  std::string bytes;
  if (!next(file, &bytes)) return false;
  before_ = 0;
  if (bytes.starts_with(kRdbMagic) || !is_log) {
    if (!load_rdb(file, part, is_log, &bytes)) return false;
  }
  return !is_log || replay(file, part, &bytes);
}

// What stands behind the RDB file is left in *bytes.
bool Loading::load_rdb(File& file, const RedisFiles::Part& part, bool is_log, std::string* bytes) {
  // A log says itself what of its base went.
  const auto loader = std::make_shared<data::RdbLoader>(
      services_.data, static_cast<int>(services_.data.store.initial_state().databases.size()),
      data::RdbLoadOptions{.keep_expired = is_log});
  while (!loader->finished()) {
    if (bytes->empty()) {
      return fail(fmt::format("it ends at byte {}, before its end", loader->bytes_loaded()));
    }
    if (!loader->feed(*bytes)) return fail(loader->error());
    services_.loading.keys_loaded = loader->keys_loaded();
    services_.loading.keys_expired = loader->keys_expired();
    if (!loader->finished() && !next(file, bytes)) return false;
  }
  bytes->erase(0, loader->taken());
  before_ = loader->bytes_loaded();
  metrics::log::notice("Loaded {} keys from {}, and left out {} that had expired",
                       loader->keys_loaded(), part.path, loader->keys_expired());
  const bool is_published = publish(loader);
  services_.data.stats.changes_since_save = 0;  // they are in that file
  return is_published;
}

bool Loading::publish(std::shared_ptr<data::RdbLoader> loader) {
  std::promise<storage::Status> outcome;
  const std::string why = exec::publish(
      services_, writer_,
      {.loader = std::move(loader), .also = {}, .done = [&](const storage::Status& status) {
         outcome.set_value(status);
       }});
  if (!why.empty()) return fail(why);
  const storage::Status status = outcome.get_future().get();
  return status.ok() || fail("storage: " + status.message());
}

bool Loading::replay(File& file, const RedisFiles::Part& part, std::string* bytes) {
  exec::LogReplay log(services_, writer_);
  uint64_t size = before_;
  do {
    size += bytes->size();
    if (!log.feed(*bytes)) return fail(log.error());
    if (!next(file, bytes)) return false;
  } while (!bytes->empty());
  metrics::log::notice("Ran {} commands of {}", log.commands(), part.path);
  const uint64_t whole = before_ + log.whole_bytes();
  if (whole == size) return true;
  if (!part.may_be_cut_off || !cut_off_is_taken_) {
    return fail(fmt::format(
        "it ends in the middle of a command or a transaction, which begins at byte {}{}", whole,
        part.may_be_cut_off ? " ('aof-load-truncated yes' would load what is before)" : ""));
  }
  metrics::log::warning(
      "{} ends in the middle of a command or a transaction: the last {} bytes are "
      "not loaded",
      part.path, size - whole);
  return true;
}

}  // namespace

FirstLoad::FirstLoad(const settings::Settings& settings)
    : settings_(settings), marker_(settings::data_path(settings) + ".loading") {}

std::optional<std::string> FirstLoad::prepare() {
  const std::string data = settings::data_path(settings_);
  std::error_code failed;
  const bool was_begun = fs::exists(marker_, failed);
  if (was_begun) {
    metrics::log::warning("An earlier load has not come to its end: {} is removed", data);
    fs::remove_all(data, failed);
    if (failed) return fmt::format("Can't remove {}: {}", data, failed.message());
  } else if (has_content(data)) {
    return std::nullopt;
  }
  if (!settings_.ignore_redis_files) files_ = find_redis_files(settings_);
  if (!files_.error.empty()) {
    return fmt::format(
        "There are data of Redis in {}, and none of Ingot: {}. Say which are to be "
        "loaded, move them away, or start empty beside them with "
        "'ignore-redis-files yes'.",
        settings_.dir, files_.error);
  }
  if (files_.parts.empty()) {
    if (was_begun) fs::remove(marker_, failed);
    return failed ? std::optional(fmt::format("Can't remove {}: {}", marker_, failed.message()))
                  : std::nullopt;
  }
  if (!files_.passed_over.empty()) metrics::log::warning("{}", files_.passed_over);
  const auto status = storage::write_durably(marker_, "the data beside this are not complete\n");
  if (!status.ok()) return fmt::format("Can't write {}: {}", marker_, status.message());
  return std::nullopt;
}

std::optional<std::string> FirstLoad::run(exec::Services& services, exec::Writer& writer,
                                          const std::function<bool()>& stopped) {
  const auto row = settings::find_setting("aof-load-truncated").row;
  const bool is_log =
      settings::print_value(*settings::find_setting("appendonly").row, settings_) == "yes";
  std::error_code failed;
  for (const RedisFiles::Part& part : files_.parts) {
    services.loading.total_bytes += fs::file_size(part.path, failed);
  }
  writer.set_active_expire(false);
  Loading loading(services, writer, stopped, settings::print_value(*row, settings_) == "yes");
  for (const RedisFiles::Part& part : files_.parts) {
    metrics::log::notice("Loading {}", part.path);
    if (!loading.load(part, is_log)) {
      return fmt::format("Can't load {}: {}", part.path, loading.error());
    }
  }
  // From here on the data are ours.
  storage::Status status = services.data.store.engine().sync();
  if (!status.ok()) return "Can't keep what was loaded: " + status.message();
  if (!fs::remove(marker_, failed)) {
    return fmt::format("Can't remove {}: {}", marker_, failed.message());
  }
  status = storage::sync_directory(settings_.dir);
  if (!status.ok()) return "Can't keep what was loaded: " + status.message();
  writer.set_active_expire(true);
  return std::nullopt;
}

}  // namespace ingot::server
