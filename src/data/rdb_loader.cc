// The frame of an RDB file: what stands before a key, keys, what stands behind the last one.
#include "src/data/rdb_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "src/data/filling.h"
#include "src/data/rdb_value.h"
#include "src/data/seen_names.h"
#include "src/data/store.h"
#include "src/settings/config.h"
#include "src/types/rdb/rdb_bytes.h"
#include "src/types/rdb/rdb_object.h"
#include "src/types/rdb/rdb_opcodes.h"
#include "src/types/string_value.h"

namespace ingot::data {

using types::rdb::Input;
using types::rdb::ObjectType;

namespace {

constexpr std::string_view kMagic = "REDIS";
constexpr size_t kVersionDigits = 4;
constexpr int kNewestVersion = 12;  // of Redis 7.4
constexpr int kFirstWithChecksum = 5;
constexpr uint64_t kComparedKeysMax = 4 * SeenNames::kSureNamesMax;
// What a file notes of itself is short; more is passed over.
constexpr size_t kAuxMax = 256;
constexpr size_t kAuxBytesMax = 4096;

types::rdb::StoreLimits packed_limits(const settings::Settings& settings,
                                      const RdbLoadOptions& options) {
  types::rdb::StoreLimits limits{
      .hash = {.inline_max_bytes = settings.inline_max_bytes,
               .listpack_entries_max = settings.hash_max_listpack_entries,
               .listpack_value_max = settings.hash_max_listpack_value},
      .set = {.inline_max_bytes = settings.inline_max_bytes,
              .intset_entries_max = settings.set_max_intset_entries},
      .sorted_set = {.inline_max_bytes = settings.inline_max_bytes,
                     .listpack_entries_max = settings.zset_max_listpack_entries,
                     .listpack_value_max = settings.zset_max_listpack_value}};
  if (options.keep_packing) limits.sorted_set.listpack_entries_max = UINT64_MAX;
  return limits;
}

types::rdb::StoreLimits unpacked_limits(types::rdb::StoreLimits limits,
                                        const RdbLoadOptions& options) {
  if (options.keep_packing) limits.sorted_set.listpack_entries_max = 0;
  return limits;
}

// Nine characters of six bits, and ten bits of a version.
std::string module_name(uint64_t id) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string name;
  for (int shift = 58; shift >= 10; shift -= 6) name.push_back(kLetters[id >> shift & 63]);
  return name;
}

std::string quoted_key(std::string_view key) {
  constexpr size_t kShownMax = 128;
  std::string shown = "'";
  for (const char c : key.substr(0, kShownMax)) {
    if (c >= ' ' && c <= '~') {
      shown.push_back(c);
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    }
  }
  return shown + (key.size() > kShownMax ? "...'" : "'");
}

}  // namespace

class RdbLoader::Impl {
 public:
  Impl(Services& services, int databases, RdbLoadOptions options)
      : services_(services),
        databases_(databases),
        options_(options),
        limits_(packed_limits(*services.config.settings(), options)),
        unpacked_limits_(unpacked_limits(limits_, options)),
        filling_(services, databases) {}

  bool feed(std::string_view bytes);

  enum class State : uint8_t { kMagic, kBetweenKeys, kValue, kChecksum, kFinished };
  State state = State::kMagic;
  size_t taken = 0;
  std::string error;
  uint64_t keys_loaded = 0;
  uint64_t keys_expired = 0;
  uint64_t consumed = 0;
  std::map<std::string, std::string> aux;
  std::vector<std::string> functions;

  const Filling& filling() const { return filling_; }

 private:
  bool step(Input& in);
  bool take_magic(Input& in);
  bool take_opcode(Input& in);
  bool take_key(ObjectType type, Input& in);
  bool take_checksum(Input& in);
  bool take_select(Input& in);
  bool take_aux(Input& in);
  bool take_function(Input& in);
  bool take_module_aux(Input& in);
  bool take_expiry(Input& in, bool seconds);
  bool take_string(Input& in);
  bool take_packed(ObjectType type, Input& in);
  bool is_repeated_key();
  bool end_value();
  void end_key(bool stored);
  void fail(std::string what);

  Services& services_;
  const int databases_;
  const RdbLoadOptions options_;
  const types::rdb::StoreLimits limits_;
  const types::rdb::StoreLimits unpacked_limits_;  // of values that come element by element
  Filling filling_;
  std::string held_;   // of earlier feeds: the beginning of what could not be taken yet
  size_t wanted_ = 0;  // bytes behind held_ before which trying again is in vain
  types::rdb::RunningSum sum_;
  int version_ = 0;
  uint64_t function_bytes_ = 0;

