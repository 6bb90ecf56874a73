// What RocksDB asks of a memtable, in terms of our tree.
#include "storage/rocksdb/tree_memtable.h"

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "storage/rocksdb/memtable_tree.h"

namespace ingot::storage {
namespace {

using Rep = rocksdb::MemTableRep;

// RocksDB's arenas are known to its own memtables alone, but the base class allocates from them.
class Arena : private Rep {
 public:
  explicit Arena(rocksdb::Allocator* allocator) : Rep(allocator) {}
  char* allocate(size_t bytes) {
    constexpr size_t kAlignment = 8;
    char* buffer = nullptr;
    Rep::Allocate(bytes + kAlignment - 1, &buffer);
    const auto address = reinterpret_cast<uintptr_t>(buffer);
    return buffer + (kAlignment - address % kAlignment) % kAlignment;
  }

 private:
  void Insert(rocksdb::KeyHandle /*handle*/) override {}
  bool Contains(const char* /*key*/) const override { return false; }
  size_t ApproximateMemoryUsage() override { return 0; }
  Iterator* GetIterator(rocksdb::Arena* /*arena*/) override { return nullptr; }
};

class TreeIterator : public Rep::Iterator {
 public:
  explicit TreeIterator(const MemtableTree& tree) : cursor_(tree) {}

  bool Valid() const override { return cursor_.entry() != nullptr; }
  const char* key() const override { return cursor_.entry(); }
  void Next() override { cursor_.next(); }
  void Prev() override { cursor_.prev(); }
  void Seek(const rocksdb::Slice& internal_key, const char* memtable_key) override {
    cursor_.seek(chosen(internal_key, memtable_key));
  }
  void SeekForPrev(const rocksdb::Slice& internal_key, const char* memtable_key) override {
    cursor_.seek_for_prev(chosen(internal_key, memtable_key));
  }
  void SeekToFirst() override { cursor_.seek_to_first(); }
  void SeekToLast() override { cursor_.seek_to_last(); }

 private:
  static std::string_view chosen(const rocksdb::Slice& internal_key, const char* memtable_key) {
    return memtable_key == nullptr ? internal_key.ToStringView()
                                   : MemtableTree::internal_key_of(memtable_key);
  }

  MemtableTree::Cursor cursor_;
};

// For RocksDB's look-ups, which never delete the iterator that they ask for (7.8): it stands in
// memory that is used again, and may be deleted or not.
class LentIterator : public TreeIterator {
 public:
  using TreeIterator::TreeIterator;
  static void* operator new(size_t /*bytes*/) {
    // One look-up at a time on a thread.
    alignas(LentIterator) thread_local char place[sizeof(LentIterator)];
    return place;
  }
  static void operator delete(void* /*place*/) {}
};

}  // namespace

// RocksDB tells nobody which memtable it writes to, nor when one goes.
class TreeMemtables::Newest {
 public:
  void set(const MemtableTree* tree) {
    const std::lock_guard lock(mutex_);
    tree_ = tree;
  }
  void forget(const MemtableTree* tree) {
    const std::lock_guard lock(mutex_);
    if (tree_ == tree) tree_ = nullptr;
  }
  void prefetch(std::span<const std::string_view> internal_keys) const {
    const std::lock_guard lock(mutex_);  // it stays until then
    if (tree_ != nullptr) tree_->prefetch(internal_keys);
  }

 private:
  mutable std::mutex mutex_;
  const MemtableTree* tree_ = nullptr;
};

namespace {

class TreeMemtable : public Rep {
 public:
  using Forget = std::function<void(const MemtableTree* tree)>;

  // `forget` is called before the tree goes.
  TreeMemtable(rocksdb::Allocator* allocator, Forget forget)
      : Rep(allocator),
        arena_(allocator),
        tree_([this](size_t bytes) { return arena_.allocate(bytes); }),
        forget_(std::move(forget)) {}
  ~TreeMemtable() override { forget_(&tree_); }

  const MemtableTree* tree() const { return &tree_; }

  void Insert(rocksdb::KeyHandle handle) override {
    tree_.insert(static_cast<const char*>(handle));
  }
  bool Contains(const char* key) const override {
    MemtableTree::Cursor cursor(tree_);
    const std::string_view internal_key = MemtableTree::internal_key_of(key);
    cursor.seek(internal_key);
    return cursor.entry() != nullptr &&
           MemtableTree::internal_key_of(cursor.entry()) == internal_key;
  }
  size_t ApproximateMemoryUsage() override { return 0; }  // all of it is the arena's
  // Without a prefix extractor nothing but a look-up asks for it.
  Iterator* GetDynamicPrefixIterator(rocksdb::Arena* /*arena*/) override {
    return new LentIterator(tree_);
  }
  Iterator* GetIterator(rocksdb::Arena* arena) override {
    if (arena == nullptr) return new TreeIterator(tree_);
    // An arena is an allocator, which only RocksDB's own headers say.
    Arena place(reinterpret_cast<rocksdb::Allocator*>(arena));
    return new (place.allocate(sizeof(TreeIterator))) TreeIterator(tree_);
  }

 private:
  Arena arena_;
  MemtableTree tree_;
  const Forget forget_;
};

}  // namespace

TreeMemtables::TreeMemtables() : newest_(std::make_shared<Newest>()) {}

Rep* TreeMemtables::CreateMemTableRep(const Rep::KeyComparator& /*order*/,
                                      rocksdb::Allocator* allocator,
                                      const rocksdb::SliceTransform* /*prefix*/,
                                      rocksdb::Logger* /*logger*/) {
  auto* memtable = new TreeMemtable(
      allocator, [newest = newest_](const MemtableTree* tree) { newest->forget(tree); });
  newest_->set(memtable->tree());
  return memtable;
}

void TreeMemtables::prefetch(std::span<const std::string_view> internal_keys) const {
  newest_->prefetch(internal_keys);
}

}  // namespace ingot::storage
