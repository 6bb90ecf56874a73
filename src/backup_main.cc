// ingot-backup: incremental backups of a running server's data, and the way back.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "src/client/resp_client.h"
#include "storage/backups.h"
#include "storage/staged_data.h"

namespace {

using ingot::client::Reply;
using ingot::storage::Backups;
using ingot::storage::Status;

constexpr const char* kUsage =
    "Usage: ingot-backup create  BACKUPS [-h HOST] [-p PORT] [-s SOCKET] [--user NAME]\n"
    "       ingot-backup list    BACKUPS\n"
    "       ingot-backup verify  BACKUPS [ID]\n"
    "       ingot-backup restore BACKUPS ID|latest TARGET\n"
    "       ingot-backup purge   BACKUPS --keep N\n"
    "\n"
    "create   Has the server of this machine (127.0.0.1:6379 if nothing else is said) SAVE a\n"
    "         checkpoint and adds what is new in it to the directory BACKUPS. The server goes on\n"
    "         meanwhile. Its engine must be RocksDB. The password is taken from the environment\n"
    "         variable REDISCLI_AUTH. What is copied is read as the user who runs this.\n"
    "list     Prints a line for each backup: its number, when it was made, bytes, files. The\n"
    "         bytes are those of all its files; what it shares with others is stored once.\n"
    "verify   Reads the backup with this number, or each one, and compares all checksums.\n"
    "restore  Writes a backup, whose checksums it compares, to TARGET/ingot-data, where\n"
    "         ingot-server --dir TARGET finds it. TARGET must not exist, or be empty. One that is\n"
    "         killed leaves a TARGET.restore-N, or restore-N in TARGET, which may be removed.\n"
    "purge    Removes all backups but the last N.\n"
    "\n"
    "Exit code: 0 done; 1 a backup is damaged (list, verify); 2 it could not be done; 3 another\n"
    "ingot-backup is at work in BACKUPS.\n";

constexpr int kDamaged = 1;
constexpr int kFailed = 2;
constexpr int kBusy = 3;

struct Request {
  std::vector<std::string> words;
  ingot::client::ServerAddress server;
  std::optional<uint32_t> keep;
};

int fail(const std::string& why) {
  fmt::print(stderr, "ingot-backup: {}\n", why);
  return kFailed;
}

std::optional<uint32_t> parse_number(std::string_view text, uint32_t max) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > max) return std::nullopt;
  return number;
}

std::optional<Request> parse(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("-")) {
      request.words.emplace_back(word);
      continue;
    }
    if (++i == argc) return std::nullopt;
    const std::string_view value = argv[i];
    if (word == "-h") {
      request.server.host = value;
    } else if (word == "-s") {
      request.server.socket = value;
    } else if (word == "--user") {
      request.server.user = value;
    } else if (word == "-p") {
      const auto port = parse_number(value, UINT16_MAX);
      if (!port) return std::nullopt;
      request.server.port = static_cast<uint16_t>(*port);
    } else if (word == "--keep") {
      request.keep = parse_number(value, UINT32_MAX);
      if (!request.keep || *request.keep == 0) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  if (const char* password = std::getenv("REDISCLI_AUTH")) request.server.password = password;
  return request;
}

// The server that is asked for a checkpoint.
class Source {
 public:
  // What went wrong; empty: nothing. So are the others.
  std::string connect(const ingot::client::ServerAddress& address) {
    if (std::string why = client_.connect(address); !why.empty()) return why;
    std::string engine;
    if (std::string why = setting("engine", &engine); !why.empty()) return why;
    if (engine != "rocksdb") {
      return fmt::format("the server's engine is {}, which can only be copied while no server runs",
                         engine);
    }
    return {};
  }

  // Where the checkpoint stands that it has just made.
  std::string save(std::string* path) {
    // Somebody else's comes to an end; a disk at work may take its time.
    constexpr int kAttempts = 1200;
    constexpr std::chrono::milliseconds kPause{500};
    constexpr int64_t kPatienceMs = 1'200'000;
    Reply reply;
    for (int attempt = 1;; ++attempt) {
      if (!client_.call({"SAVE"}, &reply, kPatienceMs)) return "the server has hung up";
      if (reply.kind != Reply::Kind::kError) break;
      const bool is_saving = reply.text == "ERR Background save already in progress";
      if (!is_saving || attempt == kAttempts) return "the server refuses to SAVE: " + reply.text;
      std::this_thread::sleep_for(kPause);
    }
    std::string dir;
    std::string name;
    if (std::string why = setting("dir", &dir); !why.empty()) return why;
    if (std::string why = setting("dbfilename", &name); !why.empty()) return why;
    *path = dir + "/" + name + ".checkpoint";
    std::error_code error;
    if (std::filesystem::is_directory(*path, error)) return {};
    return fmt::format("cannot see {} ({}): is the server on another machine?", *path,
                       error ? error.message() : "no directory");
  }