  int db_ = 0;
  std::string key_;
  std::optional<int64_t> expire_ms_;  // of the key to come or at hand
  std::optional<uint64_t> idle_s_;
  std::optional<uint8_t> frequency_;
  std::optional<RdbPlace> place_;
  std::unique_ptr<RdbValue> value_;  // while it comes in pieces
  std::optional<SeenNames> seen_keys_;
};

void RdbLoader::Impl::fail(std::string what) {
  if (error.empty()) error = std::move(what);
}

bool RdbLoader::Impl::feed(std::string_view bytes) {
  taken = 0;
  if (!error.empty()) return false;
  if (bytes.size() < wanted_) {
    held_.append(bytes);
    wanted_ -= bytes.size();
    taken = bytes.size();
    return true;
  }
  wanted_ = 0;
  if (!held_.empty()) held_.append(bytes);
  const std::string_view data = held_.empty() ? bytes : held_;
  size_t at = 0;
  size_t summed = 0;
  while (state != State::kFinished && error.empty()) {
    if (state == State::kChecksum) {
      sum_.pass(data.substr(summed, at - summed));
      summed = at;
    }
    Input in(data.substr(at));
    if (!step(in)) {
      if (in.ran_out() && error.empty()) {
        wanted_ = in.missing();
        break;
      }
      const std::string where =
          value_ ? fmt::format(", in the value of the key {} of database {}", quoted_key(key_), db_)
                 : "";
      fail(fmt::format("damaged at byte {}{}", consumed, where));
      break;
    }
    const size_t stepped = data.size() - at - in.left();
    at += stepped;
    consumed += stepped;
    filling_.write_if_much();
    if (!filling_.status().ok()) fail("storage: " + filling_.status().message());
  }
  if (state != State::kFinished) sum_.pass(data.substr(summed, at - summed));
  taken = bytes.size() - (state == State::kFinished ? data.size() - at : 0);
  if (state == State::kFinished || !error.empty()) {
    held_ = {};
  } else if (held_.empty()) {
    held_.assign(data.substr(at));
  } else {
    held_.erase(0, at);
  }
  return error.empty();
}

bool RdbLoader::Impl::step(Input& in) {
  switch (state) {
    case State::kMagic:
      return take_magic(in);
    case State::kBetweenKeys:
      return take_opcode(in);
    case State::kValue:
      if (!value_->take(in)) return false;
      return !value_->complete() || end_value();
    case State::kChecksum:
      return take_checksum(in);
    case State::kFinished:
      break;
  }
  return false;
}

bool RdbLoader::Impl::take_magic(Input& in) {
  std::string_view magic, digits;
  if (!in.take(kMagic.size(), &magic) || !in.take(kVersionDigits, &digits)) return false;
  const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), version_);
  if (magic != kMagic || bad != std::errc() || end != digits.data() + digits.size()) {
    return fail("this is not an RDB file"), false;
  }
  if (version_ < 1 || version_ > kNewestVersion) {
    return fail(fmt::format("RDB version {} cannot be read, {} is the newest that can", version_,
                            kNewestVersion)),
           false;
  }
  state = State::kBetweenKeys;
  return true;
}

bool RdbLoader::Impl::take_opcode(Input& in) {
  uint8_t opcode;
  uint64_t number, other, third;
  if (!in.byte(&opcode)) return false;
  switch (opcode) {
    case types::rdb::kSlotInfo:
      return in.length(&number) && in.length(&other) && in.length(&third);
    case types::rdb::kFunction:
      return take_function(in);
    case types::rdb::kFunctionEarly:
      return fail("functions in the form of a release candidate of Redis 7.0 cannot be read"),
             false;
    case types::rdb::kModuleAux:
      return take_module_aux(in);
    case types::rdb::kIdle:
      if (!in.length(&number)) return false;
      idle_s_ = number;
      return true;
    case types::rdb::kFrequency:
      if (uint8_t count; in.byte(&count)) return frequency_ = count, true;
      return false;
    case types::rdb::kAux:
      return take_aux(in);
    case types::rdb::kResize:
      return in.length(&number) && in.length(&other);
    case types::rdb::kExpireMs:
    case types::rdb::kExpireSeconds:
      return take_expiry(in, opcode == types::rdb::kExpireSeconds);
    case types::rdb::kSelect:
      return take_select(in);
    case types::rdb::kEnd:
      state = version_ < kFirstWithChecksum ? State::kFinished : State::kChecksum;
      if (state == State::kFinished) filling_.finish();
      return true;
    default:
      return take_key(static_cast<ObjectType>(opcode), in);
  }
}

