// The shortest key between two that follow each other.
#include "storage/leveldb/short_separators.h"

#include <leveldb/comparator.h>
#include <leveldb/slice.h>

#include <algorithm>
#include <string>

namespace ingot::storage {
namespace {

unsigned char byte_at(const leveldb::Slice& key, size_t at) {
  return static_cast<unsigned char>(key[at]);
}

class ShortSeparators : public leveldb::Comparator {
 public:
  int Compare(const leveldb::Slice& a, const leveldb::Slice& b) const override {
    return a.compare(b);
  }
  const char* Name() const override { return leveldb::BytewiseComparator()->Name(); }

  void FindShortestSeparator(std::string* start, const leveldb::Slice& limit) const override {
    const size_t common = std::min(start->size(), limit.size());
    size_t at = 0;
    while (at < common && (*start)[at] == limit[at]) ++at;
    if (at == common || byte_at(*start, at) > byte_at(limit, at)) return;
    // A beginning of `limit` is smaller than all of it.
    const bool is_between = byte_at(*start, at) + 1 < byte_at(limit, at) || at + 1 < limit.size();
    // Else this byte keeps it smaller, whatever stands behind.
    if (!is_between) {
      do ++at;
      while (at < start->size() && byte_at(*start, at) == 0xff);
    }
    if (at == start->size()) return;
    ++(*start)[at];
    start->resize(at + 1);
  }

  void FindShortSuccessor(std::string* key) const override {
    leveldb::BytewiseComparator()->FindShortSuccessor(key);
  }
};

}  // namespace

const leveldb::Comparator* short_separators() {
  static const ShortSeparators kOne;
  return &kOne;
}

}  // namespace ingot::storage
