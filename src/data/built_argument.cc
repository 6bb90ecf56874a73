// From pieces as the socket gives them to chunks.
#include "src/data/built_argument.h"

#include <algorithm>

#include "src/data/change_stream.h"
#include "src/data/collector.h"
#include "src/data/reader_pool.h"
#include "src/data/store.h"
#include "src/settings/config.h"
#include "src/types/string_value.h"
#include "storage/overlay.h"

namespace ingot::data {

using storage::kStringChunkBytes;

void BuiltArgument::write(std::string piece, std::move_only_function<void(bool ok)> ready) {
  auto task = [self = shared_from_this(), piece = std::move(piece),
               ready = std::move(ready)]() mutable {
    self->take(piece);
    const bool ok = self->failure_.ok() && self->string_->status().ok();
    self->thread_.post([ready = std::move(ready), ok]() mutable { ready(ok); });
  };
  // A write may wait for an fsync.
  services_.readers.submit(std::move(task), Work::kLong);
}

// Its command will be refused, and the disk needs the space.
void BuiltArgument::take(std::string_view piece) {
  if (services_.collector.is_space_short(services_.config.settings()->dir)) {
    failure_ = {storage::Status::Code::kNoSpace, "the disk has no space for it"};
  }
  if (!failure_.ok()) return;
  if (!string_) {
    string_.emplace(services_);
    part_ = services_.changes.begin_part();
  }
  if (part_ && !part_->append(piece).ok()) part_.reset();
  while (!piece.empty()) {
    const std::string_view part = piece.substr(0, kStringChunkBytes - partial_.size());
    piece.remove_prefix(part.size());
    received_ += part.size();
    const bool is_whole_chunk = part.size() == kStringChunkBytes;
    if (!is_whole_chunk) partial_.append(part);
    if (received_ % kStringChunkBytes != 0 && received_ != length_) continue;
    types::put_chunk([this](storage::Space space, std::string_view element,
                            std::string_view record) { string_->put(space, element, record); },
                     static_cast<uint32_t>((received_ - 1) / kStringChunkBytes),
                     is_whole_chunk ? part : partial_);
    partial_.clear();
  }
  if (received_ == length_) string_->flush();
}

storage::Status BuiltArgument::status() const {
  if (!failure_.ok()) return failure_;
  if (string_ && !string_->status().ok()) return string_->status();
  if (received_ == length_) return {};
  return {storage::Status::Code::kIo, "a large argument was not received completely"};
}

storage::Status BuiltArgument::read(const Piece& piece) const {
  constexpr uint64_t kReadBytes = 64 * kStringChunkBytes;
  storage::Status bad = status();
  if (!bad.ok()) return bad;
  storage::Overlay data(services_.store.engine(), nullptr, storage::Tier::kDisk);
  std::string bytes;
  for (uint64_t at = 0; at < length_; at += bytes.size()) {
    bytes.clear();
    types::read_string(data, {id()}, at, std::min(kReadBytes, length_ - at), &bytes);
    if (data.failed()) return data.error();
    piece(bytes);
  }
  return {};
}

}  // namespace ingot::data
