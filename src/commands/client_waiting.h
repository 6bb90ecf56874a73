// CLIENT PAUSE, UNPAUSE and UNBLOCK: whose commands wait. Effects of their unit, so that they take
// place among the writes.
#pragma once

#include "src/commands/vocabulary.h"

namespace ingot::commands {

void client_pause(WriteContext& context, Args args);
void client_unpause(WriteContext& context, Args args);
void client_unblock(WriteContext& context, Args args);

}  // namespace ingot::commands
