// A file system in memory (FUSE) whose power goes, and whose calls fail, when it is told so:
//
//   faulty_disk FOLDER -f         mounts it; FOLDER begins empty
//
// What it is told stands in attributes of FOLDER (setfattr, getfattr):
//   user.power-loss   SEED: the power goes; what is left follows from the seed
//   user.fail-change  "N CODE": the Nth call from now that changes something fails with this
//                     errno (0: all from now on)
//   user.fail-read    the same of reads and opens
//   user.fail-growth  the same of those changes that take space
//   user.fail-none    it works again
//   user.slow-syncs   MS: how long each fsync of a file takes from now on
//   user.hold-syncs   no fsync of a file is over from now on, if such fsyncs take their time
//   user.drop-syncs   those that are held fail and have done nothing; not held any more
//   user.changes      how many calls changed something; user.reads
//
// Before the power goes, whoever used the files must be killed; the system waits for its calls, so
// that an fsync is cut short by hold-syncs before, and drop-syncs behind the signal. What was not
// fsynced of a file is lost whole, or kept, or kept up to a write that is torn, or kept page by
// page in no order (its length, too). What was not fsynced of a directory (files made, renamed,
// removed) is lost, or kept, each for itself. A file that was fsynced in a directory that was not
// may have lost its name: POSIX promises no more.
//
// One call at a time, but for the waiting of an fsync.
#define FUSE_USE_VERSION 31

#include <fuse3/fuse.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr size_t kPageBytes = 4096;
using Random = std::mt19937_64;

struct Node;
using NodePtr = std::shared_ptr<Node>;
using Names = std::map<std::string, NodePtr>;

struct Write {
  size_t at;
  std::string bytes;
  bool truncates = false;  // the file ends at `at`
};

// One call's changes of a directory; a null node: the name goes.
using Naming = std::vector<std::pair<std::string, NodePtr>>;

struct Node {
  explicit Node(mode_t its_mode) : mode(its_mode) { clock_gettime(CLOCK_REALTIME, &changed); }
  bool is_directory() const { return S_ISDIR(mode); }

  mode_t mode;
  timespec changed;
  // A file: what is read, what is on stable storage, and the way from this to that.
  std::string now, synced;
  std::vector<Write> writes;
  uint64_t writes_before = 0;  // how many there were before these
  // A directory, in the same way.
  Names names_now, names_synced;
  std::vector<Naming> namings;
};

void change(std::string& content, const Write& write, size_t bytes) {
  if (write.truncates) return content.resize(write.at);
  if (content.size() < write.at + bytes) content.resize(write.at + bytes);
  std::memcpy(content.data() + write.at, write.bytes.data(), bytes);
}

void change(Names& names, const Naming& naming) {
  for (const auto& [name, node] : naming) {
    if (node) {
      names[name] = node;
    } else {
      names.erase(name);
    }
  }
}

uint64_t writes_so_far(const Node& node) {
  return node.writes_before + node.writes.size();
}

// So many of all writes, and every naming.
void sync(Node& node, uint64_t writes) {
  const auto end = node.writes.begin() +
                   static_cast<int64_t>(std::max(writes, node.writes_before) - node.writes_before);
  for (auto at = node.writes.begin(); at != end; ++at) change(node.synced, *at, at->bytes.size());
  node.writes_before = std::max(writes, node.writes_before);
  node.writes.erase(node.writes.begin(), end);
  for (const Naming& naming : node.namings) change(node.names_synced, naming);
  node.namings.clear();
}

void lose_content(Node& file, Random& random) {
  switch (random() % 4) {
    case 0:
      break;
    case 1:
      sync(file, writes_so_far(file));
      break;
    case 2:
      if (!file.writes.empty()) {
        const size_t whole = random() % file.writes.size();
        for (size_t i = 0; i < whole; ++i) {
          change(file.synced, file.writes[i], file.writes[i].bytes.size());
        }
        const Write& torn = file.writes[whole];
        if (!torn.bytes.empty()) change(file.synced, torn, random() % torn.bytes.size());
      }
      break;
    default:
      if (!file.writes.empty()) {
        if (random() % 2 == 0) file.synced.resize(file.now.size());
        const size_t end = std::min(file.synced.size(), file.now.size());
        for (size_t at = 0; at < end; at += kPageBytes) {
          if (random() % 2 == 0) continue;
          std::memcpy(file.synced.data() + at, file.now.data() + at,
                      std::min(kPageBytes, end - at));
        }
      }
  }
  file.writes_before += file.writes.size();
  file.writes.clear();
  file.now = file.synced;
}

