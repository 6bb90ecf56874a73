// Opens an engine by its name, and keeps the engines out of each other's directories.
#include <fmt/format.h>

#include <filesystem>

#include "storage/durable_file.h"
#include "storage/engine.h"

namespace ingot::storage {

namespace {

// Holds the name of the engine that wrote the directory: one library takes another's files for
// damaged ones, or crashes over them.
constexpr std::string_view kMarkerFile = "ENGINE";

}  // namespace

Status claim_directory(std::string_view name, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return {Status::Code::kIo, fmt::format("cannot create {}: {}", path, error.message())};
  const fs::path marker = fs::path(path) / kMarkerFile;
  if (fs::exists(marker, error)) {
    std::string found;
    if (Status status = read_file(marker.string(), &found); !status.ok()) return status;
    if (found == name) return {};
    return {Status::Code::kInvalid,
            fmt::format("{} holds data of the engine '{}', not '{}'", path, found, name)};
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
  if (Status status = claim_directory(name, options.path); !status.ok()) return {nullptr, status};
  return name == "rocksdb" ? open_rocksdb(options) : open_leveldb(options);
}

}  // namespace ingot::storage
