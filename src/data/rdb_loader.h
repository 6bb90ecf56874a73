// Takes the bytes of an RDB file, in pieces cut anywhere, and fills fresh keyspaces beside the data
// with what they tell: every version from Redis 2.6 to 7.4 and Valkey 8. What is held is a piece of
// it: one element of a large value, or one value in a packed form.
//
// Nobody sees anything of it until the writer's commit of replace(); exec/publish.h is how to come
// to that. A loader that goes without leaves garbage that the collector takes away, and so does a
// crash.
//
// One thread at a time; replace() in the writer. The services outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/data/services.h"
#include "src/types/keyspace.h"

namespace ingot::data {

struct RdbLoadOptions {
  // Of a replica, whose master tells when they go. Else keys that have expired are left out.
  bool keep_expired = false;
  // Of a replica: sorted sets are packed where its master's are, whatever the limits: a packed one
  // has no -0. Else the limits of this server decide.
  bool keep_packing = false;
};

class RdbLoader {
 public:
  // `databases`: how many there are; a file that has keys in others is refused.
  RdbLoader(Services& services, int databases, RdbLoadOptions options = {});
  // Looks into the engine whether what was loaded has become the data: blocks.
  ~RdbLoader();
  RdbLoader(const RdbLoader&) = delete;
  RdbLoader& operator=(const RdbLoader&) = delete;

  // Takes some of the bytes, all of them unless the file ends before. Writes to the engine: blocks.
  // False: the bytes are not an RDB file, or storage failed; error() says it, and every later call
  // is false as well.
  [[nodiscard]] bool feed(std::string_view bytes);
  // The end has been read, its checksum fits, and all is in the engine. Nothing behind it is taken.
  bool finished() const;
  size_t taken() const;              // bytes of the last feed()
  const std::string& error() const;  // one sentence, for a log; empty: none

  uint64_t keys_loaded() const;   // without those that had expired
  uint64_t keys_expired() const;  // and were left out
  uint64_t bytes_loaded() const;  // of the file

  // As far as the file has come; all of them before its first key.
  const std::map<std::string, std::string>& aux() const;  // repl-id, repl-offset, ...
  const std::vector<std::string>& functions() const;      // the code of the libraries

  // In the writer, of a finished one: what was loaded becomes the data, all databases of it. Once.
  void replace(types::KeyWriter& keys) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ingot::data
