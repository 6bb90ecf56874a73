// A long reply that is read and encoded piece by piece in the reader pool while the client takes
// it, from one state of the data.
//
// Threads: next() and expired() on the connection's I/O thread; the destructor on any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/connection.h"
#include "src/data/reader_pool.h"
#include "src/data/services.h"
#include "src/data/store.h"
#include "storage/reader.h"

namespace ingot::data {

inline constexpr size_t kPieceBytes = 128 << 10;

class PieceSource final : public net::BodySource {
 public:
  // Appends some kPieceBytes to `piece`; true when there is more. At least one byte when there is.
  // On pool threads, one call at a time. What goes wrong latches in `data`, which reads the view.
  using Read = std::move_only_function<bool(storage::Reader& data, std::string* piece)>;

  struct Use {
    storage::CacheUse cache = storage::CacheUse::kPassBy;
    Work work = Work::kShort;  // of one piece; kLong: much may be read for little
  };
  PieceSource(Services& services, std::shared_ptr<const View> view, Read read)
      : PieceSource(services, std::move(view), std::move(read), Use()) {}
  PieceSource(Services& services, std::shared_ptr<const View> view, Read read, Use use);
  ~PieceSource() override;  // a piece that is being read ends early

  void next(net::IoThread& thread,
            std::move_only_function<void(std::optional<std::string>)> done) override;
  // A client that reads for minutes is cut: a view keeps whatever was dropped after it from being
  // reclaimed.
  bool expired() override;

 private:
  struct State {
    std::shared_ptr<const View> view;  // null once everything is read
    Read read;
    storage::CacheUse cache;
    std::atomic<bool> abandoned = false;
  };
  static std::optional<std::string> read_piece(storage::Engine& engine, State& state);

  Services& services_;
  const int64_t view_created_ms_;
  const Work work_;
  std::shared_ptr<State> state_;  // shared with the piece that is being read
};

// The state of now, for a reply from what was gathered for it alone.
std::shared_ptr<const View> latest_view(Services& services);

// Reads the records of [lower, upper) in the order of their keys, or the other way round.
struct RecordRange {
  storage::Space space;
  std::string lower;
  std::string upper;
  bool reverse = false;
};
using EncodeRecord =
    std::function<void(std::string_view key, std::string_view value, std::string* out)>;
PieceSource::Read read_range(RecordRange range, EncodeRecord encode);

}  // namespace ingot::data
