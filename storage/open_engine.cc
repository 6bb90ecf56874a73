// Opens an engine by its name, and keeps the engines out of each other's directories.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "storage/durable_file.h"
#include "storage/engine.h"

namespace ingot::storage {

namespace fs = std::filesystem;

namespace {

// Holds the name of the engine that wrote the directory: one library takes another's files for
// damaged ones, or crashes over them.
constexpr std::string_view kMarkerFile = "ENGINE";
constexpr std::string_view kDataExtensions[] = {".sst", ".ldb", ".log"};

Status holds_data_of(std::string_view found, std::string_view name, const std::string& path) {
  return {Status::Code::kInvalid,
          fmt::format("{} holds data of the engine '{}', not '{}'", path, found, name)};
}

// Whether a table or a log stands there, by its number.
bool has_numbered(const fs::path& path, std::string_view extension) {
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const fs::path file = it->path().filename();
    if (file.extension() != extension) continue;
    if (file.stem().string().find_first_not_of("0123456789") == std::string::npos) return true;
  }
  return false;
}

// Without the file that says what is current both engines make a new database, and remove what is
// there; another engine's files may have lost their marker. (A first start that ended early leaves
// neither tables nor logs, and goes on.)
Status refuse_strange_files(std::string_view name, const fs::path& path) {
  std::error_code error;
  const bool holds_data = std::ranges::any_of(
      kDataExtensions, [&](std::string_view each) { return has_numbered(path, each); });
  if (holds_data && !fs::exists(path / "CURRENT", error)) {
    return {Status::Code::kCorruption,
            fmt::format("{} holds data, but no CURRENT; ingot-repair reads what is there",
                        path.string())};
  }
  const std::string_view found = engine_by_files(path);
  const bool is_marked = fs::exists(path / kMarkerFile, error);
  return is_marked || found.empty() || found == name ? Status() : holds_data_of(found, name, path);
}

}  // namespace

std::string_view engine_by_files(const std::string& path) {
  std::error_code error;
  if (has_numbered(path, ".sst") || fs::exists(fs::path(path) / "IDENTITY", error)) {
    return "rocksdb";
  }
  return has_numbered(path, ".ldb") || has_numbered(path, ".log") ? "leveldb" : "";
}

Status claim_directory(std::string_view name, const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return {Status::Code::kIo, fmt::format("cannot create {}: {}", path, error.message())};
  const fs::path marker = fs::path(path) / kMarkerFile;
  if (fs::exists(marker, error)) {
    std::string found;
    if (Status status = read_file(marker.string(), &found); !status.ok()) return status;
    if (found == name) return {};
    return holds_data_of(found, name, path);
  }
  // What is acknowledged behind it would be out of reach without it.
  if (Status status = write_durably(marker.string(), name); !status.ok()) return status;
  return sync_directory(fs::absolute(fs::path(path) / "..").lexically_normal().string());
}

OpenResult open_engine(std::string_view name, const EngineOptions& options) {
  if (name == "memory") return open_memory(options);
  if (name != "rocksdb" && name != "leveldb") {
    return {
        nullptr,
        Status(Status::Code::kInvalid,
               fmt::format("unknown engine '{}'; it is one of rocksdb, leveldb, memory", name))};
  }
  if (Status status = refuse_strange_files(name, options.path); !status.ok()) {
    return {nullptr, status};
  }
  if (Status status = claim_directory(name, options.path); !status.ok()) return {nullptr, status};
  return name == "rocksdb" ? open_rocksdb(options) : open_leveldb(options);
}

}  // namespace ingot::storage
