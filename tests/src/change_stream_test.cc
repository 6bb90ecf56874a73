// The stream of changes: its place in the engine, its backlog on disk, who reads it.
#include "src/data/change_stream.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "src/data/backlog.h"
#include "storage/engine.h"
#include "tests/storage/temporary_directory.h"

namespace ingot::data {
namespace {

using Got = Backlog::Reader::Got;

std::string read_all(Backlog::Reader& reader) {
  std::string all;
  while (reader.read(&all) == Got::kBytes) {
  }
  return all;
}

const std::string kId(40, '1');

std::vector<Backlog::Told> told_to(uint64_t end) {
  return {{.id = kId, .end = end}};
}

std::string text(size_t bytes, uint32_t seed) {
  std::minstd_rand random(seed);
  std::string text(bytes, ' ');
  for (char& c : text) c = static_cast<char>('a' + random() % 26);
  return text;
}

std::vector<std::filesystem::path> files_in(const std::string& directory) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

TEST_CASE("a backlog is read from any place in it, also while it grows", "[changes]") {
  storage::TemporaryDirectory directory;
  Backlog backlog(directory.file("b"), told_to(1000), 2 << 20);
  std::string all;
  for (uint32_t i = 0; i < 200; ++i) {
    const std::string piece = text(i * 97 + 1, i);
    REQUIRE(backlog.append(piece, kId).ok());
    all += piece;
    if (i % 3 == 0) backlog.publish();
  }
  backlog.publish();
  CHECK(files_in(directory.file("b")).size() > 2);
  for (const size_t at : {size_t{0}, size_t{1}, size_t{5000}, all.size() / 2, all.size()}) {
    const auto reader = backlog.read_from(1000 + at);
    REQUIRE(reader != nullptr);
    CHECK(read_all(*reader) == all.substr(at));
    REQUIRE(backlog.append("more", kId).ok());
    std::string none;
    CHECK(reader->read(&none) == Got::kNothing);
    backlog.publish();
    CHECK(read_all(*reader) == "more");
    all += "more";
  }
  CHECK(backlog.read_from(999) == nullptr);
  CHECK(backlog.read_from(1001 + all.size()) == nullptr);
}

TEST_CASE("a backlog goes on after a start, and forgets what was not committed", "[changes]") {
  storage::TemporaryDirectory directory;
  const std::string path = directory.file("b");
  const std::string first = text(700'000, 1);
  {
    Backlog backlog(path, told_to(0), 2 << 20);
    for (size_t at = 0; at < first.size(); at += 1000) {
      REQUIRE(backlog.append(first.substr(at, 1000), kId).ok());
      backlog.publish();
    }
    REQUIRE(backlog.append(text(600'000, 2), kId).ok());  // of a group that a crash took
  }
  Backlog backlog(path, told_to(first.size()), 2 << 20);
  REQUIRE(backlog.append("tail", kId).ok());
  backlog.publish();
  const auto reader = backlog.read_from(300'500);
  REQUIRE(reader != nullptr);
  CHECK(read_all(*reader) == first.substr(300'500) + "tail");
}

std::unique_ptr<Backlog::Part> part_of(Backlog& backlog, const std::string& bytes) {
  storage::Status status;
  auto part = backlog.begin_part(&status);
  REQUIRE(part != nullptr);
  for (size_t at = 0; at < bytes.size(); at += 333'333) {
    REQUIRE(part->append(std::string_view(bytes).substr(at, 333'333)).ok());
  }
  CHECK(part->bytes() == bytes.size());
  return part;
}

TEST_CASE("a part is read like what stands around it, also after a start", "[changes]") {
  storage::TemporaryDirectory directory;
  const std::string path = directory.file("b");
  std::string all;
  const auto check = [&](Backlog& backlog) {
    for (size_t at = 0; at < all.size(); at += 99'991) {
      const auto reader = backlog.read_from(7 + at);
      REQUIRE(reader != nullptr);
      REQUIRE(read_all(*reader) == all.substr(at));
    }
  };
  {
    Backlog backlog(path, told_to(7), 64 << 20);
    const auto held = backlog.read_from(7);
    uint32_t seed = 0;
    // One at the very beginning, one behind another, one behind others' bytes.
    for (const bool is_part : {true, false, true, true, false, false, true, false}) {
      const std::string bytes = text(is_part ? 1'200'000 : 1000, ++seed);
      const bool is_taken = is_part ? backlog.append(*part_of(backlog, bytes), kId).ok()
                                    : backlog.append(bytes, kId).ok();
      REQUIRE(is_taken);
      all += bytes;
      if (seed % 2 == 0) backlog.publish();
    }
    CHECK(read_all(*held) == all);
    check(backlog);
    const auto lost = part_of(backlog, text(1'000'000, 9));  // no command took it
    std::ofstream(path + "/temp-77") << "left by a crash";
  }
  {
    Backlog backlog(path, told_to(7 + all.size()), 64 << 20);
    check(backlog);
    for (const auto& file : files_in(path)) CHECK(file.filename().string()[0] != 't');
    REQUIRE(backlog.append("tail", kId).ok());
    backlog.publish();
    all += "tail";
    check(backlog);
    backlog.set_limit(1 << 20);
    REQUIRE(backlog.append(text(300'000, 10), kId).ok());
    backlog.publish();
    CHECK(backlog.file_bytes() < 2 << 20);
  }
}

TEST_CASE("no file is open but the one that is written to", "[changes]") {
  storage::TemporaryDirectory directory;
  Backlog backlog(directory.file("b"), told_to(0), 64 << 20);
  const size_t before = files_in("/proc/self/fd").size();
  std::string all;
  const auto told = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      const std::string large = text(2000, static_cast<uint32_t>(i));
      REQUIRE(backlog.append(*part_of(backlog, large), kId).ok());
      REQUIRE(backlog.append("small", kId).ok());
      backlog.publish();
      all += large + "small";
    }
  };
  told(0, 50);
  CHECK(files_in("/proc/self/fd").size() <= before + 1);
  const auto reader = backlog.read_from(0);
  CHECK(read_all(*reader) == all);
  told(50, 52);
  REQUIRE(backlog.append(*part_of(backlog, "lost"), kId).ok());
  REQUIRE(backlog.append("lost", kId).ok());
  backlog.cut();
  told(52, 53);
  CHECK(read_all(*backlog.read_from(0)) == all);
  CHECK(files_in("/proc/self/fd").size() <= before + 2);
}

TEST_CASE("a part whose group was not committed goes", "[changes]") {
  storage::TemporaryDirectory directory;
  const std::string path = directory.file("b");
  const bool begins_with_it = GENERATE(false, true);
  const std::string first = begins_with_it ? "" : text(10'000, 1);
  const auto parts = [&] {
    return std::ranges::count_if(files_in(path),
                                 [](const auto& file) { return file.extension() == ".part"; });
  };
  auto backlog = std::make_unique<Backlog>(path, told_to(0), 64 << 20);
  REQUIRE(backlog->append(first, kId).ok());
  backlog->publish();
  const auto tell = [&] {
    REQUIRE(backlog->append(begins_with_it ? "" : "head", kId).ok());
    REQUIRE(backlog->append(*part_of(*backlog, text(1'000'000, 2)), kId).ok());
    REQUIRE(backlog->append("tail", kId).ok());
    CHECK(parts() == 1);
  };
  tell();
  if (GENERATE(false, true)) {  // the server was killed
    backlog = std::make_unique<Backlog>(path, told_to(first.size()), 64 << 20);
  } else {
    backlog->cut();
  }
  CHECK(parts() == 0);
  tell();
  backlog->publish();
  auto reader = backlog->read_from(0);
  REQUIRE(reader != nullptr);
  CHECK(read_all(*reader) == first + (begins_with_it ? "" : "head") + text(1'000'000, 2) + "tail");
  reader.reset();
  SECTION("the tail is damaged") {
    const uint64_t end = backlog->end();
    backlog.reset();
    std::filesystem::resize_file(files_in(path).back(), 5);
    Backlog again(path, told_to(end), 64 << 20);
    CHECK(again.begin() == end);
    CHECK(files_in(path).empty());
  }
}

TEST_CASE("a backlog that does not reach the stream's end begins anew", "[changes]") {
  storage::TemporaryDirectory directory;
  const std::string path = directory.file("b");
  {
    Backlog backlog(path, told_to(0), 2 << 20);
    REQUIRE(backlog.append(text(300'000, 1), kId).ok());
    backlog.publish();
  }
  SECTION("the engine is ahead") {
    Backlog backlog(path, told_to(300'001), 2 << 20);
    CHECK(backlog.begin() == 300'001);
    CHECK(files_in(path).empty());
  }
  SECTION("a frame is damaged") {
    const auto file = files_in(path).front();
    std::fstream(file, std::ios::in | std::ios::out).seekp(100'000).put('\0');
    Backlog backlog(path, told_to(300'000), 2 << 20);
    CHECK(backlog.begin() == 300'000);
  }
  SECTION("the engine is behind, at no end of a frame") {
    Backlog backlog(path, told_to(1000), 2 << 20);
    CHECK(backlog.begin() == 1000);
    REQUIRE(backlog.append("x", kId).ok());
    backlog.publish();
    CHECK(read_all(*backlog.read_from(1000)) == "x");
  }
}

Got read_to_end(Backlog::Reader& reader) {
  std::string all;
  Got got = Got::kBytes;
  while (got == Got::kBytes) got = reader.read(&all);
  return got;
}

void damage(const std::filesystem::path& file, int at) {
  std::fstream(file, std::ios::in | std::ios::out).seekp(at).put('\0');
}

TEST_CASE("damage is found when it is read, and loses what lies before it alone", "[changes]") {
  storage::TemporaryDirectory directory;
  const std::string path = directory.file("b");
  Backlog backlog(path, told_to(0), 2 << 20);
  for (int i = 0; i < 12; ++i) REQUIRE(backlog.append(text(100'000, 1), kId).ok());
  backlog.publish();
  REQUIRE(files_in(path).size() == 4);
  const auto behind = backlog.read_from(10);
  const auto in_step = backlog.read_from(1'200'000);
  const auto more = [&](const std::string& bytes) {
    REQUIRE(backlog.append(bytes, kId).ok());
    backlog.publish();
  };
  SECTION("in an older segment") {
    damage(files_in(path)[1], 70'000);
    const auto ahead = backlog.read_from(700'000);
    CHECK(read_to_end(*behind) == Got::kGone);
    CHECK(backlog.read_from(10) == nullptr);
    CHECK(backlog.read_from(599'999) == nullptr);
    CHECK(backlog.begin() == 600'000);
    more("on");
    CHECK(read_all(*ahead).size() == 500'002);
    CHECK(read_all(*backlog.read_from(600'000)).size() == 600'002);
  }
  SECTION("in the last segment") {
    more(text(1000, 2));
    REQUIRE(files_in(path).size() == 5);
    CHECK(read_to_end(*in_step) == Got::kNothing);
    damage(files_in(path)[4], 500);
    CHECK(read_to_end(*behind) == Got::kGone);
    CHECK(backlog.begin() == 1'201'000);
    const auto anew = backlog.read_from(1'201'000);
    REQUIRE(anew != nullptr);
    more("on");
    CHECK(read_all(*anew) == "on");
  }
  CHECK(read_all(*in_step).ends_with("on"));
  CHECK(read_to_end(*behind) == Got::kGone);
}

// Told in frames of 100 bytes, which end at the same places whatever they hold.
void tell_under(const std::string& path, const std::vector<Backlog::Told>& parts, uint64_t end,
                uint32_t seed) {
  Backlog backlog(path, parts, 2 << 20);
  while (backlog.end() < end) {
    REQUIRE(backlog.append(text(100, seed), parts.front().id).ok());
    backlog.publish();
  }
}

TEST_CASE("no byte of another past is read, though the disk brings it back", "[changes]") {
  storage::TemporaryDirectory directory;
  const std::string path = directory.file("b");
  const std::string kept = directory.file("kept");
  const std::string second(40, '2');
  tell_under(path, told_to(0), 1000, 1);
  std::filesystem::copy(path, kept);
  SECTION("the data are those of another stream since") {
    Backlog backlog(path, {{.id = second, .end = 800}}, 2 << 20);
    CHECK(backlog.begin() == 800);
    CHECK(files_in(path).empty());
  }
  SECTION("the end was lost, and told anew") {
    const std::vector<Backlog::Told> restarted{{.id = second, .end = 500}, {.id = kId, .end = 500}};
    tell_under(path, restarted, 900, 2);
    REQUIRE(files_in(path).size() == 2);
    // The cut was not synced.
    std::filesystem::copy(kept, path, std::filesystem::copy_options::overwrite_existing);
    const bool all_there = GENERATE(true, false);
    if (!all_there) std::filesystem::remove(files_in(path)[1]);
    Backlog backlog(path, {{.id = second, .end = 900}, {.id = kId, .end = 500}}, 2 << 20);
    CHECK(backlog.begin() == (all_there ? 0 : 900));
    if (all_there) {
      std::string expected;
      for (int i = 3; i < 9; ++i) expected += text(100, i < 5 ? 1 : 2);
      CHECK(read_all(*backlog.read_from(300)) == expected);
    }
  }
}

TEST_CASE("old segments go, but not what somebody has yet to read", "[changes]") {
  storage::TemporaryDirectory directory;
  const std::string path = directory.file("b");
  Backlog backlog(path, told_to(0), 1 << 20);
  const auto fill = [&] {
    for (int i = 0; i < 64; ++i) {
      REQUIRE(backlog.append(text(64 << 10, 3), kId).ok());
      backlog.publish();
    }
  };
  fill();
  CHECK(backlog.file_bytes() < (1 << 20) + (300 << 10));
  CHECK(backlog.end() - backlog.begin() > (1 << 20) - (300 << 10));
  auto slow = backlog.read_from(backlog.end() - 1000);
  fill();
  CHECK(backlog.file_bytes() > (64 << 16));
  std::string all;
  while (slow->read(&all) == Got::kBytes) {
  }
  CHECK(all.size() == (64 << 16) + 1000);
  slow.reset();
  fill();
  CHECK(backlog.file_bytes() < (1 << 20) + (300 << 10));
  backlog.set_limit(300 << 10);
  CHECK(backlog.file_bytes() < (600 << 10));
}

TEST_CASE("what cannot be written loses the backlog and nothing else", "[changes]") {
  storage::TemporaryDirectory directory;
  std::ofstream(directory.file("b")) << "not a directory";
  storage::Status error;
  const auto engine = std::move(storage::open_memory({}).first);
  const auto stream = ChangeStream::open(*engine, directory.file("b"), 1 << 20, false, &error);
  REQUIRE(stream != nullptr);
  REQUIRE(stream->turn_on().ok());
  const auto batch = engine->new_batch();
  stream->append("hello", 0, *batch);
  REQUIRE(engine->write(*batch, storage::Durability::kBuffered).ok());
  stream->committed();
  CHECK(stream->place().offset == 5);
  CHECK(stream->resume(stream->place().id, 0) == nullptr);
  CHECK(stream->resume(stream->place().id, 5) != nullptr);
}

class OneStream {
 public:
  OneStream() { open(false); }
  void open(bool follows) {
    storage::Status error;
    stream = ChangeStream::open(*engine, directory.file("b"), 1 << 20, follows, &error);
    REQUIRE(error.ok());
  }
  void tell(std::string_view bytes, int db = 0) {
    const auto batch = engine->new_batch();
    stream->append(bytes, db, *batch);
    REQUIRE(engine->write(*batch, storage::Durability::kBuffered).ok());
    stream->committed();
  }

  storage::TemporaryDirectory directory;
  std::unique_ptr<storage::Engine> engine = std::move(storage::open_memory({}).first);
  std::unique_ptr<ChangeStream> stream;
};

TEST_CASE("a stream that is off has no id", "[changes]") {
  OneStream one;
  CHECK_FALSE(one.stream->on());
  CHECK(one.stream->place().id.empty());
  CHECK(one.stream->resume("", 0) == nullptr);
  REQUIRE(one.stream->turn_on().ok());
  const std::string id = one.stream->place().id;
  CHECK(id.size() == 40);
  one.tell("12345");
  REQUIRE(one.stream->turn_off().ok());
  CHECK(one.stream->resume(id, 5) == nullptr);
  REQUIRE(one.stream->turn_on().ok());
  CHECK(one.stream->place().id != id);
  CHECK(one.stream->place().offset == 5);
}

TEST_CASE("after a start the old id holds up to there, and no further", "[changes]") {
  OneStream one;
  REQUIRE(one.stream->turn_on().ok());
  const std::string first = one.stream->place().id;
  one.tell("0123456789", 7);
  one.open(false);
  CHECK(one.stream->place().id == first);
  CHECK(one.stream->place().db == 7);
  SECTION("of what is told") {
    one.tell("abc");
  }
  SECTION("of what a follower is told") {
    REQUIRE(one.stream->turn_on().ok());
    CHECK(one.stream->place().id != first);
    one.tell("abc");
  }
  const std::string second = one.stream->place().id;
  CHECK(second != first);
  CHECK(read_all(*one.stream->resume(first, 4)) == "456789abc");
  CHECK(read_all(*one.stream->resume(first, 10)) == "abc");
  CHECK(one.stream->resume(first, 11) == nullptr);
  CHECK(read_all(*one.stream->resume(second, 11)) == "bc");
  CHECK(one.stream->resume(std::string(40, 'f'), 4) == nullptr);
  for (int i = 0; i < 40; ++i) {
    one.open(false);
    one.tell("d");
  }
  CHECK(one.stream->place().former.size() == ChangeStream::kFormerMax);
}

TEST_CASE("the data of a replica goes on under its master's id", "[changes]") {
  OneStream one;
  const auto batch = one.engine->new_batch();
  one.stream->adopt({.id = std::string(40, 'a'), .offset = 100, .db = 3, .former = {}}, *batch);
  REQUIRE(one.engine->write(*batch, storage::Durability::kBuffered).ok());
  one.stream->committed();
  CHECK(one.stream->on());
  one.tell("xyz", 4);
  one.open(true);
  CHECK(one.stream->place().id == std::string(40, 'a'));
  CHECK(one.stream->place().offset == 103);
  CHECK(one.stream->place().db == 4);
  CHECK(read_all(*one.stream->resume(std::string(40, 'a'), 101)) == "yz");
  one.open(false);  // and names its master later
  one.stream->keep_id();
  one.tell("more");
  CHECK(one.stream->place().id == std::string(40, 'a'));
}

TEST_CASE("a group that was not committed told nothing", "[changes]") {
  OneStream one;
  REQUIRE(one.stream->turn_on().ok());
  one.tell("before ");
  const auto batch = one.engine->new_batch();
  one.stream->append(text(900'000, 1), 5, *batch);
  one.stream->undo();
  CHECK(one.stream->place().offset == 7);
  CHECK(one.stream->db() == 0);
  one.tell("after");
  CHECK(read_all(*one.stream->read_from(0)) == "before after");
}

// While it lives no file grows beyond that, as on a full disk.
class FilesAtMost {
 public:
  explicit FilesAtMost(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FilesAtMost() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FilesAtMost(const FilesAtMost&) = delete;
  FilesAtMost& operator=(const FilesAtMost&) = delete;

 private:
  rlimit before_{};
};

TEST_CASE("what found no room and was not committed is not read", "[changes]") {
  OneStream one;
  REQUIRE(one.stream->turn_on().ok());
  one.tell("before ");
  {
    const FilesAtMost full(150'000);
    const auto batch = one.engine->new_batch();
    one.stream->append(text(200'000, 1), 0, *batch);
    one.stream->undo();
  }
  const std::string after = text(200'000, 2);
  one.tell(after);
  CHECK(read_all(*one.stream->read_from(0)) == "before " + after);
  one.stream.reset();
  one.open(true);
  CHECK(read_all(*one.stream->read_from(0)) == "before " + after);
}

TEST_CASE("whoever waits for the stream is called once it grows, or is another", "[changes]") {
  OneStream one;
  REQUIRE(one.stream->turn_on().ok());
  int called = 0;
  one.stream->when_beyond(2, [&] { ++called; });
  one.tell("12");
  CHECK(called == 0);
  one.tell("3");
  CHECK(called == 1);
  one.tell("4");
  CHECK(called == 1);
  one.stream->when_beyond(2, [&] { ++called; });
  CHECK(called == 2);
  one.stream->when_beyond(1000, [&] { ++called; });
  SECTION("another") {
    const auto batch = one.engine->new_batch();
    one.stream->adopt({.id = std::string(40, 'a'), .offset = 1, .db = 0, .former = {}}, *batch);
    one.stream->committed();
  }
  SECTION("off") {
    REQUIRE(one.stream->turn_off().ok());
  }
  CHECK(called == 3);
}

}  // namespace
}  // namespace ingot::data
