// Segment files: writing frames, finding them again after a start, reading them.
#include "src/data/backlog.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "storage/codec.h"

namespace ingot::data {

using storage::Status;

// Open while it is written to, and no longer: there may be as many as there are large values.
struct BacklogSegment {
  BacklogSegment(std::string in, uint64_t place, std::string under, bool part)
      : path(std::move(in)), begin(place), id(std::move(under)), is_part(part) {}
  ~BacklogSegment() { close(); }
  BacklogSegment(const BacklogSegment&) = delete;
  BacklogSegment& operator=(const BacklogSegment&) = delete;

  // Unless it is. False, with errno.
  bool open(int more = 0) {
    if (fd < 0) fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | more, 0644);
    return fd >= 0;
  }
  void close() {
    if (fd >= 0) ::close(std::exchange(fd, -1));
  }

  // What its checksums are seeded with.
  uint64_t seed(uint64_t place) const { return is_part ? place - begin : place; }

  std::string path;
  uint64_t begin;  // in the stream
  std::string id;  // under which its bytes were told; all constant once it belongs to the stream
  const bool is_part;
  int fd = -1;              // by who writes it
  uint64_t file_bytes = 0;  // by the backlog's mutex_
};

namespace {

constexpr std::string_view kSuffix = ".backlog";
constexpr std::string_view kPartSuffix = ".part";
constexpr std::string_view kUnplaced = "temp-";  // before a number: not, or no more, in the stream
constexpr size_t kDigits = 20;
constexpr size_t kHeaderBytes = 12;
constexpr size_t kFrameBytesMax = 64 << 10;
constexpr size_t kReadBytes = 128 << 10;
// So many segments make a full backlog, so that it never holds much more or less than it may.
constexpr uint64_t kSegments = 8;
constexpr uint64_t kSegmentBytesMin = 256 << 10;
constexpr uint64_t kSegmentBytesMax = 64 << 20;

std::string segment_path(const std::string& directory, uint64_t begin, const std::string& id,
                         bool is_part) {
  return fmt::format("{}/{:020}-{}{}", directory, begin, id, is_part ? kPartSuffix : kSuffix);
}

// A part stands behind an empty segment of its place.
using SegmentOrder = std::pair<uint64_t, bool>;

struct SegmentName {
  SegmentOrder order;
  std::string id;
};
std::optional<SegmentName> read_segment_name(std::string_view name) {
  const bool is_part = name.ends_with(kPartSuffix);
  const std::string_view suffix = is_part ? kPartSuffix : kSuffix;
  if (!name.ends_with(suffix) || name.size() <= kDigits + suffix.size() || name[kDigits] != '-') {
    return std::nullopt;
  }
  uint64_t begin = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + kDigits, begin);
  if (error != std::errc() || end != name.data() + kDigits) return std::nullopt;
  name.remove_suffix(suffix.size());
  return SegmentName{.order = {begin, is_part}, .id = std::string(name.substr(kDigits + 1))};
}

// Of the byte behind this place; null: there is none.
const Backlog::Told* told_at(const std::vector<Backlog::Told>& told, uint64_t place) {
  const auto oldest = std::ranges::find_if(told.rbegin(), told.rend(),
                                           [&](const auto& each) { return each.end > place; });
  return oldest == told.rend() ? nullptr : &*oldest;
}

Status file_error(const std::string& what, const std::string& path) {
  const auto code = errno == ENOSPC || errno == EDQUOT ? Status::Code::kNoSpace : Status::Code::kIo;
  return {code, fmt::format("{} {}: {}", what, path, std::strerror(errno))};
}

