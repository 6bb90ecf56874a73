// Which commands take a value that is too large to hold, and where it goes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "net/connection.h"
#include "src/data/built_argument.h"
#include "src/exec/services.h"

namespace ingot::exec {

// Behind these arguments one of so many bytes begins. Null: it has to be held. `thread`: on which
// its pieces come; it must live as long as what is returned.
inline std::shared_ptr<data::BuiltArgument> take_large_argument(
    Services& services, net::IoThread& thread, std::span<const std::string_view> args,
    uint64_t bytes) {
  if (args.empty()) return nullptr;
  const contract::CommandRow* row = services.table.find(args[0]);
  const bool takes = row != nullptr && row->value_index != 0 &&
                     args.size() == static_cast<size_t>(row->value_index);
  return takes ? std::make_shared<data::BuiltArgument>(services.data, thread, bytes) : nullptr;
}

}  // namespace ingot::exec
