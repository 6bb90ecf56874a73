// Walking over all databases of a view, small values whole, large ones in pieces.
#include "src/data/rdb_writer.h"

#include "src/data/rdb_pieces.h"
#include "src/data/store.h"
#include "src/settings/config.h"
#include "src/settings/setting_values.h"
#include "src/types/hash_value.h"
#include "src/types/key_walk.h"
#include "src/types/rdb/rdb_bytes.h"
#include "src/types/rdb/rdb_object.h"
#include "src/types/rdb/rdb_opcodes.h"
#include "src/types/rdb/rdb_store.h"
#include "src/types/string_value.h"

namespace ingot::data {

using storage::ValueType;
using types::rdb::append_length;
using types::rdb::append_string;

namespace {

constexpr size_t kRdbPieceBytes = 64 << 10;
// Collections of so many elements and bytes are written whole, in Redis' packed forms.
constexpr uint64_t kWholeElements = 512;
constexpr uint64_t kWholeBytes = 256 << 10;
constexpr std::string_view kRedisVersion = "7.0.15";  // that we answer for

types::rdb::EncodeOptions encode_options(const settings::Settings& settings) {
  const auto compression = settings::find_setting("rdbcompression");
  return {.compress = settings::print_value(*compression.row, settings) == "yes",
          .list_max_listpack_size = settings.list_max_listpack_size,
          .stream_node_max_bytes = settings.stream_node_max_bytes,
          .stream_node_max_entries = static_cast<uint64_t>(settings.stream_node_max_entries)};
}

}  // namespace

class RdbWriter::Impl {
 public:
  Impl(Services& services, std::shared_ptr<const View> view, Fields aux,
       std::vector<std::string> functions, RdbReaderKind reader)
      : services_(services),
        view_(std::move(view)),
        aux_(std::move(aux)),
        functions_(std::move(functions)),
        reader_(reader),
        options_(encode_options(*services.config.settings())),
        policy_(services.config.settings()->maxmemory_policy),
        databases_(view_ ? view_->databases() : types::DatabaseMap()),
        now_ms_(view_ ? view_->created_ms() : services.store.now_ms()),
        data_(services.store.engine(), view_ ? view_->snapshot() : nullptr, storage::Tier::kDisk,
              storage::CacheUse::kPassBy),
        keys_(data_, databases_, now_ms_, nullptr) {}

  bool next(std::string* out);
  storage::Status status() const { return data_.error(); }

 private:
  enum class State : uint8_t { kHeader, kKeys, kEnded };

  void write_header(std::string* out);
  void write_keys(std::string* out, size_t bytes_max);
  void write_key(std::string_view key, std::string_view bytes, std::string* out);
  void write_key_head(types::rdb::ObjectType type, std::string_view key, std::string* out);
  void begin_database(std::string* out);
  void write_aux(std::string_view name, std::string_view value, std::string* out) const;
  void write_end(std::string* out);

  Services& services_;
  const std::shared_ptr<const View> view_;
  const Fields aux_;
  const std::vector<std::string> functions_;
  const RdbReaderKind reader_;
  const types::rdb::EncodeOptions options_;
  const settings::MaxmemoryPolicy policy_;
  const types::DatabaseMap databases_;
  const int64_t now_ms_;
  storage::EngineReader data_;
  types::KeyReader keys_;
  types::rdb::RunningSum sum_;