bool RdbLoader::Impl::take_aux(Input& in) {
  std::string name, value;
  if (!in.string(&name) || !in.string(&value)) return false;
  if (aux.size() < kAuxMax && name.size() + value.size() <= kAuxBytesMax) {
    aux[std::move(name)] = std::move(value);
  }
  return true;
}

// They stand in memory, here and later; the bound is that of FUNCTION RESTORE.
bool RdbLoader::Impl::take_function(Input& in) {
  std::string code;
  if (!in.string(&code)) return false;
  function_bytes_ += code.size();
  if (function_bytes_ > services_.bounds.command_bytes) {
    return fail("its libraries of functions take more than a sixteenth of 'maxmemory'"), false;
  }
  functions.push_back(std::move(code));
  return true;
}

bool RdbLoader::Impl::take_module_aux(Input& in) {
  uint64_t id;
  if (!in.length(&id)) return false;
  return fail("there are data of the module '" + module_name(id) + "', and no modules here"), false;
}

bool RdbLoader::Impl::take_expiry(Input& in, bool seconds) {
  uint32_t time_s;
  uint64_t time_ms;
  if (seconds) {
    if (!in.le32(&time_s)) return false;
    expire_ms_ = int64_t{static_cast<int32_t>(time_s)} * 1000;
  } else {
    if (!in.le64(&time_ms)) return false;
    expire_ms_ = static_cast<int64_t>(time_ms);
  }
  return true;
}

bool RdbLoader::Impl::take_select(Input& in) {
  uint64_t db;
  if (!in.length(&db)) return false;
  if (db >= static_cast<uint64_t>(databases_)) {
    return fail(fmt::format("it uses database {}; raise 'databases' to load it", db)), false;
  }
  db_ = static_cast<int>(db);
  return true;
}

bool RdbLoader::Impl::take_key(ObjectType type, Input& in) {
  const bool known = type <= ObjectType::kModule ||
                     (type >= ObjectType::kHashZipmap && type <= ObjectType::kHashListpackTimes);
  if (!known)
    return fail(fmt::format("damaged at byte {}: there is no type {}", consumed,
                            static_cast<int>(type))),
           false;
  if (!in.string(&key_)) return false;
  if (type == ObjectType::kModule || type == ObjectType::kModuleEarly) {
    uint64_t id;
    if (!in.length(&id)) return false;
    return fail(fmt::format("the value of the key {} of database {} is of the module '{}', and no "
                            "modules are here",
                            quoted_key(key_), db_, module_name(id))),
           false;
  }
  const int64_t now_ms = services_.store.now_ms();
  const bool kept = !expire_ms_ || options_.keep_expired || *expire_ms_ >= now_ms;
  place_.emplace(RdbPlace{.services = services_,
                          .filling = filling_,
                          .limits = unpacked_limits_,
                          .db = db_,
                          .key = key_,
                          // 0 stands for a key that does not expire.
                          .expire_ms = expire_ms_ ? std::max<int64_t>(1, *expire_ms_) : 0,
                          .kept = kept});
  if (kept) filling_.open(db_);
  if (kept && is_repeated_key()) {
    return fail(fmt::format("damaged at byte {}: the key {} of database {} stands there twice",
                            consumed, quoted_key(key_), db_)),
           false;
  }
  if (type == ObjectType::kString) return take_string(in);
  value_ = begin_value(type, *place_);
  if (!value_) return take_packed(type, in);
  filling_.begin_value();
  state = State::kValue;
  return true;
}

