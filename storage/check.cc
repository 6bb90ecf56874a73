// The end of a process that found itself to be wrong.
#include "storage/check.h"

#include <cstdio>
#include <cstdlib>

namespace ingot::storage {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace ingot::storage