  State state_ = State::kHeader;
  int db_ = 0;
  bool begun_ = false;                 // the database at hand has been told
  std::string next_key_;               // of it, the first that is to be told
  types::Record record_;               // of the key at hand
  std::unique_ptr<RdbPieces> pieces_;  // of its value, while it is told
};

bool RdbWriter::Impl::next(std::string* out) {
  const size_t begin = out->size();
  const size_t bytes_max = begin + kRdbPieceBytes;
  if (state_ == State::kHeader) write_header(out);
  if (pieces_ && !pieces_->next(out, bytes_max)) pieces_.reset();
  if (databases_.empty()) state_ = State::kEnded;
  while (state_ == State::kKeys && !pieces_ && out->size() < bytes_max && !data_.failed()) {
    write_keys(out, bytes_max);
  }
  sum_.pass(std::string_view(*out).substr(begin));
  if (data_.failed()) return false;
  if (state_ != State::kEnded || pieces_) return true;
  write_end(out);
  return false;
}

void RdbWriter::Impl::write_aux(std::string_view name, std::string_view value,
                                std::string* out) const {
  out->push_back(static_cast<char>(types::rdb::kAux));
  append_string(out, name, false);
  append_string(out, value, false);
}

void RdbWriter::Impl::write_header(std::string* out) {
  out->append("REDIS0010");
  write_aux("redis-ver", kRedisVersion, out);
  write_aux("redis-bits", "64", out);
  write_aux("ctime", std::to_string(now_ms_ / 1000), out);
  write_aux("used-mem", std::to_string(services_.store.engine().stats().memory_bytes), out);
  for (const auto& [name, value] : aux_) write_aux(name, value, out);
  write_aux("aof-base", "0", out);
  for (const std::string& code : functions_) {
    out->push_back(static_cast<char>(types::rdb::kFunction));
    append_string(out, code, options_.compress);
  }
  state_ = State::kKeys;
}

void RdbWriter::Impl::begin_database(std::string* out) {
  if (begun_) return;
  begun_ = true;
  const storage::KeyCounts counts = keys_.counts(db_).not_negative();
  out->push_back(static_cast<char>(types::rdb::kSelect));
  append_length(out, static_cast<uint64_t>(db_));
  out->push_back(static_cast<char>(types::rdb::kResize));
  append_length(out, counts.keys);
  append_length(out, counts.expires);
}

// Keys of the database at hand, until there is a piece, or one whose value comes in pieces.
void RdbWriter::Impl::write_keys(std::string* out, size_t bytes_max) {
  types::KeyWalk walk(data_, keys_.keyspace(db_), {});
  walk.seek(next_key_);
  for (; walk.valid() && !pieces_ && out->size() < bytes_max; walk.next()) {
    begin_database(out);
    write_key(walk.key(), walk.record(), out);
    // The first key that is behind this one.
    next_key_.assign(walk.key()).push_back('\0');
  }
  if (walk.valid() || pieces_ || data_.failed()) return;
  ++db_;
  begun_ = false;
  next_key_.clear();
  if (static_cast<size_t>(db_) == databases_.size()) state_ = State::kEnded;
}

void RdbWriter::Impl::write_key(std::string_view key, std::string_view bytes, std::string* out) {
  if (!record_.assign(std::string(bytes))) {
    return data_.latch_error({storage::Status::Code::kCorruption, "unreadable metadata record"});
  }
  using types::rdb::ObjectType;
  if (record_.type() == ValueType::kString && !record_.collection()) {
    write_key_head(ObjectType::kString, key, out);
    return append_string(out, record_.payload(), options_.compress);
  }
  const bool timed = record_.element_expire_ms() != 0;
  if (timed && reader_ == RdbReaderKind::kRedis &&
      types::HashReader(data_, record_, now_ms_).length() == 0) {
    return;
  }
  const auto& collection = record_.collection();
  const bool whole = !collection || collection->count <= kWholeElements;
  if (whole && record_.type() != ValueType::kString &&
      !(timed && reader_ == RdbReaderKind::kIngot)) {
    const auto object = types::rdb::read_object(data_, record_, now_ms_, kWholeBytes);
    if (object) {
      std::string body;
      const ObjectType type = types::rdb::encode_object(*object, options_, &body);
      write_key_head(type, key, out);
      out->append(body);
      return;
    }
  }
  pieces_ = begin_pieces({.data = data_,
                          .record = record_,
                          .now_ms = now_ms_,
                          .tells_expiry = reader_ == RdbReaderKind::kIngot,
                          .options = options_});
  write_key_head(pieces_->type(), key, out);
}

void RdbWriter::Impl::write_key_head(types::rdb::ObjectType type, std::string_view key,
                                     std::string* out) {
  if (record_.expire_ms() != 0) {
    out->push_back(static_cast<char>(types::rdb::kExpireMs));
    types::rdb::append_le(out, static_cast<uint64_t>(record_.expire_ms()), 8);
  }
  // As Redis: only what its policy goes by.
  types::AccessClock& access = services_.store.access();
  const storage::KeyspaceId keyspace = keys_.keyspace(db_);
  if (settings::is_lru(policy_)) {
    out->push_back(static_cast<char>(types::rdb::kIdle));
    append_length(out, static_cast<uint64_t>(access.idle_seconds(keyspace, key, now_ms_)));
  }
  if (settings::counts_uses(policy_)) {
    out->push_back(static_cast<char>(types::rdb::kFrequency));
    out->push_back(static_cast<char>(access.frequency(keyspace, key, now_ms_)));
  }
  out->push_back(static_cast<char>(type));
  append_string(out, key, options_.compress);
}

void RdbWriter::Impl::write_end(std::string* out) {
  out->push_back(static_cast<char>(types::rdb::kEnd));
  sum_.pass(std::string_view(*out).substr(out->size() - 1));
  types::rdb::append_le(out, sum_.value(), 8);
}

RdbWriter::RdbWriter(Services& services, std::shared_ptr<const View> view, Fields aux,
                     std::vector<std::string> functions, RdbReaderKind reader)
    : impl_(std::make_unique<Impl>(services, std::move(view), std::move(aux), std::move(functions),
                                   reader)) {}

RdbWriter::~RdbWriter() = default;

bool RdbWriter::next(std::string* out) {
  return impl_->next(out);
}

storage::Status RdbWriter::status() const {
  return impl_->status();
}

}  // namespace ingot::data