bool RdbLoader::Impl::take_string(Input& in) {
  uint64_t bytes;
  if (in.plain_string(&bytes)) {
    if (bytes > types::rdb::kStringBytesMax) return false;
    if (bytes > storage::kInlineStringMax) {
      filling_.begin_value();
      value_ = begin_long_string(bytes, *place_);
      state = State::kValue;
      return true;
    }
    std::string_view text;
    if (!in.take(bytes, &text)) return false;
    if (place_->kept) {
      types::store_string(filling_.keys(), db_, key_, nullptr, text, place_->expire_ms);
    }
    end_key(place_->kept);
    return true;
  }
  uint64_t packed;
  Input compressed = in;
  if (compressed.compressed_string(&packed, &bytes) && bytes > storage::kInlineStringMax) {
    in = compressed;
    filling_.begin_value();
    value_ = begin_compressed_string(packed, bytes, *place_);
    state = State::kValue;
    return true;
  }
  std::string text;
  if (!in.string(&text)) return false;
  if (place_->kept) {
    types::store_string(filling_.keys(), db_, key_, nullptr, text, place_->expire_ms);
  }
  end_key(place_->kept);
  return true;
}

bool RdbLoader::Impl::take_packed(ObjectType type, Input& in) {
  const auto object = types::rdb::decode_object(type, in);
  if (!object) return false;
  if (!place_->kept) return end_key(false), true;
  types::KeyWriter& keys = filling_.keys();
  types::rdb::store_object(keys, db_, key_, *object, limits_);
  types::Record record;
  if (place_->expire_ms != 0 && keys.peek(db_, key_, &record)) {
    storage::Metadata expiring = record.metadata();
    expiring.expire_ms = place_->expire_ms;
    keys.store(db_, key_, &record, expiring, types::Touch::kQuiet);
  }
  end_key(true);
  return true;
}

// Redis takes a file for damaged where a key comes twice. Looked for among so many keys as can be
// told apart without reads: to look up each of a larger number would take longer than the load.
bool RdbLoader::Impl::is_repeated_key() {
  if (keys_loaded >= kComparedKeysMax) return seen_keys_.reset(), false;
  if (!seen_keys_) seen_keys_.emplace(SeenNames::kSureNamesMax);
  types::Record record;
  return seen_keys_->note(key_, static_cast<uint64_t>(db_)) &&
         filling_.keys().peek(db_, key_, &record);
}

bool RdbLoader::Impl::end_value() {
  const bool stored = place_->kept && value_->store();
  if (stored && !value_->is_sound()) return false;
  end_key(stored);
  return true;
}

void RdbLoader::Impl::end_key(bool stored) {
  if (value_) {
    filling_.end_value();
    value_.reset();
  }
  const bool kept = place_->kept;
  if (stored && (idle_s_ || frequency_)) {
    types::AccessClock& access = services_.store.access();
    const storage::KeyspaceId keyspace = filling_.keys().keyspace(db_);
    const int64_t now_ms = services_.store.now_ms();
    if (idle_s_) access.set_idle_seconds(keyspace, key_, static_cast<int64_t>(*idle_s_), now_ms);
    if (frequency_) access.set_frequency(keyspace, key_, *frequency_, now_ms);
  }
  keys_loaded += stored ? 1 : 0;
  keys_expired += kept ? 0 : 1;
  expire_ms_.reset();
  idle_s_.reset();
  frequency_.reset();
  state = State::kBetweenKeys;
}

bool RdbLoader::Impl::take_checksum(Input& in) {
  uint64_t sum;
  if (!in.le64(&sum)) return false;
  // Zero: the file was written without one.
  if (sum != 0 && sum != sum_.value()) return fail("its checksum is wrong: it is damaged"), false;
  filling_.finish();
  state = State::kFinished;
  return true;
}

RdbLoader::RdbLoader(Services& services, int databases, RdbLoadOptions options)
    : impl_(std::make_unique<Impl>(services, databases, options)) {}

RdbLoader::~RdbLoader() = default;

bool RdbLoader::feed(std::string_view bytes) {
  return impl_->feed(bytes);
}

bool RdbLoader::finished() const {
  return impl_->state == Impl::State::kFinished && impl_->error.empty();
}

size_t RdbLoader::taken() const {
  return impl_->taken;
}

const std::string& RdbLoader::error() const {
  return impl_->error;
}

uint64_t RdbLoader::keys_loaded() const {
  return impl_->keys_loaded;
}

uint64_t RdbLoader::keys_expired() const {
  return impl_->keys_expired;
}

uint64_t RdbLoader::bytes_loaded() const {
  return impl_->consumed;
}

const std::map<std::string, std::string>& RdbLoader::aux() const {
  return impl_->aux;
}

const std::vector<std::string>& RdbLoader::functions() const {
  return impl_->functions;
}

void RdbLoader::replace(types::KeyWriter& keys) const {
  impl_->filling().replace(keys);
}

}  // namespace ingot::data
