// Loads the metadata of keys into the block cache, all of them at the same time, before somebody
// reads them where the disk must not be waited for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/contract/row.h"
#include "src/exec/services.h"
#include "src/types/keyspace.h"

namespace ingot::exec {

// Keys that one pipeline may prefetch at a time; the rest is read when its turn comes.
inline constexpr size_t kPrefetchKeysMax = 1024;

// Whether all that the command needs of its keys may stay unread (key::kUnread).
bool may_leave_unread(const contract::CommandRow& row, contract::Args args);

// Adds the metadata keys of the command's declared keys that memory cannot answer at the moment.
// Any thread. Without a probe every key is added.
void add_cold_keys(Services& services, const contract::CommandRow& row, contract::Args args,
                   storage::KeyspaceId keyspace, std::vector<std::string>* meta_keys);

// Reads them in the pool, then calls `then` on the thread that finished last. `then` runs at once
// when there is nothing to read.
void prefetch(Services& services, std::vector<std::string> meta_keys,
              std::move_only_function<void()> then);

}  // namespace ingot::exec
