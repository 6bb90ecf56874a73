// Which names those are: first the keys, then, of those whose records are there, the members.
#include "src/exec/near_records.h"

#include "src/data/store.h"
#include "src/types/member_table.h"

namespace ingot::exec {

using storage::Space;

namespace {

constexpr size_t kNamesMax = 64;  // what the processor's first caches hold beside all else
constexpr size_t kNameBytesMax = 1024;
constexpr size_t kWordsMax = 256;  // of a longer command this would be next to nothing

}  // namespace

void NearRecords::add(Space space, std::string_view key) {
  if (names_.size() == kNamesMax || key.size() > kNameBytesMax) return;
  names_.push_back({.space = space, .begin = bytes_.size(), .end = bytes_.size() + key.size()});
  bytes_ += key;
}

bool NearRecords::add(const WriteJob& job) {
  if (!names_.empty() && names_.size() + job.units.size() - job.next > kNamesMax) return false;
  const auto databases = services_.data.store.databases().map;
  for (size_t i = job.next; i < job.units.size(); ++i) {
    if (names_.size() == kNamesMax) return true;
    const Unit& unit = job.units[i];
    if (unit.row == nullptr || !unit.transaction.empty()) continue;
    const storage::KeyspaceId keyspace = (*databases)[static_cast<size_t>(unit.db)];
    const contract::Args args = unit.command->args;
    if (args.size() > kWordsMax) continue;
    keys_.clear();
    contract::add_keys_of(*unit.row, args, &keys_);
    for (const contract::KeyAt& key : keys_) {
      if (names_.size() == kNamesMax) return true;
      if (args[key.index].size() > kNameBytesMax) continue;
      add(Space::kMeta, storage::meta_key(keyspace, args[key.index]));
    }
    if (unit.row->members.first != 0) owners_.push_back({.unit = &unit, .keyspace = keyspace});
  }
  return true;
}

void NearRecords::add_members(const Unit& unit, storage::CollectionId collection) {
  const contract::Args args = unit.command->args;
  for (size_t at = unit.row->members.first; at < args.size(); at += unit.row->members.step) {
    if (names_.size() == kNamesMax) return;
    if (args[at].size() > kNameBytesMax) continue;
    add(Space::kData, types::member_key(collection, args[at]));
  }
}

void NearRecords::fetch(storage::Overlay* overlay) {
  fetch_names(overlay);
  std::string before;  // the owner of the unit before: a pipeline often fills one collection
  std::string record;
  for (const Owner& owner : owners_) {
    const std::string_view name = owner.unit->command->args[1];
    if (names_.size() == kNamesMax || name.size() > kNameBytesMax) break;
    std::string key = storage::meta_key(owner.keyspace, name);
    if (key != before) {
      record.clear();
      services_.data.store.cache().peek({Space::kMeta, key}, &record);
      before = std::move(key);
    }
    storage::Metadata metadata;
    if (!storage::decode_metadata(record, &metadata) || !metadata.collection) continue;
    add_members(*owner.unit, metadata.collection->id);
  }
  owners_.clear();
  fetch_names(overlay);
}

void NearRecords::fetch_names(storage::Overlay* overlay) {
  hashed_.clear();
  for (const Name& name : names_) {
    hashed_.emplace_back(name.space,
                         std::string_view(bytes_).substr(name.begin, name.end - name.begin));
  }
  if (hashed_.size() > 1) {  // one gains nothing
    missing_.clear();
    services_.data.store.cache().prefetch(hashed_, &missing_);
    if (missing_.size() > 1) overlay->look_ahead(missing_);
  }
  names_.clear();
  bytes_.clear();
}

}  // namespace ingot::exec
