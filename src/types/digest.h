// The checksums of DEBUG DIGEST and DIGEST-VALUE: the very bytes that Redis answers for the same
// data, so that two servers can be compared by them. Pure but for what they read; any thread.
//
// Every element is hashed with SHA-1. What has an order is *mixed* into a digest: the element's
// hash is xored in, then the digest is hashed itself. What has none is only xored in.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "src/types/keyspace.h"

namespace ingot::types {

using Digest = std::array<unsigned char, 20>;

// Of the databases that have keys; keys that have expired and are still there included.
Digest dataset_digest(storage::Reader& data, const DatabaseMap& databases,
                      const std::function<bool(int db)>& has_keys);
// Of what a key holds, without its name.
Digest value_digest(storage::Reader& data, const Record& record);
std::string digest_text(const Digest& digest);  // in hex

}  // namespace ingot::types
