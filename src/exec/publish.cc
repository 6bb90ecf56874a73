// Loading libraries of functions, and the writer's change that makes a load the data.
#include "src/exec/publish.h"

#include <utility>

#include "src/exec/writer.h"
#include "src/script/stored_libraries.h"

namespace ingot::exec {

using LibrariesPtr = std::shared_ptr<const script::Libraries>;

// Null, and the reason.
static LibrariesPtr load_libraries(script::Scripts& scripts, const std::vector<std::string>& codes,
                                   std::string* error) {
  auto libraries = std::make_shared<script::Libraries>();
  for (const std::string& code : codes) {
    const std::shared_ptr<script::Library> library = script::read_library(code, error);
    if (library != nullptr && libraries->all().contains(library->name)) {
      *error = "Library '" + library->name + "' already exists";
    } else if (library != nullptr) {
      *error = scripts.load(library.get());
    }
    if (!error->empty() || !libraries->put(library, error)) return nullptr;
  }
  return libraries;
}

std::string publish(Services& services, Writer& writer, Publication publication) {
  std::string error;
  LibrariesPtr libraries =
      load_libraries(services.scripts, publication.loader->functions(), &error);
  if (libraries == nullptr) return "a library of functions cannot be loaded: " + error;
  writer.change(
      [&scripts = services.scripts, libraries = std::move(libraries),
       loader = std::move(publication.loader),
       also = std::move(publication.also)](types::KeyWriter& keys) {
        loader->replace(keys);
        script::change_stored(keys, *scripts.libraries(), libraries);
        if (also) also(keys);
      },
      std::move(publication.done));
  return {};
}

}  // namespace ingot::exec
