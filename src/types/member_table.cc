// The keys of members under their hashes, and the walks, scans and draws over them.
#include "src/types/member_table.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace ingot::types {

using storage::Space;

namespace {

constexpr size_t kPrefixBytes = sizeof(storage::CollectionId) + sizeof(uint32_t);
constexpr uint64_t kHashes = 1ull << 32;

std::string hash_key(storage::CollectionId id, uint64_t hash) {
  std::string key;
  if (hash >= kHashes) return storage::collection_end(id);
  storage::append_be64(&key, id);
  storage::append_be32(&key, static_cast<uint32_t>(hash));
  return key;
}

}  // namespace

uint32_t member_hash(std::string_view member) {
  return XXH32(member.data(), member.size(), 0);
}

std::string member_key(storage::CollectionId id, std::string_view member) {
  std::string key = hash_key(id, member_hash(member));
  key.append(member);
  return key;
}

std::string member_element(std::string_view member) {
  std::string element;
  storage::append_be32(&element, member_hash(member));
  return element.append(member);
}

std::string_view member_of_element(std::string_view element) {
  return element.substr(sizeof(uint32_t));
}

std::string_view member_of(std::string_view key) {
  return key.substr(kPrefixBytes);
}

uint32_t hash_of(std::string_view key) {
  return storage::read_be32(key.substr(sizeof(storage::CollectionId)));
}

std::unique_ptr<storage::Cursor> MemberTable::cursor() const {
  return data_.cursor(Space::kData, storage::collection_begin(id_), storage::collection_end(id_));
}

void MemberTable::walk(const Each& each) {
  auto at = cursor();
  for (at->seek(storage::collection_begin(id_)); at->valid(); at->next()) {
    if (!each(member_of(at->key()), at->value())) break;
  }
  data_.check(*at);
}

uint64_t MemberTable::scan(uint64_t cursor_number, uint64_t count, const Visit& visit) {
  auto at = cursor();
  uint64_t seen = 0;
  uint64_t last_hash = 0;
  for (at->seek(hash_key(id_, cursor_number)); at->valid(); at->next()) {
    const uint64_t hash = hash_of(at->key());
    if (seen >= count && hash != last_hash) return hash;
    visit(member_of(at->key()), at->value());
    last_hash = hash;
    ++seen;
  }
  data_.check(*at);
  return 0;
}

MemberTable::Window MemberTable::window(std::mt19937_64& random, uint64_t expected,
                                        uint64_t count) const {
  const uint64_t width = std::clamp<uint64_t>(kHashes * expected / count, 1, kHashes);
  const uint64_t end = 1 + random() % (kHashes + width - 1);
  return {.begin = hash_key(id_, end > width ? end - width : 0), .end = hash_key(id_, end)};
}

// Takes a window in which some four members are to be expected, and of those in it the one with a
// number that is drawn as well: so every member has the same chance, whatever the gaps between the
// hashes. Mostly there is none with that number.
bool MemberTable::random(std::mt19937_64& random, uint64_t count, std::string* member,
                         std::string* value) {
  constexpr uint64_t kExpected = 4;
  constexpr uint64_t kMost = 16;     // one window in a million has more
  constexpr int kWindowsMax = 1000;  // three in four give nothing
  const bool few = count <= kMost;
  if (!sampling_) sampling_ = cursor();
  storage::Cursor& at = *sampling_;
  const auto take = [&] {
    member->assign(member_of(at.key()));
    value->assign(at.value());
    return true;
  };
  if (const size_t all = at.size().value_or(0); all != 0) {
    at.go(random() % all);
    return take();
  }
  for (int windows = 0; count != 0 && windows < kWindowsMax && !data_.failed(); ++windows) {
    const Window among =
        few ? Window{.begin = storage::collection_begin(id_), .end = storage::collection_end(id_)}
            : window(random, kExpected, count);
    uint64_t before = random() % (few ? count : kMost);
    for (at.seek(among.begin); at.valid() && at.key() < among.end; at.next()) {
      if (before-- > 0) continue;
      return take();
    }
    data_.check(at);
    if (few) break;
  }
  data_.latch_error({storage::Status::Code::kCorruption, "a collection lacks members"});
  return false;
}

}  // namespace ingot::types
