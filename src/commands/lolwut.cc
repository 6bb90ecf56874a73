// LOLWUT: a picture, and the version.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "src/commands/chance.h"
#include "src/commands/families.h"

namespace ingot::commands {
namespace {

constexpr int64_t kPictureColumns = 66;
constexpr int64_t kPictureColumnsMax = 1000;
constexpr int64_t kPictureLines = 24;
constexpr int64_t kPictureLinesMax = 200;

// A row of cells that live and die by their neighbours: each line is the next generation of the one
// above it. These rules grow something worth looking at.
constexpr std::array<unsigned, 6> kCellRules = {30, 54, 60, 90, 110, 150};

std::string grown_picture(size_t columns, size_t rows) {
  const unsigned rule = kCellRules[dice()() % kCellRules.size()];
  std::vector<bool> cells(columns);
  for (size_t seeds = 1 + columns / 20; seeds > 0; --seeds) cells[dice()() % columns] = true;
  std::string picture;
  for (size_t row = 0; row < rows; ++row) {
    std::vector<bool> next(columns);
    for (size_t i = 0; i < columns; ++i) {
      picture += cells[i] ? "\u2588" : " ";
      const unsigned left = cells[(i + columns - 1) % columns];
      const unsigned right = cells[(i + 1) % columns];
      next[i] = ((rule >> (left * 4 + unsigned{cells[i]} * 2 + right)) & 1) != 0;
    }
    picture += '\n';
    cells = std::move(next);
  }
  return picture;
}

// Redis has pictures with arguments for its versions 5 and 6, and others do not look at them.
bool takes_arguments(int64_t version) {
  return version == 5 || version == 6;
}

void lolwut(ReadContext& ctx, Args args) {
  ArgReader reader(args);
  int64_t columns = kPictureColumns;
  int64_t rows = kPictureLines;
  if (reader.word("version", 1) && takes_arguments(reader.integer())) {
    if (reader.more()) columns = reader.integer();
    if (reader.more()) rows = reader.integer();
  }
  if (reader.failed()) return ctx.reply.error(reader.error());
  const auto within = [](int64_t value, int64_t max) {
    return static_cast<size_t>(std::clamp<int64_t>(value, 1, max));
  };
  ctx.reply.verbatim(
      "txt", grown_picture(within(columns, kPictureColumnsMax), within(rows, kPictureLinesMax)) +
                 "\nIngot " INGOT_VERSION ", cast anew each time.\nRedis ver. 7.0.15\n");
}

constexpr CommandRow kTable[] = {
    {.name = "lolwut",
     .arity = -1,
     .flags = flag::kReadonly | flag::kFast,
     .since = "5.0.0",
     .complexity = contract::kNoComplexity,
     .summary = "A picture, and the version",
     .arguments = "version:integer=VERSION?",
     .handler = lolwut},
};
constexpr auto kRows = contract::family(kServerFamily, kTable);

}  // namespace

std::span<const CommandRow> lolwut_rows() {
  return kRows;
}

}  // namespace ingot::commands
