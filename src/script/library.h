// Libraries of functions, as FUNCTION LOAD takes them, and all of them at one time. Immutable once
// they are shared; any thread.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::script {

struct Library;

struct Function {
  std::string name;
  std::optional<std::string> description;
  uint32_t flags = 0;  // of namespace flag
};

struct Library {
  std::string name;
  std::string code;
  std::vector<Function> functions;  // empty until the code has run: LuaHost::load()
};

class Libraries {
 public:
  using Map = std::map<std::string, std::shared_ptr<const Library>, std::less<>>;

  struct Found {
    std::shared_ptr<const Library> library;
    const Function* function = nullptr;  // null: there is none
  };
  Found find(std::string_view function) const;
  const Map& all() const { return by_name_; }
  size_t function_count() const { return by_function_.size(); }
  uint64_t bytes() const { return bytes_; }  // in memory, about

  // These with `library` in addition, or in place of the one of its name. Null, with Redis'
  // sentence, when another has one of its functions.
  std::shared_ptr<const Libraries> with(std::shared_ptr<const Library> library,
                                        std::string* error) const;
  std::shared_ptr<const Libraries> without(std::string_view name) const;
  // The same here, of one that nobody else has yet. False: it is good for nothing any more.
  [[nodiscard]] bool put(std::shared_ptr<const Library> library, std::string* error);

 private:
  // Functions are called in any case of letters.
  struct InAnyCase {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const;
  };
  struct Place {
    const Library* library;
    size_t index;
  };
  static uint64_t bytes_of(const Library& library);
  void remove(std::string_view name);

  Map by_name_;
  std::map<std::string, Place, InAnyCase> by_function_;
  uint64_t bytes_ = 0;
};

// The library whose code this is, its functions still unknown; or Redis' sentence.
std::shared_ptr<Library> read_library(std::string_view code, std::string* error);

// Letters, digits and underscores.
bool is_function_name(std::string_view name);
inline constexpr std::string_view kBadFunctionName =
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one "
    "character long";

// What stands behind the first line of the code, which keeps its place: lines are told by number.
std::string_view code_behind_shebang(std::string_view code);

}  // namespace ingot::script