void lose(Node& node, Random& random, std::set<Node*>& done) {
  if (!done.insert(&node).second) return;
  if (!node.is_directory()) return lose_content(node, random);
  const int kept_of_4 = std::vector<int>{0, 2, 3, 4}[random() % 4];
  for (const Naming& naming : node.namings) {
    if (static_cast<int>(random() % 4) < kept_of_4) change(node.names_synced, naming);
  }
  node.namings.clear();
  node.names_now = node.names_synced;
  for (const auto& [name, child] : node.names_now) lose(*child, random, done);
}

// Calls of one kind, of which one is to fail.
struct Calls {
  uint64_t seen = 0;
  uint64_t failing = UINT64_MAX;  // this one
  bool all_after = false;         // and all after it
  int code = 0;

  // What the call that begins now answers: 0, or a negative errno.
  int begin() {
    ++seen;
    return seen == failing || (all_after && failing != UINT64_MAX && seen > failing) ? -code : 0;
  }
  void fail(const std::string& how) {
    char* rest = nullptr;
    const uint64_t which = std::strtoull(how.c_str(), &rest, 10);
    all_after = which == 0;
    failing = seen + which;
    code = std::atoi(rest);
  }
};
Calls changes, reads, growths;

NodePtr root = std::make_shared<Node>(S_IFDIR | 0755);

std::mutex mutex;  // guards everything
std::condition_variable sync_change;
std::chrono::milliseconds sync_time{0};
bool syncs_held = false;
uint64_t syncs_dropped = 0;  // how often

template <auto operation>
struct Alone;
template <class... A, int (*operation)(A...)>
struct Alone<operation> {
  static int call(A... arguments) {
    const std::lock_guard lock(mutex);
    return operation(arguments...);
  }
};

NodePtr find(std::string_view path) {
  NodePtr node = root;
  while (node && !path.empty()) {
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    if (path.empty()) break;
    const std::string name(path.substr(0, path.find('/')));
    path.remove_prefix(name.size());
    const auto found = node->names_now.find(name);
    node = found == node->names_now.end() ? nullptr : found->second;
  }
  return node;
}

