// Walking each type and all databases for the checksums of DEBUG DIGEST, with SHA-1 of OpenSSL.
#include "src/types/digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "src/types/hash_value.h"
#include "src/types/list_value.h"
#include "src/types/set_value.h"
#include "src/types/sorted_set_value.h"
#include "src/types/stream_value.h"
#include "src/types/string_value.h"

namespace ingot::types {

using storage::Space;
using storage::Status;
using storage::ValueType;

namespace {

constexpr uint64_t kPieceBytes =
    4 * storage::kStringChunkBytes;  // of a long string, held at a time
constexpr std::string_view kExpires = "!!expire!!";

// Redis' number of a type.
uint32_t redis_number(ValueType type) {
  switch (type) {
    case ValueType::kString:
      return 0;
    case ValueType::kList:
      return 1;
    case ValueType::kSet:
      return 2;
    case ValueType::kSortedSet:
      return 3;
    case ValueType::kHash:
      return 4;
    case ValueType::kStream:
      return 6;
  }
  return 0;
}

class Sha1 {
 public:
  Sha1() { restart(); }

  void update(std::string_view bytes) {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  // The hash of what was given since the last one.
  Digest finish() {
    Digest hash;
    EVP_DigestFinal_ex(context_.get(), hash.data(), nullptr);
    restart();
    return hash;
  }
  Digest of(std::string_view bytes) {
    update(bytes);
    return finish();
  }

 private:
  void restart() { EVP_DigestInit_ex(context_.get(), EVP_sha1(), nullptr); }

  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free};
};

std::string_view bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

void xor_in(Digest* digest, const Digest& hash) {
  for (size_t i = 0; i < hash.size(); ++i) (*digest)[i] ^= hash[i];
}

void mix_in(Digest* digest, const Digest& hash, Sha1& sha) {
  xor_in(digest, hash);
  *digest = sha.of(bytes_of(*digest));
}

void mix_in(Digest* digest, uint32_t number, Sha1& sha) {
  std::string bytes;
  storage::append_be32(&bytes, number);
  mix_in(digest, sha.of(bytes), sha);
}

Digest hash_of_string(storage::Reader& data, const Record& record, Sha1& sha) {
  const uint64_t length = string_length(record);
  std::string piece;
  for (uint64_t offset = 0; offset < length && !data.failed(); offset += kPieceBytes) {
    piece.clear();
    read_string(data, record, offset, std::min(kPieceBytes, length - offset), &piece);
    sha.update(piece);
  }
  return sha.finish();
}

void mix_in_hash(Digest* digest, storage::Reader& data, const Record& record, Sha1& sha) {
  HashReader hash(data, record, /*now_ms=*/0);
  hash.walk([&](std::string_view field, const FieldValue& value) {
    Digest pair{};
    mix_in(&pair, sha.of(field), sha);
    mix_in(&pair, sha.of(value.bytes), sha);
    xor_in(digest, sha.of(bytes_of(pair)));
    return true;
  });
}

void mix_in_list(Digest* digest, storage::Reader& data, const Record& record, Sha1& sha) {
  ListReader(data, record).walk(0, [&](std::string_view element) {
    mix_in(digest, sha.of(element), sha);
    return true;
  });
}

void mix_in_sorted_set(Digest* digest, storage::Reader& data, const Record& record, Sha1& sha) {
  SortedSetReader(data, record).walk([&](std::string_view member, double score) {
    Digest pair{};
    mix_in(&pair, sha.of(member), sha);
    mix_in(&pair, sha.of(score_text(score)), sha);
    xor_in(digest, sha.of(bytes_of(pair)));
    return true;
  });
}

void xor_in_set(Digest* digest, storage::Reader& data, const Record& record, Sha1& sha) {
  SetReader(data, record).walk([&](std::string_view member) {
    xor_in(digest, sha.of(member));
    return true;
  });
}

void mix_in_stream(Digest* digest, storage::Reader& data, const Record& record, Sha1& sha) {
  StreamReader(data, record)
      .walk(kStreamIdMin, kStreamIdMax, false, [&](StreamId id, const StreamFields& fields) {
        mix_in(digest, sha.of(fmt::format("{}.{}", id.ms, id.seq)), sha);
        std::string_view item;
        for (PackedReader items = fields.items(); items.next(&item);) {
          mix_in(digest, sha.of(item), sha);
        }
        return true;
      });
}

void mix_in_value(Digest* digest, storage::Reader& data, const Record& record, Sha1& sha) {
  mix_in(digest, redis_number(record.type()), sha);
  switch (record.type()) {
    case ValueType::kString:
      mix_in(digest, hash_of_string(data, record, sha), sha);
      break;
    case ValueType::kList:
      mix_in_list(digest, data, record, sha);
      break;
    case ValueType::kSet:
      xor_in_set(digest, data, record, sha);
      break;
    case ValueType::kSortedSet:
      mix_in_sorted_set(digest, data, record, sha);
      break;
    case ValueType::kHash:
      mix_in_hash(digest, data, record, sha);
      break;
    case ValueType::kStream:
      mix_in_stream(digest, data, record, sha);
      break;
  }
  if (record.expire_ms() != 0) xor_in(digest, sha.of(kExpires));
}

void mix_in_database(Digest* digest, storage::Reader& data, uint32_t number,
                     storage::KeyspaceId keyspace, Sha1& sha) {
  const std::string begin = storage::meta_key(keyspace, {});
  auto cursor = data.cursor(Space::kMeta, begin, storage::meta_key_end(keyspace));
  bool empty = true;
  Record record;
  for (cursor->seek(begin); cursor->valid() && !data.failed(); cursor->next()) {
    // Only databases that have keys count.
    if (std::exchange(empty, false)) mix_in(digest, number, sha);
    if (!record.assign(std::string(cursor->value()))) {
      return data.latch_error(Status(Status::Code::kCorruption, "unreadable metadata record"));
    }
    Digest pair{};
    mix_in(&pair, sha.of(storage::user_key_of(cursor->key())), sha);
    mix_in_value(&pair, data, record, sha);
    xor_in(digest, sha.of(bytes_of(pair)));
  }
  data.check(*cursor);
}

}  // namespace

Digest dataset_digest(storage::Reader& data, const DatabaseMap& databases,
                      const std::function<bool(int db)>& has_keys) {
  Sha1 sha;
  Digest digest{};
  for (size_t db = 0; db < databases.size(); ++db) {
    // On LevelDB a seek into an empty one passes over everything that was ever removed near it.
    if (!has_keys(static_cast<int>(db))) continue;
    mix_in_database(&digest, data, static_cast<uint32_t>(db), databases[db], sha);
  }
  return digest;
}

Digest value_digest(storage::Reader& data, const Record& record) {
  Sha1 sha;
  Digest digest{};
  mix_in_value(&digest, data, record, sha);
  return digest;
}

std::string digest_text(const Digest& digest) {
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace ingot::types
