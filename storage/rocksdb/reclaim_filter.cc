// The filter that leaves dead ids out of new files, and what such a file notes about itself.
#include "storage/rocksdb/reclaim_filter.h"

#include <algorithm>
#include <limits>

namespace ingot::storage {
namespace {

constexpr const char* kName = "ingot.ids";
constexpr size_t kSpansMax = 128;

// A filter and the files that it works for are made on one thread, in this order: up to which epoch
// the files being written here are free of dead ids. 0: nothing filters.
thread_local uint32_t filtered_epoch = 0;

// Serves one compaction thread, which shows it keys in ascending order.
class ReclaimFilter : public rocksdb::CompactionFilter {
 public:
  ReclaimFilter(GarbageKind kind, const DeadIds* dead) : kind_(kind), dead_(dead) {
    filtered_epoch = dead_->newest();
    look_from(0);
  }
  ~ReclaimFilter() override { filtered_epoch = 0; }

  const char* Name() const override { return "ingot.reclaim"; }

  Decision FilterV2(int /*level*/, const rocksdb::Slice& key, ValueType /*type*/,
                    const rocksdb::Slice& /*value*/, std::string* /*new_value*/,
                    std::string* skip_until) const override {
    const uint64_t id = owner_of(kind_, key.ToStringView());
    if (id > next_.last) look_from(id);
    if (id < next_.first) return Decision::kKeep;
    *skip_until = owned_end(kind_, next_.last);
    return Decision::kRemoveAndSkipUntil;
  }

 private:
  // What dies while this works may be missed where it has looked already: it is of a later epoch.
  void look_from(uint64_t id) const {
    constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
    next_ = dead_->next(id).value_or(DeadIds::Run{.first = kNone, .last = kNone});
  }

  const GarbageKind kind_;
  const DeadIds* const dead_;
  mutable DeadIds::Run next_;  // the first that a later key may be in
};

class ReclaimFilterFactory : public rocksdb::CompactionFilterFactory {
 public:
  ReclaimFilterFactory(GarbageKind kind, const DeadIds* dead) : kind_(kind), dead_(dead) {}

  const char* Name() const override { return "ingot.reclaim"; }
  // Flushes, too: what dies young never reaches a file.
  bool ShouldFilterTableFileCreation(rocksdb::TableFileCreationReason /*reason*/) const override {
    return true;
  }
  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context& /*context*/) override {
    if (dead_->size() == 0) return nullptr;
    return std::make_unique<ReclaimFilter>(kind_, dead_);
  }

 private:
  const GarbageKind kind_;
  const DeadIds* const dead_;
};

class TableIdsCollector : public rocksdb::TablePropertiesCollector {
 public:
  TableIdsCollector(GarbageKind kind, uint64_t run)
      : kind_(kind), run_(run), epoch_(filtered_epoch) {}

  const char* Name() const override { return kName; }

  rocksdb::Status AddUserKey(const rocksdb::Slice& key, const rocksdb::Slice& value,
                             rocksdb::EntryType /*type*/, rocksdb::SequenceNumber /*sequence*/,
                             uint64_t /*file_size*/) override {
    const uint64_t id = owner_of(kind_, key.ToStringView());
    if (spans_.empty() || id != spans_.back().last) add(id);
    spans_.back().bytes += key.size() + value.size();
    return rocksdb::Status::OK();
  }

  rocksdb::Status Finish(rocksdb::UserCollectedProperties* properties) override {
    std::string note;
    append_le64(&note, run_);
    append_le32(&note, epoch_);
    for (const IdSpan& span : spans_) {
      for (uint64_t number : {span.first, span.last, span.ids, span.bytes}) {
        append_le64(&note, number);
      }
    }
    properties->emplace(kName, std::move(note));
    return rocksdb::Status::OK();
  }

  rocksdb::UserCollectedProperties GetReadableProperties() const override {
    return {{kName, std::to_string(spans_.size()) + " spans"}};
  }

 private:
  // Few ids have a span each; many share them, of about as many bytes each.
  void add(uint64_t id) {
    if (!spans_.empty() && spans_.back().bytes < span_bytes_) {
      spans_.back().last = id;
      ++spans_.back().ids;
      return;
    }
    if (spans_.size() == kSpansMax) {
      span_bytes_ = 0;
      for (size_t i = 0; i < kSpansMax / 2; ++i) {
        const IdSpan& left = spans_[2 * i];
        const IdSpan& right = spans_[2 * i + 1];
        spans_[i] = {.first = left.first,
                     .last = right.last,
                     .ids = left.ids + right.ids,
                     .bytes = left.bytes + right.bytes};
        span_bytes_ += spans_[i].bytes;
      }
      spans_.resize(kSpansMax / 2);
      span_bytes_ /= kSpansMax / 2;
    }
    spans_.push_back({.first = id, .last = id, .ids = 1, .bytes = 0});
  }

  const GarbageKind kind_;
  const uint64_t run_;
  const uint32_t epoch_;
  std::vector<IdSpan> spans_;
  uint64_t span_bytes_ = 0;  // a span below that takes further ids in
};

class TableIdsFactory : public rocksdb::TablePropertiesCollectorFactory {
 public:
  TableIdsFactory(GarbageKind kind, uint64_t run) : kind_(kind), run_(run) {}
  const char* Name() const override { return kName; }
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(
      rocksdb::TablePropertiesCollectorFactory::Context /*context*/) override {
    return new TableIdsCollector(kind_, run_);
  }

 private:
  const GarbageKind kind_;
  const uint64_t run_;
};

}  // namespace

std::shared_ptr<rocksdb::CompactionFilterFactory> make_reclaim_filter_factory(GarbageKind kind,
                                                                              const DeadIds* dead) {
  return std::make_shared<ReclaimFilterFactory>(kind, dead);
}

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_table_ids_factory(GarbageKind kind,
                                                                                 uint64_t run) {
  return std::make_shared<TableIdsFactory>(kind, run);
}

TableIds read_table_ids(const rocksdb::TableProperties& properties, uint64_t run) {
  constexpr size_t kHeaderBytes = 12;
  constexpr size_t kSpanBytes = 32;
  const auto found = properties.user_collected_properties.find(kName);
  const std::string_view note =
      found == properties.user_collected_properties.end() ? std::string_view() : found->second;
  if (note.size() < kHeaderBytes || (note.size() - kHeaderBytes) % kSpanBytes != 0) {
    return {.epoch = 0,
            .spans = {{.first = 0,
                       .last = std::numeric_limits<uint64_t>::max(),
                       .ids = std::max<uint64_t>(1, properties.num_entries),
                       .bytes = properties.raw_key_size + properties.raw_value_size}}};
  }
  TableIds table;
  if (read_le64(note) == run) table.epoch = read_le32(note.substr(8));
  for (size_t at = kHeaderBytes; at < note.size(); at += kSpanBytes) {
    table.spans.push_back({.first = read_le64(note.substr(at)),
                           .last = read_le64(note.substr(at + 8)),
                           .ids = read_le64(note.substr(at + 16)),
                           .bytes = read_le64(note.substr(at + 24))});
  }
  return table;
}

}  // namespace ingot::storage
