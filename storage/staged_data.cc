// Making a data directory beside its place and moving it there.
#include "storage/staged_data.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "storage/durable_file.h"

namespace ingot::storage {

namespace fs = std::filesystem;

namespace {

// A file system of its own has this from the beginning.
bool is_nearly_empty(const fs::path& directory, std::error_code& error) {
  fs::directory_iterator it(directory, error);
  if (!error && it != fs::directory_iterator() && it->path().filename() == "lost+found") {
    it.increment(error);
  }
  return !error && it == fs::directory_iterator();
}

}  // namespace

StagedData::StagedData(const std::string& target, std::string_view maker)
    // A trailing slash is no part of a name that others are made of.
    : target_((fs::absolute(target) / ".").lexically_normal().parent_path().string()),
      status_(make_scratch(maker)) {}

StagedData::~StagedData() {
  std::error_code ignored;
  fs::remove_all(scratch_, ignored);
}

Status StagedData::make_scratch(std::string_view maker) {
  std::error_code error;
  const bool is_there = fs::exists(target_, error);
  if (is_there && !(fs::is_directory(target_, error) && is_nearly_empty(target_, error))) {
    return {Status::Code::kInvalid, fmt::format("{} is there already, and not empty", target_)};
  }
  // Inside of one that is there, which may be another file system.
  scratch_ = fmt::format("{}{}{}-{}", target_, is_there ? "/" : ".", maker, getpid());
  if (!error) fs::create_directories(scratch_, error);
  if (!error) return {};
  return {Status::Code::kIo, fmt::format("cannot create {}: {}", scratch_, error.message())};
}

Status StagedData::publish() {
  std::error_code error;
  const fs::path target = target_;
  fs::create_directories(target, error);
  if (!error) fs::rename(path(), target / "ingot-data", error);
  if (error) {
    return {Status::Code::kIo,
            fmt::format("cannot move the result to {}: {}", target_, error.message())};
  }
  if (Status status = sync_directory(target_); !status.ok()) return status;
  return sync_directory(target.parent_path().string());
}

}  // namespace ingot::storage
