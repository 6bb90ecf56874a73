// See chance.h.
#include "src/commands/chance.h"

namespace ingot::commands {

Random& dice() {
  thread_local Random random{std::random_device{}()};
  return random;
}

}  // namespace ingot::commands
