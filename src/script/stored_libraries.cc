// Loading all libraries when the server starts.
#include "src/script/stored_libraries.h"

#include "src/metrics/log.h"
#include "storage/codec.h"

namespace ingot::script {

std::string library_key(std::string_view name) {
  return storage::named_key("library:" + std::string(name));
}

void change_stored(types::KeyWriter& keys, const Libraries& before,
                   const std::shared_ptr<const Libraries>& after) {
  storage::Overlay& overlay = keys.overlay();
  for (const auto& [name, library] : before.all()) {
    if (!after->all().contains(name)) {
      overlay.remove(storage::Space::kSystem, library_key(name));
    }
  }
  for (const auto& [name, library] : after->all()) {
    const auto old = before.all().find(name);
    if (old != before.all().end() && old->second == library) continue;
    overlay.put(storage::Space::kSystem, library_key(name), library->code);
  }
  keys.effects().libraries = after;
}

storage::Status load_stored(storage::Engine& engine, Scripts& scripts) {
  const std::string prefix = library_key({});
  const auto cursor = engine.new_cursor(storage::Space::kSystem, {});
  auto libraries = scripts.libraries();
  for (cursor->seek(prefix); cursor->valid() && cursor->key().starts_with(prefix); cursor->next()) {
    std::string error;
    std::shared_ptr<Library> library = read_library(cursor->value(), &error);
    if (library != nullptr) error = scripts.load(library.get());
    if (error.empty()) {
      if (auto with = libraries->with(library, &error)) libraries = with;
    }
    if (!error.empty()) {
      metrics::log::warning("The library of functions '{}' is not there: {}",
                            cursor->key().substr(prefix.size()), error);
    }
  }
  scripts.publish(std::move(libraries));
  return cursor->status();
}

}  // namespace ingot::script
