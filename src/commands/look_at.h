// The look-up of commands that tell something of a key without using it.
#pragma once

#include <string_view>

#include "src/types/keyspace.h"

namespace ingot::commands {

// Leaves no trace but in the statistics, and that a key is missed.
inline bool look_at(types::KeyReader& keys, int db, std::string_view key, types::Record* record) {
  const bool found = keys.peek(db, key, record);
  keys.note_lookup(db, key, found);
  return found;
}

}  // namespace ingot::commands