 private:
  std::string setting(std::string_view name, std::string* value) {
    Reply reply;
    if (!client_.call({"CONFIG", "GET", name}, &reply)) return "the server has hung up";
    if (reply.kind == Reply::Kind::kError) {
      return fmt::format("the server refuses CONFIG GET {}: {}", name, reply.text);
    }
    if (reply.text != "2") return fmt::format("the server is no Ingot: it has no '{}'", name);
    Reply told;
    if (!client_.read(&told) || !client_.read(&reply)) return "the server has hung up";
    *value = reply.text;
    return {};
  }

  ingot::client::RespClient client_;
};

int create(Backups& backups, const Request& request) {
  constexpr int kAttempts = 5;  // others may SAVE as well, again and again
  Source source;
  if (std::string why = source.connect(request.server); !why.empty()) return fail(why);
  Backups::Backup made;
  for (int attempt = 1;; ++attempt) {
    std::string path;
    if (std::string why = source.save(&path); !why.empty()) return fail(why);
    const Status status = backups.create(path, &made);
    if (status.ok()) break;
    if (status.code() != Status::Code::kBusy || attempt == kAttempts) return fail(status.message());
  }
  fmt::print("backup {}: {} bytes in {} files\n", made.id, made.bytes, made.files);
  return 0;
}

int list(const Backups& backups) {
  for (const Backups::Backup& backup : backups.list()) {
    fmt::print("{:>6}  {:%Y-%m-%d %H:%M:%S}  {:>16}  {:>6}\n", backup.id,
               fmt::localtime(static_cast<std::time_t>(backup.made_s)), backup.bytes, backup.files);
  }
  const std::vector<uint32_t> damaged = backups.damaged();
  for (const uint32_t id : damaged) fmt::print("{:>6}  damaged: files of it are not there\n", id);
  return damaged.empty() ? 0 : kDamaged;
}

int verify(const Backups& backups, std::optional<uint32_t> wanted) {
  int worst = 0;
  bool found = false;
  for (const uint32_t id : backups.damaged()) {
    if (wanted && *wanted != id) continue;
    found = true;
    worst = kDamaged;
    fmt::print("backup {}: damaged, files of it are not there\n", id);
  }
  for (const Backups::Backup& backup : backups.list()) {
    if (wanted && *wanted != backup.id) continue;
    found = true;
    const Status status = backups.verify(backup.id);
    if (status.ok()) {
      fmt::print("backup {}: sound\n", backup.id);
    } else if (status.code() == Status::Code::kCorruption) {
      worst = kDamaged;
      fmt::print("{}\n", status.message());
    } else {  // the disk failed: nothing is known of it
      const int code = fail(status.message());
      if (worst == 0) worst = code;
    }
  }
  if (wanted && !found) return fail(fmt::format("there is no backup {}", *wanted));
  return worst;
}

int restore(const Backups& backups, const std::string& which, const std::string& target) {
  const std::vector<Backups::Backup> all = backups.list();
  if (all.empty()) return fail("there is no backup");
  const auto id = which == "latest" ? all.back().id : parse_number(which, UINT32_MAX);
  if (!id) return fail(fmt::format("'{}' is no number of a backup", which));
  for (const uint32_t damaged : backups.damaged()) {
    if (which != "latest" || damaged < *id) continue;
    return fail(
        fmt::format("backup {} is later, and damaged; say {} to have that one", damaged, *id));
  }
  ingot::storage::StagedData made(target, "restore");
  if (!made.status().ok()) return fail(made.status().message());
  Status status = backups.restore(*id, made.path());
  if (status.ok()) status = made.publish();
  if (!status.ok()) return fail(status.message());
  fmt::print("backup {} is in {}\n", *id, made.target());
  return 0;
}

int run(const Request& request) {
  const std::vector<std::string>& words = request.words;
  const std::string& command = words[0];
  const bool changes = command == "create" || command == "purge";
  const auto [backups, status] =
      Backups::open(words[1], changes ? Backups::Access::kChange : Backups::Access::kRead);
  if (!backups) {
    const int code = fail(status.message());
    return status.code() == Status::Code::kBusy ? kBusy : code;
  }
  if (command == "create") return create(*backups, request);
  if (command == "list") return list(*backups);
  if (command == "restore") return restore(*backups, words[2], words[3]);
  if (command == "purge") {
    const Status purged = backups->purge(*request.keep);
    return purged.ok() ? 0 : fail(purged.message());
  }
  if (words.size() == 2) return verify(*backups, std::nullopt);
  const auto id = parse_number(words[2], UINT32_MAX);
  if (!id) return fail(fmt::format("'{}' is no number of a backup", words[2]));
  return verify(*backups, id);
}

bool is_complete(const Request& request) {
  const std::vector<std::string>& words = request.words;
  if (words.empty()) return false;
  const std::string& command = words[0];
  if (command == "create" || command == "list") return words.size() == 2;
  if (command == "verify") return words.size() == 2 || words.size() == 3;
  if (command == "restore") return words.size() == 4;
  return command == "purge" && words.size() == 2 && request.keep;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    fmt::print("{}", kUsage);
    return 0;
  }
  const auto request = parse(argc, argv);
  if (!request || !is_complete(*request)) {
    fmt::print(stderr, "{}", kUsage);
    return kFailed;
  }
  return run(*request);
}
