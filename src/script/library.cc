// Reading a library's first line, and sets of libraries in which every function has one home.
#include "src/script/library.h"

#include <algorithm>

#include "src/contract/args.h"
#include "src/script/shebang.h"

namespace ingot::script {

bool Libraries::InAnyCase::operator()(std::string_view a, std::string_view b) const {
  return std::ranges::lexicographical_compare(a, b, {}, contract::to_lower, contract::to_lower);
}

Libraries::Found Libraries::find(std::string_view function) const {
  const auto found = by_function_.find(function);
  if (found == by_function_.end()) return {};
  const Place& place = found->second;
  return {.library = by_name_.find(place.library->name)->second,
          .function = &place.library->functions[place.index]};
}

std::shared_ptr<const Libraries> Libraries::with(std::shared_ptr<const Library> library,
                                                 std::string* error) const {
  auto made = std::make_shared<Libraries>(*this);
  return made->put(std::move(library), error) ? made : nullptr;
}

bool Libraries::put(std::shared_ptr<const Library> library, std::string* error) {
  remove(library->name);
  for (size_t i = 0; i < library->functions.size(); ++i) {
    const std::string& name = library->functions[i].name;
    if (!by_function_.emplace(name, Place{library.get(), i}).second) {
      *error = "ERR Function " + name + " already exists";
      return false;
    }
  }
  bytes_ += bytes_of(*library);
  by_name_.emplace(library->name, std::move(library));
  return true;
}

std::shared_ptr<const Libraries> Libraries::without(std::string_view name) const {
  auto made = std::make_shared<Libraries>(*this);
  made->remove(name);
  return made;
}

void Libraries::remove(std::string_view name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return;
  for (const Function& function : found->second->functions) by_function_.erase(function.name);
  bytes_ -= bytes_of(*found->second);
  by_name_.erase(found);
}

uint64_t Libraries::bytes_of(const Library& library) {
  constexpr uint64_t kLibraryBytes = 400;  // beside its code
  constexpr uint64_t kFunctionBytes = 200;
  uint64_t bytes = kLibraryBytes + library.code.size();
  for (const Function& function : library.functions) {
    bytes += kFunctionBytes + function.name.size() + function.description.value_or("").size();
  }
  return bytes;
}

bool is_function_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string_view code_behind_shebang(std::string_view code) {
  return code.substr(std::min(code.find('\n'), code.size()));
}

std::shared_ptr<Library> read_library(std::string_view code, std::string* error) {
  const auto fail = [error](std::string text) {
    *error = "ERR " + std::move(text);
    return nullptr;
  };
  if (!code.starts_with("#!")) return fail("Missing library metadata");
  const auto shebang = read_shebang(code);
  if (!shebang) return fail("Invalid library metadata");
  auto library = std::make_shared<Library>();
  library->code = code;
  bool named = false;
  for (const std::string& option : shebang->options) {
    if (!option.starts_with("name=")) {
      return fail("Invalid metadata value given: " + option);
    }
    if (named) return fail("Invalid metadata value, name argument was given multiple times");
    named = true;
    library->name = option.substr(5);
  }
  if (!named) return fail("Library name was not given");
  if (!is_function_name(library->name)) return fail(std::string(kBadFunctionName));
  const std::string engine = shebang->engine.substr(2);
  if (!contract::equals_ignore_case(engine, "lua")) {
    return fail("Engine '" + engine + "' not found");
  }
  return library;
}

}  // namespace ingot::script
