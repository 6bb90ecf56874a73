// Tests only: a RocksDB file system whose disk fails on demand, so that a black-box test can fill
// the disk or break fsync under a running server.
//
// It reads a control file (at most every 10 ms). Its words, separated by white space:
//   no-append  every append fails with ENOSPC after half of its bytes were written, as a disk
//              that fills up does: the torn bytes stay in the file
//   no-space   the same, and no room can be had in advance, as on most full disks
//   no-create  no file can be created (ENOSPC)
//   no-rename  no file can be renamed (ENOSPC)
//   fail-sync  every fsync fails with EIO; what was appended stays readable, and whether it
//              reached the disk is unknown
//   slow-append  every append takes seven seconds longer
//   slow-sync  every fsync takes half a second longer
//   read-only  nothing can be written or created: a file system with errors, mounted anew
// An empty or absent file means a healthy disk. Thread safe.
#pragma once

#include <memory>
#include <string>

namespace rocksdb {
class Env;
}

namespace ingot::storage {

// Its threads and clock are those of the default Env.
std::unique_ptr<rocksdb::Env> make_fault_env(const std::string& control_file);

}  // namespace ingot::storage