std::string name_of(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

NodePtr parent_of(std::string_view path) {
  return find(path.substr(0, path.rfind('/')));
}

Node* opened(fuse_file_info* info) {
  return reinterpret_cast<NodePtr*>(info->fh)->get();
}

NodePtr node_of(const char* path, fuse_file_info* info) {
  return info != nullptr && info->fh != 0 ? *reinterpret_cast<NodePtr*>(info->fh) : find(path);
}

void open_as(const NodePtr& node, fuse_file_info* info) {
  info->fh = reinterpret_cast<uint64_t>(new NodePtr(node));
}

void rename_in(const NodePtr& directory, Naming naming) {
  change(directory->names_now, naming);
  directory->namings.push_back(std::move(naming));
}

void write_to(Node& file, Write write) {
  change(file.now, write, write.bytes.size());
  file.writes.push_back(std::move(write));
  clock_gettime(CLOCK_REALTIME, &file.changed);
}

int get_attributes(const char* path, struct stat* found, fuse_file_info* info) {
  const NodePtr node = node_of(path, info);
  if (!node) return -ENOENT;
  *found = {};
  found->st_mode = node->mode;
  found->st_nlink = 1;
  found->st_size = static_cast<off_t>(node->now.size());
  found->st_blocks = static_cast<blkcnt_t>((node->now.size() + 511) / 512);
  found->st_mtim = found->st_ctim = found->st_atim = node->changed;
  return 0;
}

int make_directory(const char* path, mode_t mode) {
  if (const int failed = changes.begin()) return failed;
  if (const int failed = growths.begin()) return failed;
  const NodePtr parent = parent_of(path);
  if (!parent) return -ENOENT;
  if (parent->names_now.contains(name_of(path))) return -EEXIST;
  rename_in(parent, {{name_of(path), std::make_shared<Node>(S_IFDIR | mode)}});
  return 0;
}

int create_file(const char* path, mode_t mode, fuse_file_info* info) {
  if (const int failed = changes.begin()) return failed;
  if (const int failed = growths.begin()) return failed;
  const NodePtr parent = parent_of(path);
  if (!parent) return -ENOENT;
  const auto file = std::make_shared<Node>(S_IFREG | (mode & 07777));
  rename_in(parent, {{name_of(path), file}});
  open_as(file, info);
  return 0;
}

int open_file(const char* path, fuse_file_info* info) {
  if (const int failed = reads.begin()) return failed;
  const NodePtr file = find(path);
  if (!file) return -ENOENT;
  if ((info->flags & O_TRUNC) != 0) write_to(*file, {.at = 0, .bytes = {}, .truncates = true});
  open_as(file, info);
  return 0;
}

int read_file(const char*, char* buffer, size_t size, off_t offset, fuse_file_info* info) {
  if (const int failed = reads.begin()) return failed;
  const std::string& content = opened(info)->now;
  const auto at = static_cast<size_t>(offset);
  if (at >= content.size()) return 0;
  return static_cast<int>(content.copy(buffer, size, at));
}

int write_file(const char*, const char* bytes, size_t size, off_t offset, fuse_file_info* info) {
  if (const int failed = changes.begin()) return failed;
  if (const int failed = growths.begin()) return failed;
  Node& file = *opened(info);
  const size_t at = (info->flags & O_APPEND) != 0 ? file.now.size() : static_cast<size_t>(offset);
  write_to(file, {.at = at, .bytes = std::string(bytes, size)});
  return static_cast<int>(size);
}

int truncate_file(const char* path, off_t size, fuse_file_info* info) {
  if (const int failed = changes.begin()) return failed;
  const NodePtr file = node_of(path, info);
  if (!file) return -ENOENT;
  write_to(*file, {.at = static_cast<size_t>(size), .bytes = {}, .truncates = true});
  return 0;
}

int allocate(const char*, int, off_t, off_t, fuse_file_info*) {
  return -EOPNOTSUPP;
}

// False: it was dropped.
bool wait_for_sync(std::unique_lock<std::mutex>& lock) {
  const auto end = std::chrono::steady_clock::now() + sync_time;
  const uint64_t dropped = syncs_dropped;
  const auto is_dropped = [&] { return syncs_dropped != dropped; };
  sync_change.wait_until(lock, end, is_dropped);
  sync_change.wait(lock, [&] { return is_dropped() || !syncs_held; });
  return !is_dropped();
}

int sync_node(const char* path, int, fuse_file_info* info) {
  std::unique_lock lock(mutex);
  if (const int failed = changes.begin()) return failed;
  const NodePtr node = node_of(path, info);
  if (!node) return -ENOENT;
  const uint64_t writes = writes_so_far(*node);  // those that come meanwhile are not its own
  if (!node->is_directory() && sync_time.count() > 0 && !wait_for_sync(lock)) return -EIO;
  sync(*node, writes);
  return 0;
}

int close_node(const char*, fuse_file_info* info) {
  delete reinterpret_cast<NodePtr*>(info->fh);
  return 0;
}

int read_directory(const char* path, void* buffer, fuse_fill_dir_t fill, off_t,
                   fuse_file_info* info, fuse_readdir_flags) {
  if (const int failed = reads.begin()) return failed;
  const NodePtr directory = node_of(path, info);
  if (!directory) return -ENOENT;
  for (const char* self : {".", ".."}) fill(buffer, self, nullptr, 0, fuse_fill_dir_flags(0));
  for (const auto& [name, node] : directory->names_now) {
    fill(buffer, name.c_str(), nullptr, 0, fuse_fill_dir_flags(0));
  }
  return 0;
}

int remove_name(const char* path) {
  if (const int failed = changes.begin()) return failed;
  const NodePtr node = find(path);
  if (!node) return -ENOENT;
  if (!node->names_now.empty()) return -ENOTEMPTY;
  rename_in(parent_of(path), {{name_of(path), nullptr}});
  return 0;
}

int rename_node(const char* from, const char* to, unsigned) {
  if (const int failed = changes.begin()) return failed;
  const NodePtr node = find(from);
  const NodePtr before = parent_of(from), after = parent_of(to);
  if (!node || !after) return -ENOENT;
  if (before == after) {
    rename_in(after, {{name_of(from), nullptr}, {name_of(to), node}});
  } else {
    rename_in(after, {{name_of(to), node}});
    rename_in(before, {{name_of(from), nullptr}});
  }
  return 0;
}

int link_node(const char* from, const char* to) {
  if (const int failed = changes.begin()) return failed;
  const NodePtr node = find(from), parent = parent_of(to);
  if (!node || !parent) return -ENOENT;
  rename_in(parent, {{name_of(to), node}});
  return 0;
}

int change_mode(const char* path, mode_t mode, fuse_file_info* info) {
  const NodePtr node = node_of(path, info);
  if (!node) return -ENOENT;
  node->mode = (node->mode & S_IFMT) | (mode & 07777);
  return 0;
}

int change_times(const char* path, const timespec*, fuse_file_info* info) {
  return node_of(path, info) ? 0 : -ENOENT;
}

int set_attribute(const char*, const char* name, const char* value, size_t bytes, int) {
  const std::string_view what = name;
  const std::string how(value, bytes);
  if (what == "user.power-loss") {
    Random random(std::strtoull(how.c_str(), nullptr, 10));
    std::set<Node*> done;
    lose(*root, random, done);
  } else if (what == "user.fail-change") {
    changes.fail(how);
  } else if (what == "user.fail-read") {
    reads.fail(how);
  } else if (what == "user.fail-growth") {
    growths.fail(how);
  } else if (what == "user.fail-none") {
    changes.failing = reads.failing = growths.failing = UINT64_MAX;
  } else if (what == "user.slow-syncs") {
    sync_time = std::chrono::milliseconds(std::atoi(how.c_str()));
  } else if (what == "user.hold-syncs") {
    syncs_held = true;
  } else if (what == "user.drop-syncs") {
    syncs_held = false;
    ++syncs_dropped;
    sync_change.notify_all();
  } else {
    return -ENOTSUP;
  }
  return 0;
}

int get_attribute(const char*, const char* name, char* value, size_t bytes) {
  const std::string_view what = name;
  if (what != "user.changes" && what != "user.reads") return -ENODATA;
  const std::string text = std::to_string((what == "user.reads" ? reads : changes).seen);
  if (bytes >= text.size()) text.copy(value, text.size());
  return static_cast<int>(text.size());
}

int statistics(const char*, struct statvfs* found) {
  *found = {};
  found->f_bsize = found->f_frsize = kPageBytes;
  found->f_blocks = found->f_bfree = found->f_bavail = 1 << 24;
  found->f_namemax = 255;
  return 0;
}

// Nothing is kept by the kernel: after a power loss the same name may be another file.
void* begin(fuse_conn_info*, fuse_config* config) {
  config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
  config->hard_remove = 1;  // our open files need no name
  config->nullpath_ok = 1;
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  fuse_operations operations = {};
  operations.getattr = Alone<get_attributes>::call;
  operations.mkdir = Alone<make_directory>::call;
  operations.create = Alone<create_file>::call;
  operations.open = Alone<open_file>::call;
  operations.opendir = Alone<open_file>::call;
  operations.read = Alone<read_file>::call;
  operations.write = Alone<write_file>::call;
  operations.truncate = Alone<truncate_file>::call;
  operations.fallocate = Alone<allocate>::call;
  operations.fsync = sync_node;
  operations.fsyncdir = sync_node;
  operations.release = Alone<close_node>::call;
  operations.releasedir = Alone<close_node>::call;
  operations.readdir = Alone<read_directory>::call;
  operations.unlink = Alone<remove_name>::call;
  operations.rmdir = Alone<remove_name>::call;
  operations.rename = Alone<rename_node>::call;
  operations.link = Alone<link_node>::call;
  operations.chmod = Alone<change_mode>::call;
  operations.utimens = Alone<change_times>::call;
  operations.setxattr = Alone<set_attribute>::call;
  operations.getxattr = Alone<get_attribute>::call;
  operations.statfs = Alone<statistics>::call;
  operations.init = begin;
  return fuse_main(count, arguments, &operations, nullptr);
}
