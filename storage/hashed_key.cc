// The hash function of keys.
#include "storage/hashed_key.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <random>

namespace ingot::storage {
namespace {

// Nobody can choose keys that collide.
const uint64_t kSeed = uint64_t{std::random_device{}()} << 32 | std::random_device{}();

}  // namespace

HashedKey::HashedKey(Space in_space, std::string_view bytes)
    : SpaceKey{in_space, bytes},
      hash(XXH3_64bits_withSeed(bytes.data(), bytes.size(),
                                kSeed + static_cast<uint64_t>(in_space))) {}

}  // namespace ingot::storage
