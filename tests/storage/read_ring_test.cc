// Reads by io_uring: work runs again until its bytes have come, whatever happens to the file.
#include "storage/read_ring.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tests/storage/temporary_directory.h"
#include "tests/storage/test_engine.h"

namespace ingot::storage {
namespace {

using Kind = NoWaitReads::Answer::Kind;

constexpr size_t kBlock = 4096;

// Null, with a word, where the kernel has none for us: then the server has none either.
std::unique_ptr<ReadRing> open_ring(unsigned works_max = 64) {
  Status why;
  auto ring = ReadRing::open(works_max, &why);
  if (ring == nullptr) WARN(why.message());
  return ring;
}

void finish(ReadRing& ring) {
  while (ring.under_way() > 0) ring.turn(/*may_wait=*/true);
}

char byte_of(size_t block) {
  return static_cast<char>('a' + block % 26);
}

// Blocks that differ from their neighbours, and half of one at the end.
class Blocks {
 public:
  explicit Blocks(size_t count) : path_(directory_.file("blocks")) {
    std::ofstream file(path_);
    for (size_t i = 0; i < count; ++i) file << std::string(kBlock, byte_of(i));
    file << std::string(kBlock / 2, '~');
  }
  std::shared_ptr<const OpenFile> open(int flags = O_RDONLY | O_DIRECT) const {
    const int fd = ::open(path_.c_str(), flags);
    REQUIRE(fd >= 0);
    const uint64_t size = std::filesystem::file_size(path_);
    return std::make_shared<OpenFile>(fd, size, (flags & O_DIRECT) != 0);
  }

 private:
  TemporaryDirectory directory_;
  const std::string path_;
};

struct alignas(kBlock) Page {
  std::array<char, kBlock> bytes;
};

}  // namespace

TEST_CASE("a read ring: work runs again when its bytes have come, many at a time") {
  const auto ring = open_ring(64);
  if (ring == nullptr) return;
  constexpr size_t kCount = 500;
  const Blocks blocks(kCount);
  const auto file = blocks.open();
  std::vector<int> runs(kCount);
  size_t most = 0;
  for (size_t block = 0; block < kCount; ++block) {
    while (ring->under_way() == 64) ring->turn(/*may_wait=*/true);
    ring->run([&, block] {
      ++runs[block];
      Page page;
      const auto answer =
          NoWaitReads::current()->read(file, block * kBlock, kBlock, page.bytes.data());
      if (answer.kind == Kind::kWanted) return false;
      CHECK(answer.kind == Kind::kCame);
      CHECK(answer.bytes == kBlock);
      CHECK(std::ranges::count(page.bytes, byte_of(block)) == kBlock);
      return true;
    });
    most = std::max(most, ring->under_way());
  }
  finish(*ring);
  CHECK(std::ranges::count(runs, 2) == kCount);
  CHECK(most == 64);
  CHECK(NoWaitReads::current() == nullptr);
}

TEST_CASE("a read ring: what is in the page cache comes at once, and the end of a file is told") {
  const auto ring = open_ring();
  if (ring == nullptr) return;
  const Blocks blocks(4);
  const auto file = blocks.open(O_RDONLY);  // written just now
  int runs = 0;
  Page page;
  NoWaitReads::Answer answer{};
  ring->run([&] {
    ++runs;
    return NoWaitReads::current()->read(file, kBlock, kBlock, page.bytes.data()).kind ==
           Kind::kCame;
  });
  CHECK(runs == 1);
  ring->run([&] {
    answer = NoWaitReads::current()->read(file, 4 * kBlock, kBlock, page.bytes.data());
    return answer.kind == Kind::kCame;
  });
  finish(*ring);
  CHECK(answer.bytes == kBlock / 2);
  CHECK(page.bytes[0] == '~');
}

TEST_CASE("a read ring: one read at a time, and none twice") {
  const auto ring = open_ring();
  if (ring == nullptr) return;
  const Blocks blocks(8);
  const auto file = blocks.open();
  std::vector<size_t> came;  // blocks that each run has found
  ring->run([&] {
    NoWaitReads& now = *NoWaitReads::current();
    Page page;
    size_t found = 0;
    for (size_t block = 0; block < 3; ++block) {
      if (now.read(file, block * kBlock, kBlock, page.bytes.data()).kind == Kind::kCame) ++found;
    }
    came.push_back(found);
    return !now.wants();
  });
  finish(*ring);
  CHECK(came == std::vector<size_t>{0, 1, 2, 3});
}

TEST_CASE("a read ring: failures are told, and work may end without its bytes") {
  const auto ring = open_ring();
  if (ring == nullptr) return;
  const Blocks blocks(8);
  const auto unreadable = blocks.open(O_WRONLY);
  Page page;
  int error = 0;
  ring->run([&] {
    const auto answer = NoWaitReads::current()->read(unreadable, 0, kBlock, page.bytes.data());
    error = answer.error;
    return answer.kind == Kind::kFailed;
  });
  finish(*ring);
  CHECK(error == EBADF);

  int runs = 0;
  ring->run([&, file = blocks.open()] {
    ++runs;
    CHECK(NoWaitReads::current()->read(file, 0, kBlock, page.bytes.data()).kind == Kind::kWanted);
    return true;
  });
  CHECK(ring->under_way() == 0);
  CHECK(runs == 1);
}

TEST_CASE("a read ring: what was wanted elsewhere is there when the work begins") {
  const auto ring = open_ring();
  if (ring == nullptr) return;
  const Blocks blocks(8);
  const auto file = blocks.open();
  Page page;
  NoWaitReads reads;
  CHECK(reads.read(file, kBlock, kBlock, page.bytes.data()).kind == Kind::kWanted);
  int runs = 0;
  const auto work = [&] {
    ++runs;
    const auto answer = NoWaitReads::current()->read(file, kBlock, kBlock, page.bytes.data());
    return answer.kind == Kind::kCame;
  };
  ring->run(work, std::move(reads));
  CHECK(runs == 0);
  finish(*ring);
  CHECK(runs == 1);
  CHECK(page.bytes[0] == byte_of(1));
}

TEST_CASE("reads that do not wait take a bounded number from the page cache") {
  const Blocks blocks(8);
  const auto file = blocks.open(O_RDONLY);
  NoWaitReads reads(2);
  Page page;
  for (size_t block = 0; block < 2; ++block) {
    CHECK(reads.read(file, block * kBlock, kBlock, page.bytes.data()).kind == Kind::kCame);
  }
  CHECK_FALSE(reads.wants());
  CHECK(reads.read(file, 2 * kBlock, kBlock, page.bytes.data()).kind == Kind::kWanted);
  CHECK(reads.wants());
}

TEST_CASE("a read ring: a file that is closed meanwhile is read to the end") {
  const auto ring = open_ring();
  if (ring == nullptr) return;
  const Blocks blocks(8);
  auto file = blocks.open();
  const int fd = file->fd();
  bool wanted = false;
  ring->run([&] {
    if (wanted) return true;
    Page page;
    wanted = NoWaitReads::current()->read(file, 0, kBlock, page.bytes.data()).kind == Kind::kWanted;
    return false;
  });
  file.reset();
  CHECK(::fcntl(fd, F_GETFD) != -1);  // or another file might have its number by now
  finish(*ring);
  CHECK(::fcntl(fd, F_GETFD) == -1);
}

TEST_CASE("a read ring: another thread wakes one that waits") {
  const auto ring = open_ring();
  if (ring == nullptr) return;
  for (int i = 0; i < 3; ++i) {
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ring->wake();
    });
    ring->turn(/*may_wait=*/true);
    other.join();
  }
}