bool read_all(int fd, uint64_t position, size_t bytes, std::string* out) {
  out->resize(bytes);
  for (size_t done = 0; done < bytes;) {
    const ssize_t got =
        ::pread(fd, out->data() + done, bytes - done, static_cast<off_t>(position + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

uint64_t checksum(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

bool write_all(int fd, uint64_t position, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(position));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(put));
    position += static_cast<uint64_t>(put);
  }
  return true;
}

struct FrameHeader {
  uint32_t bytes = 0;
  uint64_t sum = 0;
};
std::optional<FrameHeader> read_frame_header(int fd, uint64_t position) {
  std::string header;
  if (!read_all(fd, position, kHeaderBytes, &header)) return std::nullopt;
  const FrameHeader frame{.bytes = storage::read_le32(header),
                          .sum = storage::read_le64(std::string_view(header).substr(4))};
  if (frame.bytes == 0 || frame.bytes > kFrameBytesMax) return std::nullopt;
  return frame;
}

bool read_frame(int fd, uint64_t position, const FrameHeader& frame, uint64_t seed,
                std::string* out) {
  return read_all(fd, position + kHeaderBytes, frame.bytes, out) &&
         checksum(*out, seed) == frame.sum;
}

// Behind `*position`, which then is behind them; the bytes stand at `seed`.
bool write_frames(int fd, uint64_t* position, std::string_view bytes, uint64_t seed) {
  std::string frame;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kFrameBytesMax);
    frame.clear();
    storage::append_le32(&frame, static_cast<uint32_t>(piece.size()));
    storage::append_le64(&frame, checksum(piece, seed));
    frame.append(piece);
    if (!write_all(fd, *position, frame)) return false;
    *position += frame.size();
    seed += piece.size();
    bytes.remove_prefix(piece.size());
  }
  return true;
}

// Whether its frames lead exactly to `end`; what lies behind that is cut off.
bool cut_to(BacklogSegment& segment, uint64_t end) {
  uint64_t position = 0;
  uint64_t place = segment.begin;
  std::string bytes;
  while (place < end) {
    const auto frame = read_frame_header(segment.fd, position);
    if (!frame || !read_frame(segment.fd, position, *frame, segment.seed(place), &bytes)) {
      return false;
    }
    position += kHeaderBytes + frame->bytes;
    place += frame->bytes;
  }
  if (place != end || ::ftruncate(segment.fd, static_cast<off_t>(position)) != 0) return false;
  segment.file_bytes = position;
  return true;
}

}  // namespace

Backlog::Backlog(std::string directory, const std::vector<Told>& told, uint64_t limit)
    : directory_(std::move(directory)), limit_(limit) {
  begin_ = end_ = written_ = told.front().end;
  find_segments(told);
}

Backlog::~Backlog() {
  sweep();
}

// Those that lead to the end without a gap: of the last one every frame is looked at, of the others
// when they are read.
void Backlog::find_segments(const std::vector<Told>& told) {
  struct Found {
    std::string path;
    const Told* told;
  };
  std::error_code error;
  std::map<SegmentOrder, Found> found;
  std::vector<std::string> others;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    const std::string file = entry.path().filename().string();
    const auto name = read_segment_name(file);
    const Told* under = name ? told_at(told, name->order.first) : nullptr;
    if (under != nullptr && under->id == name->id) {
      found[name->order] = {.path = entry.path().string(), .told = under};
    } else if (name || file.starts_with(kUnplaced) || file.ends_with(kSuffix)) {
      others.push_back(entry.path().string());
    }
  }
  uint64_t leads_to = end_;
  while (!found.empty()) {
    const auto& [order, last] = *std::prev(found.end());
    const auto& [begin, is_part] = order;
    if (last.told->end < leads_to) break;
    auto segment = std::make_shared<BacklogSegment>(last.path, begin, last.told->id, is_part);
    if (segments_.empty()) {
      if (!segment->open() || !cut_to(*segment, end_)) break;
      segment_bytes_ = published_bytes_ = segment->file_bytes;
    } else {
      std::error_code size_error;
      const uint64_t bytes = std::filesystem::file_size(last.path, size_error);
      segment->file_bytes = size_error ? 0 : bytes;
    }
    begin_ = leads_to = begin;
    segments_.push_front(std::move(segment));
    found.erase(std::prev(found.end()));
  }
  for (const auto& [order, gone] : found) std::filesystem::remove(gone.path, error);
  for (const std::string& path : others) std::filesystem::remove(path, error);
  drop_old();
}

Status Backlog::begin_segment(const std::string& id) {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  const std::string path = segment_path(directory_, written_, id, /*is_part=*/false);
  auto segment = std::make_shared<BacklogSegment>(path, written_, id, /*part=*/false);
  if (!segment->open(O_CREAT | O_TRUNC)) return file_error("Can't create", path);
  segment_bytes_ = 0;
  push(std::move(segment));
  return {};
}

