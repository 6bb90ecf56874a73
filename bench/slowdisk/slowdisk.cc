// A mirror of a folder (FUSE) that is as slow as a disk of a given kind, on any machine:
//
//   slowdisk FOLDER MOUNT --profile hdd|sata|cloud
//   slowdisk FOLDER MOUNT --read-latency-us 6600 --iops 150 --bandwidth-mb 150 --fsync-us 8300
//   --rotates
//
// FOLDER should be on a disk that is much faster, or in memory. Every read is charged, as if the
// page cache were empty; --page-cache lets the kernel keep what was read. How writes are charged:
// slow_device.h.
// --overhead-us is taken off every request: what FUSE takes by itself.
//
// What the disk has done stands in an attribute of MOUNT, in the form of /proc/diskstats:
// user.diskstats; its speed, for people: user.speed. SIGTERM and SIGINT unmount.
#define FUSE_USE_VERSION 31

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fuse3/fuse.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/slowdisk/slow_device.h"

namespace {

using slowdisk::SlowDevice;
using std::chrono::microseconds;

// Each request sleeps on a thread of its own: so many can wait for the disk at the same time.
constexpr unsigned kThreads = 256;

// Set before the file system is mounted, and never again.
slowdisk::Speed speed;
bool page_cache = false;
int root = -1;  // the folder
// From init() to destroy(): its thread would not survive a fork.
std::unique_ptr<SlowDevice> device;

// FUSE's paths begin with a slash; openat() and its relatives want none.
const char* below_root(const char* path) {
  return path[1] == '\0' ? "." : path + 1;
}

int result_of(int done) {
  return done == -1 ? -errno : done;
}

int handle_of(const fuse_file_info* info) {
  return static_cast<int>(info->fh);
}

bool is_open(const fuse_file_info* info) {
  return info != nullptr && info->fh != 0;
}

uint64_t number_of(int handle) {
  struct stat found;
  return fstat(handle, &found) == 0 ? found.st_ino : 0;
}

int get_attributes(const char* path, struct stat* found, fuse_file_info* info) {
  if (is_open(info)) return result_of(fstat(handle_of(info), found));
  return result_of(fstatat(root, below_root(path), found, AT_SYMLINK_NOFOLLOW));
}

int make_directory(const char* path, mode_t mode) {
  return result_of(mkdirat(root, below_root(path), mode));
}

int open_as(const char* path, int flags, mode_t mode, fuse_file_info* info) {
  // Our own buffers are not aligned; and it is we who are slow, not the disk below.
  const int handle = openat(root, below_root(path), (flags & ~O_DIRECT) | O_CLOEXEC, mode);
  if (handle == -1) return -errno;
  info->fh = static_cast<uint64_t>(handle);
  info->direct_io = page_cache ? 0 : 1;
  return 0;
}

int open_file(const char* path, fuse_file_info* info) {
  return open_as(path, info->flags, 0, info);
}

int create_file(const char* path, mode_t mode, fuse_file_info* info) {
  return open_as(path, info->flags | O_CREAT, mode, info);
}

int read_file(const char*, char* buffer, size_t size, off_t offset, fuse_file_info* info) {
  const int handle = handle_of(info);
  const auto request = device->begin(SlowDevice::Kind::kRead, number_of(handle),
                                     static_cast<uint64_t>(offset), size);
  const int done = result_of(static_cast<int>(pread(handle, buffer, size, offset)));
  device->finish(request);
  return done;
}

int write_file(const char*, const char* bytes, size_t size, off_t offset, fuse_file_info* info) {
  const int handle = handle_of(info);
  if ((info->flags & O_DIRECT) == 0) {
    const int done = result_of(static_cast<int>(pwrite(handle, bytes, size, offset)));
    if (done > 0) device->wrote(number_of(handle), static_cast<size_t>(done));
    return done;
  }
  const auto request = device->begin(SlowDevice::Kind::kWrite, number_of(handle),
                                     static_cast<uint64_t>(offset), size);
  const int done = result_of(static_cast<int>(pwrite(handle, bytes, size, offset)));
  device->finish(request);
  return done;
}

int sync_file(const char*, int, fuse_file_info* info) {
  // The folder below keeps what a crash of the machine leaves to chance: nobody needs it there.
  device->flush(number_of(handle_of(info)));
  return 0;
}

int close_file(const char*, fuse_file_info* info) {
  return result_of(close(handle_of(info)));
}

int truncate_file(const char* path, off_t size, fuse_file_info* info) {
  if (is_open(info)) return result_of(ftruncate(handle_of(info), size));
  const int handle = openat(root, below_root(path), O_WRONLY | O_CLOEXEC);
  if (handle == -1) return -errno;
  const int done = result_of(ftruncate(handle, size));
  close(handle);
  return done;
}

int allocate(const char*, int mode, off_t offset, off_t size, fuse_file_info* info) {
  return result_of(fallocate(handle_of(info), mode, offset, size));
}

int open_directory(const char* path, fuse_file_info* info) {
  const int handle = openat(root, below_root(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle == -1) return -errno;
  info->fh = static_cast<uint64_t>(handle);
  return 0;
}

int read_directory(const char*, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info* info,
                   fuse_readdir_flags) {
  DIR* const directory = fdopendir(dup(handle_of(info)));
  if (directory == nullptr) return -errno;
  rewinddir(directory);
  while (const dirent* entry = readdir(directory)) {
    fill(buffer, entry->d_name, nullptr, 0, fuse_fill_dir_flags(0));
  }
  closedir(directory);
  return 0;
}

int remove_file(const char* path) {
  struct stat found;
  const bool last =
      fstatat(root, below_root(path), &found, AT_SYMLINK_NOFOLLOW) == 0 && found.st_nlink == 1;
  const int done = result_of(unlinkat(root, below_root(path), 0));
  if (done == 0 && last) device->forget(found.st_ino);
  return done;
}

int remove_directory(const char* path) {
  return result_of(unlinkat(root, below_root(path), AT_REMOVEDIR));
}

int rename_file(const char* from, const char* to, unsigned flags) {
  return result_of(renameat2(root, below_root(from), root, below_root(to), flags));
}

int link_file(const char* from, const char* to) {
  return result_of(linkat(root, below_root(from), root, below_root(to), 0));
}

int change_mode(const char* path, mode_t mode, fuse_file_info* info) {
  if (is_open(info)) return result_of(fchmod(handle_of(info), mode));
  return result_of(fchmodat(root, below_root(path), mode, 0));
}

int change_times(const char* path, const timespec* times, fuse_file_info* info) {
  if (is_open(info)) return result_of(futimens(handle_of(info), times));
  return result_of(utimensat(root, below_root(path), times, AT_SYMLINK_NOFOLLOW));
}

int statistics(const char*, struct statvfs* found) {
  return result_of(fstatvfs(root, found));
}

int get_attribute(const char* path, const char* name, char* value, size_t bytes) {
  const std::string_view what = name;
  std::string text;
  if (std::string_view(path) == "/" && what == "user.diskstats") {
    text = device->statistics();
  } else if (std::string_view(path) == "/" && what == "user.speed") {
    text = speed.text();
  } else {
    return -ENODATA;
  }
  if (bytes > 0 && bytes < text.size()) return -ERANGE;
  if (bytes > 0) text.copy(value, text.size());
  return static_cast<int>(text.size());
}

void* begin(fuse_conn_info* connection, fuse_config* config) {
  connection->max_background = kThreads;
  connection->congestion_threshold = kThreads;
  config->hard_remove = 1;  // our open files need no name
  config->nullpath_ok = 1;
  config->use_ino = 1;
  device = std::make_unique<SlowDevice>(speed);
  return nullptr;
}

void end(void*) {
  device.reset();
}

fuse_operations operations() {
  fuse_operations all = {};
  all.getattr = get_attributes;
  all.mkdir = make_directory;
  all.create = create_file;
  all.open = open_file;
  all.read = read_file;
  all.write = write_file;
  all.truncate = truncate_file;
  all.fallocate = allocate;
  all.fsync = sync_file;
  all.fsyncdir = sync_file;
  all.release = close_file;
  all.opendir = open_directory;
  all.readdir = read_directory;
  all.releasedir = close_file;
  all.unlink = remove_file;
  all.rmdir = remove_directory;
  all.rename = rename_file;
  all.link = link_file;
  all.chmod = change_mode;
  all.utimens = change_times;
  all.statfs = statistics;
  all.getxattr = get_attribute;
  all.init = begin;
  all.destroy = end;
  return all;
}

[[noreturn]] void refuse(const std::string& why) {
  fmt::print(
      stderr,
      "slowdisk: {}\nusage: slowdisk FOLDER MOUNT [--profile hdd|sata|cloud] [--read-latency-us N] "
      "[--iops N]\n"
      "       [--bandwidth-mb N] [--fsync-us N] [--overhead-us N] [--rotates] [--page-cache]\n",
      why);
  std::exit(2);
}

double number(std::string_view option, const char* text) {
  char* rest = nullptr;
  const double value = std::strtod(text, &rest);
  if (*text == '\0' || *rest != '\0' || !(value >= 0) || value > 1e12) {
    refuse(fmt::format("{} wants a number and not '{}'", option, text));
  }
  return value;
}

microseconds time_of(std::string_view option, const char* text) {
  return microseconds(static_cast<int64_t>(number(option, text)));
}

// FOLDER and MOUNT.
std::vector<std::string> parse(int count, char** words) {
  std::vector<std::string> places;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (!word.starts_with("--")) {
      places.emplace_back(word);
    } else if (word == "--help") {
      refuse("a mirror of FOLDER on MOUNT that is as slow as a disk");
    } else if (word == "--rotates") {
      speed.rotates = true;
    } else if (word == "--page-cache") {
      page_cache = true;
    } else if (i + 1 == count) {
      refuse(fmt::format("{} is no option, or wants a value", word));
    } else if (const char* const value = words[++i]; word == "--profile") {
      const auto known = slowdisk::speed_of(value);
      if (!known) refuse(fmt::format("there is no profile '{}'", value));
      speed = *known;
    } else if (word == "--read-latency-us") {
      speed.latency = time_of(word, value);
    } else if (word == "--fsync-us") {
      speed.fsync = time_of(word, value);
    } else if (word == "--overhead-us") {
      speed.overhead = time_of(word, value);
    } else if (word == "--iops") {
      speed.iops = number(word, value);
    } else if (word == "--bandwidth-mb") {
      speed.bytes_per_second = number(word, value) * 1e6;
    } else {
      refuse(fmt::format("there is no option {}", word));
    }
  }
  if (places.size() != 2) refuse("a folder and a place to mount it are wanted");
  return places;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> places = parse(count, words);
  root = open(places[0].c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root == -1) refuse(fmt::format("{} is no folder that can be read", places[0]));
  // The threads inherit it: a sleep of 90 us should not take 140.
  prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
  const std::string threads = fmt::format("-omax_threads={0},max_idle_threads={0}", kThreads);
  std::vector<std::string> arguments = {"slowdisk", places[1], "-f", threads,
                                        "-ofsname=slowdisk,auto_unmount"};
  std::vector<char*> pointers;
  pointers.reserve(arguments.size());
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  const fuse_operations all = operations();
  return fuse_main(static_cast<int>(pointers.size()), pointers.data(), &all, nullptr);
}
