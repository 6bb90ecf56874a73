// Decoding the batches of logs and the edits of manifests, of either engine.
//
//   batch   u64le sequence of the first change | u32le changes | change ...
//   change  kind (1) | [ family ] | key | [ value ]       family: a varint; keys, values: their
//                                                         length as a varint, and their bytes
//
//   edit    (tag | fields of that tag) ...                all numbers varints
#include "storage/salvage/engine_files.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "storage/salvage/byte_taker.h"
#include "storage/salvage/log_records.h"

namespace ingot::storage {
namespace {

constexpr size_t kVersionBytes = 8;

// Kinds of changes.
enum Change : uint8_t {
  kRemove = 0,
  kPut = 1,
  kNote = 3,  // no change
  kFamilyRemove = 4,
  kFamilyPut = 5,
  kNothing = 13,
};

// Tags of edits.
enum Tag : uint64_t {
  kComparator = 1,
  kLogNumber = 2,
  kNextFile = 3,
  kLastSequence = 4,
  kCompactPointer = 5,
  kDeletedTable = 6,
  kNewTable = 7,
  kPreviousLog = 9,
  kFirstLogToKeep = 10,
  kNewTable2 = 100,
  kNewTable4 = 103,
  kFamily = 200,
  kFamilyAdd = 201,
  kFamilyDrop = 202,
  kFamilyMax = 203,
  kGroupOfEdits = 300,
  kIgnorable = 1 << 13,  // tags from here on: their length stands before their bytes
};
constexpr uint64_t kEndOfTable = 1;  // among the fields of kNewTable4

class Manifest {
 public:
  Manifest(FileForm form, Catalogue* out) : form_(form), out_(*out) {}

  // False when the edit is not understood to its end.
  bool apply(std::string_view record) {
    ByteTaker in(record);
    edit_ = {};
    out_.empty = false;
    while (!in.empty()) {
      if (!take_field(in) || in.failed()) return false;
    }
    // Which family it is about may stand at its end.
    if (edit_.dropped) {
      out_.families.erase(edit_.family);
      logs_.erase(edit_.family);
      return true;
    }
    if (!edit_.name.empty()) out_.families[edit_.family] = edit_.name;
    if (edit_.log) logs_[edit_.family] = *edit_.log;
    for (const uint64_t number : edit_.deleted) out_.tables.erase(number);
    for (auto& [number, table] : edit_.added) {
      table.family = edit_.family;
      out_.tables[number] = std::move(table);
    }
    return true;
  }

  void finish() {
    // RocksDB tells it of each family.
    uint64_t first = UINT64_MAX;
    for (const auto& [family, log] : logs_) first = std::min(first, log);
    out_.first_log = std::max(logs_.empty() ? 0 : first, first_kept_);
  }

 private:
  bool take_field(ByteTaker& in) {
    const uint64_t tag = in.varint();
    switch (tag) {
      case kComparator:
        in.sized();
        return true;
      case kLogNumber:
        edit_.log = in.varint();
        return true;
      case kNextFile:
        out_.next_file = std::max(out_.next_file, in.varint());
        return true;
      case kLastSequence:
      case kPreviousLog:
      case kFamilyMax:
      case kGroupOfEdits:
        in.varint();
        return true;
      case kFirstLogToKeep:
        first_kept_ = std::max(first_kept_, in.varint());
        return true;
      case kCompactPointer:
        in.varint();
        in.sized();
        return true;
      case kDeletedTable:
        in.varint();  // its level
        edit_.deleted.push_back(in.varint());
        return true;
      case kNewTable:
      case kNewTable2:
      case kNewTable4:
        return add_table(tag, in);
      case kFamily:
        edit_.family = static_cast<uint32_t>(in.varint());
        return true;
      case kFamilyAdd:
        edit_.name = in.sized();
        return true;
      case kFamilyDrop:
        edit_.dropped = true;
        return true;
      default:
        if (tag < kIgnorable) return false;
        in.sized();
        return true;
    }
  }

  bool add_table(uint64_t tag, ByteTaker& in) {
    in.varint();  // its level
    const uint64_t number = in.varint();
    in.varint();  // its bytes
    VersionedKey smallest, largest;
    if (!decode_versioned(in.sized(), &smallest) || !decode_versioned(in.sized(), &largest)) {
      return false;
    }
    ListedTable table = {.smallest = std::string(smallest.key),
                         .largest = std::string(largest.key)};
    if (form_ == FileForm::kRocksdb && tag != kNewTable) {
      in.varint();  // the oldest sequence
      table.newest = in.varint();
    }
    if (tag == kNewTable4) {
      while (!in.failed() && in.varint() != kEndOfTable) in.sized();
    }
    edit_.added.emplace_back(number, std::move(table));
    return true;
  }

  const FileForm form_;
  Catalogue& out_;
  struct Edit {
    uint32_t family = 0;
    std::string name;  // of a family that is new
    bool dropped = false;
    std::optional<uint64_t> log;
    std::vector<uint64_t> deleted;
    std::vector<std::pair<uint64_t, ListedTable>> added;
  };
  Edit edit_;
  std::map<uint32_t, uint64_t> logs_;
  uint64_t first_kept_ = 0;
};

}  // namespace

bool decode_versioned(std::string_view bytes, VersionedKey* out) {
  if (bytes.size() < kVersionBytes) return false;
  out->key = bytes.substr(0, bytes.size() - kVersionBytes);
  const uint64_t version = read_le64(bytes.substr(out->key.size()));
  out->sequence = version >> 8;
  out->kind = static_cast<uint8_t>(version);
  return true;
}

bool read_batch(std::string_view record, LoggedBatch* batch,
                const std::function<void(const LoggedChange&)>& each) {
  ByteTaker in(record);
  LoggedChange change;
  change.sequence = batch->first_sequence = in.le64();
  batch->end_sequence = batch->first_sequence + in.le32();
  while (!in.empty()) {
    const uint8_t kind = in.byte();
    if (kind == kNothing) continue;
    if (kind == kNote) {
      in.sized();
      continue;
    }
    if (kind != kRemove && kind != kPut && kind != kFamilyRemove && kind != kFamilyPut) {
      return false;
    }
    const bool has_family = kind == kFamilyRemove || kind == kFamilyPut;
    change.removed = kind == kRemove || kind == kFamilyRemove;
    change.family = has_family ? static_cast<uint32_t>(in.varint()) : 0;
    change.key = in.sized();
    change.value = change.removed ? std::string_view() : in.sized();
    if (in.failed()) return false;
    each(change);
    ++change.sequence;
  }
  return !in.failed() && change.sequence == batch->end_sequence;
}

Status read_manifest(const std::string& path, FileForm form, Catalogue* out) {
  Manifest manifest(form, out);
  Status status = read_log(path, {.record =
                                      [&](std::string_view record) {
                                        if (!manifest.apply(record))
                                          out->damaged_bytes += record.size();
                                      },
                                  .damage =
                                      [&](uint64_t begin, uint64_t end, bool at_end) {
                                        // An edit that was never finished never came into
                                        // force.
                                        if (!at_end) out->damaged_bytes += end - begin;
                                      }});
  manifest.finish();
  return status;
}

}  // namespace ingot::storage