TEST_CASE("RocksDB: look-ups and walks on a ring find what others do") {
  const auto ring = open_ring();
  if (ring == nullptr) return;
  EngineOptions options = TestEngine::small_options();
  options.direct_reads = GENERATE(false, true);
  options.cache_bytes = 1 << 20;
  TestEngine engine("rocksdb", options);
  REQUIRE(engine->capabilities().ring);
  constexpr int kRecords = 6000;
  const auto key_of = [](int i) { return "key" + std::to_string(100'000 + i); };
  const auto batch = engine->new_batch();
  for (int i = 0; i < kRecords; ++i) {
    batch->put(Space::kMeta, key_of(2 * i), noise(500, static_cast<uint64_t>(i)));
  }
  REQUIRE(engine->write(*batch, Durability::kBuffered).ok());
  REQUIRE(engine->compact(Space::kMeta, {}).ok());
  engine.reopen();

  int waited = 0;
  int wrong = 0;
  const auto look_up = [&](int i) {
    return [&, i] {
      std::string value;
      const Lookup found =
          engine->get(nullptr, Space::kMeta, key_of(i), Tier::kCacheOnly, &value, nullptr);
      if (found == Lookup::kMiss) {
        ++waited;
        return false;
      }
      const bool is_there = i % 2 == 0;
      if (found != (is_there ? Lookup::kFound : Lookup::kAbsent)) ++wrong;
      if (is_there && value != noise(500, static_cast<uint64_t>(i / 2))) ++wrong;
      return true;
    };
  };
  for (int i = 0; i < 2 * kRecords; ++i) {
    const int at = static_cast<int>((static_cast<int64_t>(i) * 7919) % (2 * kRecords));
    while (ring->under_way() == 64) ring->turn(/*may_wait=*/true);
    ring->run(look_up(at));
  }
  finish(*ring);
  CHECK(wrong == 0);
  if (options.direct_reads) CHECK(waited > kRecords / 2);

  // Without the ring: from the page cache, and no further.
  engine.reopen();
  std::string value;
  const auto probe = [&] {
    return engine->get(nullptr, Space::kMeta, key_of(500), Tier::kCacheOnly, &value, nullptr);
  };
  CHECK(probe() == Lookup::kMiss);
  {
    NoWaitReads reads;
    const NoWaitReads::Scope scope(&reads);
    CHECK(probe() == (options.direct_reads ? Lookup::kMiss : Lookup::kFound));
    CHECK(reads.wants() == options.direct_reads);
    CHECK(engine->get(nullptr, Space::kMeta, key_of(700), Tier::kDisk, &value, nullptr) ==
          Lookup::kFound);  // it waits
  }

  for (const bool backwards : {false, true}) {
    size_t seen = 0;
    ring->run([&] {
      const auto at = engine->new_cursor(Space::kMeta, {.lower = key_of(1000),
                                                        .upper = key_of(3000),
                                                        .tier = Tier::kCacheOnly,
                                                        .fill_cache = false});
      seen = 0;
      backwards ? at->seek_for_prev(key_of(3000)) : at->seek(key_of(1000));
      for (; at->valid(); backwards ? at->prev() : at->next()) ++seen;
      return at->outcome() != Lookup::kMiss;
    });
    finish(*ring);
    CHECK(seen == 1000);
  }
}

}  // namespace ingot::storage
