// Parsing a cursor, MATCH and COUNT, and the test of an element against the pattern.
#include "src/commands/element_scan.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "src/contract/args.h"
#include "src/contract/glob.h"

namespace ingot::commands {

std::optional<uint64_t> parse_cursor(std::string_view given) {
  const std::string text(given);
  if (!text.empty() && std::isspace(static_cast<unsigned char>(text[0]))) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const uint64_t cursor = std::strtoull(text.c_str(), &end, 10);
  if (errno == ERANGE || end != text.c_str() + text.size()) return std::nullopt;
  return cursor;
}

bool ScanOptions::matches(std::string_view element) const {
  return pattern == "*" || contract::glob_matches(pattern, element);
}

std::optional<ScanOptions> read_scan_options(contract::ReplySink& reply, contract::Args args,
                                             ScanOf what) {
  ScanOptions scan;
  contract::ArgReader reader(args, what == ScanOf::kKeys ? 2 : 3);
  while (reader.more()) {
    if (reader.word("count", 1)) {
      const int64_t count = reader.integer();
      if (!reader.failed() && count < 1) reader.fail(contract::error::kSyntax);
      scan.count = static_cast<uint64_t>(count);
    } else if (reader.word("match", 1)) {
      scan.pattern = reader.text();
    } else if (what == ScanOf::kKeys && reader.word("type", 1)) {
      scan.type = reader.text();
    } else {
      reader.fail(contract::error::kSyntax);
    }
  }
  if (!reader.failed()) return scan;
  reply.error(reader.error());
  return std::nullopt;
}

}  // namespace ingot::commands