// Which is written to from now on.
void Backlog::push(SegmentPtr segment) {
  std::lock_guard lock(mutex_);
  if (!segments_.empty()) segments_.back()->close();
  segments_.push_back(std::move(segment));
}

Backlog::Part::~Part() {
  if (!file_) return;
  std::lock_guard lock(backlog_.mutex_);
  backlog_.remove(*file_);
}

std::unique_ptr<Backlog::Part> Backlog::begin_part(Status* error) {
  std::error_code ignored;
  std::filesystem::create_directories(directory_, ignored);
  auto file = std::make_shared<BacklogSegment>(unplaced_path(), 0, "", /*part=*/true);
  if (!file->open(O_CREAT | O_TRUNC)) {
    *error = file_error("Can't create", file->path);
    return nullptr;
  }
  return std::unique_ptr<Part>(new Part(*this, std::move(file)));
}

std::string Backlog::unplaced_path() {
  return fmt::format("{}/{}{}", directory_, kUnplaced, ++unplaced_);
}

Status Backlog::Part::append(std::string_view bytes) {
  if (!write_frames(file_->fd, &file_->file_bytes, bytes, bytes_)) {
    return file_error("Can't write", file_->path);
  }
  bytes_ += bytes.size();
  return {};
}

Status Backlog::append(std::string_view bytes, const std::string& id) {
  bool ends = true;  // the last segment
  {
    std::lock_guard lock(mutex_);
    const uint64_t most = std::clamp(limit_ / kSegments, kSegmentBytesMin, kSegmentBytesMax);
    ends = segments_.empty() || segments_.back()->is_part || segment_bytes_ >= most ||
           segments_.back()->id != id || segments_.back()->begin < damaged_to_;
  }
  if (ends) {
    if (Status status = begin_segment(id); !status.ok()) return status;
  }
  BacklogSegment& segment = *segments_.back();
  uint64_t position = segment_bytes_;
  if (!write_frames(segment.fd, &position, bytes, written_)) {
    // The frames that found room are whole, and of this place: what comes next overwrites them.
    return file_error("Can't write", segment.path);
  }
  segment_bytes_ = position;
  written_ += bytes.size();
  std::lock_guard lock(mutex_);
  segment.file_bytes = segment_bytes_;
  return {};
}

Status Backlog::append(Part& part, const std::string& id) {
  const std::string path = segment_path(directory_, written_, id, /*is_part=*/true);
  if (::rename(part.file_->path.c_str(), path.c_str()) != 0) {
    return file_error("Can't rename", part.file_->path);
  }
  SegmentPtr segment = std::exchange(part.file_, nullptr);
  segment->path = path;
  segment->begin = written_;
  segment->id = id;
  segment->close();
  segment_bytes_ = segment->file_bytes;
  written_ += part.bytes_;
  push(std::move(segment));
  return {};
}

void Backlog::publish() {
  published_bytes_ = segment_bytes_;
  std::lock_guard lock(mutex_);
  end_ = written_;
  drop_old();
}

void Backlog::cut() {
  if (written_ == end()) return;
  std::unique_lock lock(mutex_);
  const auto is_behind = [this](const BacklogSegment& segment) {
    return segment.begin > end_ || (segment.is_part && segment.begin == end_);
  };
  while (!segments_.empty() && is_behind(*segments_.back())) {
    remove(*segments_.back());
    segments_.pop_back();
  }
  written_ = end_;
  bool ok = !segments_.empty();
  if (ok) {
    BacklogSegment& last = *segments_.back();
    segment_bytes_ = last.file_bytes = last.begin == end_ ? 0 : published_bytes_;
    ok = last.open() && ::ftruncate(last.fd, static_cast<off_t>(segment_bytes_)) == 0;
  }
  lock.unlock();
  if (!ok) begin_anew(written_);
}

void Backlog::begin_anew(uint64_t offset) {
  std::lock_guard lock(mutex_);
  for (const SegmentPtr& segment : segments_) remove(*segment);
  segments_.clear();
  begin_ = end_ = written_ = offset;
  segment_bytes_ = published_bytes_ = 0;
  damaged_to_ = 0;
  ++generation_;
}

