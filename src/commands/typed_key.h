// How the commands that work on one type of value find it under a key.
#pragma once

#include <string_view>
#include <utility>

#include "src/contract/args.h"
#include "src/contract/context.h"
#include "src/types/collection.h"

namespace ingot::commands {

// A reader or a writer of the value of a key, and the record that it refers to. An absent key is an
// empty value. False when the key holds another type, which has been answered.
template <typename Value>
class Opened {
 public:
  // `make` makes the value of a record, which may be that of no key.
  template <typename Context, typename Make>
  Opened(Context& ctx, std::string_view key, storage::ValueType type, const Make& make)
      : type_(type), found_(find(ctx, key, type)), value_(make(std::as_const(record_))) {}
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  explicit operator bool() const { return found_ != types::Found::kWrongType; }
  bool exists() const { return found_ == types::Found::kYes; }
  const types::Record& record() const { return record_; }
  storage::ValueType type() const { return type_; }  // that was expected

  Value& operator*() { return value_; }
  const Value& operator*() const { return value_; }
  Value* operator->() { return &value_; }
  const Value* operator->() const { return &value_; }

 private:
  template <typename Context>
  types::Found find(Context& ctx, std::string_view key, storage::ValueType type) {
    const types::Found found = types::find_as(ctx.keys, ctx.db, key, type, &record_);
    if (found == types::Found::kYes) return found;
    record_ = {};  // it may be of another type, or have expired
    if (found == types::Found::kWrongType) ctx.reply.error(contract::error::kWrongType);
    return found;
  }

  types::Record record_;
  const storage::ValueType type_;
  types::Found found_;
  Value value_;
};

template <typename Context, typename Make>
Opened(Context& ctx, std::string_view key, storage::ValueType type, const Make& make)
    -> Opened<decltype(make(std::declval<const types::Record&>()))>;

// As the writers take it: null for a key that is not there.
inline const types::Record* before(const types::Record& record) {
  return record.exists() ? &record : nullptr;
}

}  // namespace ingot::commands
