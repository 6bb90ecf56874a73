// What a string is on disk. Up to storage::kInlineStringMax bytes stand in the metadata record;
// more are cut into chunks under a collection id, in place of which holes read as zero bytes. Once
// chunked, a string stays so until it is overwritten: changing a part of it writes only the chunks
// that it touches. They have storage::kStringChunkBytes, or 1 KB where the string is changed in
// small parts (a bitmap, a log that is appended to): such a change is written with all of its
// chunk.
//
// One thread at a time. Failed reads latch in the storage::Reader and read as zero bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/types/built_value.h"
#include "src/types/keyspace.h"

namespace ingot::types {

inline bool is_string(const Record& record) {
  return record.type() == storage::ValueType::kString;
}
uint64_t string_length(const Record& record);

// Where a chunked string stands: chunk n has the bytes from n * `bytes` on.
struct StringChunks {
  storage::CollectionId id = 0;
  uint64_t bytes = storage::kStringChunkBytes;

  std::string key_at(uint64_t offset) const {
    return storage::chunk_key(id, static_cast<uint32_t>(offset / bytes));
  }
  // The bytes of a chunk's record; false when it is none.
  [[nodiscard]] bool decode(std::string_view record, std::string_view* chunk) const;
};
// Of a record that has a collection.
StringChunks chunks_of(const Record& record);

// As OBJECT ENCODING names it.
std::string_view string_encoding(const Record& record);

// Appends bytes [offset, offset + bytes), which must lie within the string, to `out`.
void read_string(storage::Reader& data, const Record& record, uint64_t offset, uint64_t bytes,
                 std::string* out);
void read_string(storage::Reader& data, const StringChunks& chunks, uint64_t offset, uint64_t bytes,
                 std::string* out);

// Sets the whole string. `before` as for KeyWriter::store; expire_ms 0: for ever; `text`: OBJECT
// ENCODING does not call it an integer whatever it reads like.
void store_string(KeyWriter& keys, int db, std::string_view key, const Record* before,
                  std::string_view value, int64_t expire_ms, bool text = false);
// Writes `bytes` over the string at `offset`, which may lie behind its end; null `before` is an
// empty string. Keeps the expiry.
void write_string(KeyWriter& keys, int db, std::string_view key, const Record* before,
                  uint64_t offset, std::string_view bytes);

// Makes OBJECT ENCODING call the string "raw", as Redis does when a command that could have changed
// it in place left it as it is. Its contents count as untouched.
void make_raw(KeyWriter& keys, int db, std::string_view key, const Record& record);

// Writes a string's chunks under a new id, which the caller stores a record for.
storage::Metadata::Collection add_chunked_string(KeyWriter& keys, std::string_view value);

// --- chunks, for those that move long strings piece by piece

// A chunk of a string that is made as a whole.
void put_chunk(const PutElement& put, uint32_t number, std::string_view bytes);
// The value of a chunk's record: replaces *out.
void encode_chunk(std::string_view bytes, std::string* out);

// Reads the chunks of one string with a cursor over its collection.
class ChunkReader {
 public:
  ChunkReader(std::unique_ptr<storage::Cursor> cursor, const StringChunks& chunks)
      : cursor_(std::move(cursor)), chunks_(chunks) {}

  // Copies the bytes from `offset` on over `to`, except where there is a hole. True when it copied
  // anything.
  bool read(uint64_t offset, std::span<char> to);
  const storage::Status& status() const { return status_; }  // of everything so far

 private:
  std::unique_ptr<storage::Cursor> cursor_;
  const StringChunks chunks_;
  storage::Status status_;
};

}  // namespace ingot::types
