// How commands keep a result under a key, whatever stood there before: the STORE forms, BITOP.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/contract/context.h"
#include "src/data/built_value.h"

namespace ingot::commands {

struct StoreRequest {
  std::string_view target;
  data::Recipe recipe;
  uint32_t kind;  // of the keyspace event
  std::string_view event;
  bool counts_elements = false;  // each is a change
};

// Answers the size of what was stored; an empty result removes the key.
void store_result(contract::WriteContext& ctx, const StoreRequest& request,
                  const data::MakeValue& make);

}  // namespace ingot::commands