// Another may soon have its name.
void Backlog::remove(const BacklogSegment& segment) {
  const std::string path = unplaced_path();
  if (::rename(segment.path.c_str(), path.c_str()) == 0) {
    removed_.push_back(path);
  } else {
    ::unlink(segment.path.c_str());
  }
}

void Backlog::sweep() {
  std::vector<std::string> removed;
  {
    std::lock_guard lock(mutex_);
    removed.swap(removed_);
  }
  for (const std::string& path : removed) ::unlink(path.c_str());
}

bool Backlog::is_held(uint64_t end) const {
  return !held_.empty() && *held_.begin() < end;
}

void Backlog::drop_old() {
  uint64_t bytes = 0;
  for (const SegmentPtr& segment : segments_) bytes += segment->file_bytes;
  while (segments_.size() > 1 && bytes > limit_ && !is_held(segments_[1]->begin)) {
    bytes -= segments_.front()->file_bytes;
    remove(*segments_.front());
    segments_.pop_front();
    begin_ = segments_.front()->begin;
  }
}

void Backlog::set_limit(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  limit_ = bytes;
  drop_old();
}

uint64_t Backlog::begin() const {
  std::lock_guard lock(mutex_);
  return readable_from();
}

uint64_t Backlog::end() const {
  std::lock_guard lock(mutex_);
  return end_;
}

uint64_t Backlog::file_bytes() const {
  std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const SegmentPtr& segment : segments_) bytes += segment->file_bytes;
  return bytes;
}

std::unique_ptr<Backlog::Reader> Backlog::read_from(uint64_t offset) {
  std::lock_guard lock(mutex_);
  if (offset > end_ || offset < readable_from()) return nullptr;
  return std::unique_ptr<Reader>(new Reader(*this, offset, generation_, held_.insert(offset)));
}

Backlog::Reader::~Reader() {
  if (fd_ >= 0) ::close(fd_);
  std::lock_guard lock(backlog_.mutex_);
  backlog_.held_.erase(held_);
}

Backlog::Reader::Got Backlog::Reader::read(std::string* out) {
  uint64_t end = 0;  // of the segment's part of the stream, as far as it may be read
  {
    std::lock_guard lock(backlog_.mutex_);
    if (backlog_.generation_ != generation_ || offset_ < backlog_.damaged_to_) return Got::kGone;
    if (offset_ == backlog_.end_) return Got::kNothing;
    const auto& segments = backlog_.segments_;
    const auto next = std::ranges::upper_bound(segments, offset_, {}, &BacklogSegment::begin);
    const SegmentPtr& segment = *std::prev(next);
    if (segment_ != segment) {
      segment_ = segment;
      place_ = segment->begin;
      position_ = 0;
      if (fd_ >= 0) ::close(fd_);
      fd_ = ::open(segment->path.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd_ < 0 && (errno == EMFILE || errno == ENFILE)) return Got::kGone;
    }
    end = next == segments.end() ? backlog_.end_ : std::min((*next)->begin, backlog_.end_);
  }
  std::string bytes;
  const size_t before = out->size();
  while (place_ < end && out->size() - before < kReadBytes) {
    const auto frame = read_frame_header(fd_, position_);
    const bool wanted = frame && place_ + frame->bytes > offset_;
    if (!frame || place_ + frame->bytes > end ||
        (wanted && !read_frame(fd_, position_, *frame, segment_->seed(place_), &bytes))) {
      std::lock_guard lock(backlog_.mutex_);
      if (backlog_.generation_ == generation_) {
        backlog_.damaged_to_ = std::max(backlog_.damaged_to_, end);
      }
      return Got::kGone;
    }
    if (wanted) out->append(bytes, offset_ - place_);
    position_ += kHeaderBytes + frame->bytes;
    place_ += frame->bytes;
    offset_ = std::max(offset_, place_);
  }
  std::lock_guard lock(backlog_.mutex_);
  backlog_.held_.erase(held_);
  held_ = backlog_.held_.insert(offset_);
  return Got::kBytes;
}

}  // namespace ingot::data
