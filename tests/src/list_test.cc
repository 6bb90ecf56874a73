// Lists against a plain deque, on every engine: every change in small, dense and gapped form,
// across commits.
#include "src/types/list_value.h"

#include <catch2/catch.hpp>
#include <deque>
#include <random>

#include "src/types/list_builder.h"
#include "src/types/list_records.h"
#include "tests/src/typed_store.h"

namespace ingot::types {
namespace {

// One key's list.
class OneList : public TypedStore {
 public:
  OneList(const std::string& engine, uint64_t inline_max)
      : TypedStore(engine), inline_max_(inline_max) {}

  template <typename Change>
  void change(const Change& change) {
    TypedStore::change<ListWriter>(inline_max_, change);
    REQUIRE_FALSE(overlay().failed());
  }
  void check(const std::deque<std::string>& model, std::mt19937_64& random) {
    REQUIRE(exists() == !model.empty());
    if (model.empty()) return;
    const Record found = record();
    ListReader list(overlay(), found);
    REQUIRE(list.length() == model.size());
    const size_t from = random() % model.size();
    std::deque<std::string> read;
    list.walk(from, [&](std::string_view element) {
      read.emplace_back(element);
      return true;
    });
    REQUIRE(read == std::deque<std::string>(model.begin() + static_cast<long>(from), model.end()));
    read.clear();
    list.walk_back([&](std::string_view element) {
      read.emplace_front(element);
      return true;
    });
    REQUIRE(read == model);
    const size_t index = random() % model.size();
    std::string element;
    REQUIRE(list.get(index, &element));
    REQUIRE(element == model[index]);
    REQUIRE_FALSE(overlay().failed());
  }

 private:
  const uint64_t inline_max_;
};

// The first `count` equal ones go, from the back when negative.
uint64_t remove(std::deque<std::string>& model, int64_t count, const std::string& element) {
  uint64_t removed = 0;
  uint64_t left = count == 0 ? model.size() : static_cast<uint64_t>(std::abs(count));
  if (count < 0) std::ranges::reverse(model);
  std::deque<std::string> kept;
  for (const std::string& each : model) {
    if (each == element && left > 0) {
      --left;
      ++removed;
    } else {
      kept.push_back(each);
    }
  }
  model = kept;
  if (count < 0) std::ranges::reverse(model);
  return removed;
}

}  // namespace

TEST_CASE("a list does what a deque does, in every form", "[list]") {
  const auto [inline_max, insertions] =
      GENERATE(table<uint64_t, int>({{0, 0}, {0, 3}, {60, 2}, {100000, 3}}));
  const uint64_t seed = GENERATE(1, 2);
  INFO("inline_max " << inline_max << " insertions " << insertions << " seed " << seed);
  std::mt19937_64 random(seed);
  OneList data(each_engine(), inline_max);
  if (seed == 2) data.use_cache();
  std::deque<std::string> model;
  for (size_t step = 0; step < data.steps(3000); ++step) {
    const std::string element = "e" + std::to_string(random() % 40);
    const ListEnd end = random() % 2 == 0 ? ListEnd::kLeft : ListEnd::kRight;
    const int kind = static_cast<int>(random() % 12);
    data.change([&](ListWriter& list) {
      if (kind < 5) {
        list.push(end, element);
        end == ListEnd::kLeft ? model.push_front(element) : model.push_back(element);
      } else if (kind < 7 && !model.empty()) {
        std::string taken;
        list.pop(end, &taken);
        REQUIRE(taken == (end == ListEnd::kLeft ? model.front() : model.back()));
        end == ListEnd::kLeft ? model.pop_front() : model.pop_back();
      } else if (kind == 7 && !model.empty()) {
        const size_t index = random() % model.size();
        list.set(index, element);
        model[index] = element;
      } else if (kind < 8 + insertions) {
        const std::string pivot = "e" + std::to_string(random() % 40);
        const bool before = random() % 2 == 0;
        auto at = std::ranges::find(model, pivot);
        REQUIRE(list.insert(before, pivot, element) == (at != model.end()));
        if (at != model.end()) model.insert(before ? at : at + 1, element);
      } else if (kind == 11 && insertions > 0 && random() % 8 == 0) {
        const int64_t count = static_cast<int64_t>(random() % 5) - 2;
        REQUIRE(list.remove(count, element) == remove(model, count, element));
      }
    });
    if (step % 7 == 0) data.check(model, random);
    if (step % 50 == 0) data.commit();
    if (step % 300 == 299) data.reopen();
  }
  data.check(model, random);
}

TEST_CASE("a list is a queue at either end, over many stretches that are read ahead", "[list]") {
  OneList data(each_engine(), 0);
  data.use_cache();
  const ListEnd in = GENERATE(ListEnd::kLeft, ListEnd::kRight);
  const ListEnd out = GENERATE(ListEnd::kLeft, ListEnd::kRight);
  const size_t huge = GENERATE(0, 5000);  // no cache takes such elements
  std::mt19937_64 random(1);
  std::deque<std::string> model;
  for (int round = 0; round < 20; ++round) {
    data.change([&](ListWriter& list) {
      for (uint64_t pushes = random() % 120; pushes > 0; --pushes) {
        const std::string element =
            std::to_string(random()) + std::string(random() % 7 == 0 ? huge : 0, 'x');
        list.push(in, element);
        in == ListEnd::kLeft ? model.push_front(element) : model.push_back(element);
      }
    });
    if (random() % 3 != 0) data.commit();
    data.change([&](ListWriter& list) {
      for (uint64_t pops = std::min<uint64_t>(random() % 120, model.size()); pops > 0; --pops) {
        std::string taken;
        list.pop(out, &taken);
        REQUIRE(taken == (out == ListEnd::kLeft ? model.front() : model.back()));
        out == ListEnd::kLeft ? model.pop_front() : model.pop_back();
      }
    });
    if (random() % 3 != 0) data.commit();
  }
  data.check(model, random);
}

namespace {

// Each element stands in one record, and no record has none.
void check_records(OneList& data, size_t length) {
  const Record found = data.record();
  if (!found.collection()) return;
  const ListBounds bounds = ListReader(data.overlay(), found).bounds();
  const std::string begin = storage::collection_begin(found.collection()->id);
  size_t elements = 0;
  for (const auto& [key, stored] : data.records_of(storage::Space::kData)) {
    if (!key.starts_with(begin)) continue;
    ListElements record;
    REQUIRE(read_elements(label_of(key), stored, &record));
    REQUIRE(elements_in(stored) == record.size);
    REQUIRE((!record.is_node() || stored.size() <= kNodeBytes));
    const size_t before = elements;
    for (size_t i = 0; i < record.size; ++i) {
      elements += record.label(i) >= bounds.first && record.label(i) <= bounds.last ? 1 : 0;
    }
    REQUIRE(elements > before);
  }
  REQUIRE(elements == length);
}

}  // namespace

TEST_CASE("elements that share records are a deque wherever they are pushed and popped", "[list]") {
  const uint64_t seed = GENERATE(range(1, 7));
  const bool built = GENERATE(true, false);
  INFO("seed " << seed << " built " << built);
  std::mt19937_64 random(seed);
  OneList data(each_engine(), 0);
  if (seed % 2 == 0) data.use_cache();
  std::deque<std::string> model;
  const auto make = [&] {
    static constexpr size_t kSizes[] = {0, 3, 90, 90, 600, 1500, 3000};
    return std::to_string(random() % 50) + std::string(kSizes[random() % (seed < 4 ? 4 : 7)], 'x');
  };
  const auto push = [&](ListWriter& list, ListEnd end) {
    const std::string element = make();
    list.push(end, element);
    end == ListEnd::kLeft ? model.push_front(element) : model.push_back(element);
  };
  if (built) {
    data.build<ListBuilder>(uint64_t{0}, [&](ListBuilder& list) {
      for (uint64_t i = 1 + random() % 100; i > 0; --i) {
        model.push_back(make());
        list.add(model.back());
      }
    });
  }
  for (size_t step = 0; step < data.steps(2400); ++step) {
    const bool growing = step / 60 % 2 == 0;
    const ListEnd end = random() % 8 < seed ? ListEnd::kLeft : ListEnd::kRight;
    const auto old = model;
    const auto several = [&] {
      data.change([&](ListWriter& list) {
        for (uint64_t left = 1 + random() % 20; left > 0; --left) {
          if (model.empty() || random() % 8 < (growing ? 6 : 1)) {
            push(list, end);
          } else if (random() % 6 == 0) {
            const size_t index = random() % model.size();
            model[index] = make();
            list.set(index, model[index]);
          } else if (random() % 4 == 0) {
            end == ListEnd::kLeft ? model.pop_front() : model.pop_back();
            list.pop(end, nullptr);
          } else {
            std::string taken;
            const std::string expected = end == ListEnd::kLeft ? model.front() : model.back();
            end == ListEnd::kLeft ? model.pop_front() : model.pop_back();
            list.pop(end, &taken);
            REQUIRE(taken == expected);
          }
        }
      });
    };
    if (random() % 6 == 0) {
      data.undone(several);
      model = old;
    } else {
      several();
    }
    if (random() % 4 == 0) data.check(model, random);
    if (!model.empty() && step % 5 == 0) check_records(data, model.size());
    if (random() % 3 == 0) data.commit();
    if (step % 300 == 299) data.reopen();
  }
  data.check(model, random);
  // The first change in the middle gives each a record of its own.
  while (model.size() < 40) data.change([&](ListWriter& list) { push(list, ListEnd::kLeft); });
  data.commit();
  data.change([&](ListWriter& list) { REQUIRE(list.insert(true, model[20], "new")); });
  model.insert(std::ranges::find(model, model[20]), "new");
  data.check(model, random);
  check_records(data, model.size());
}

TEST_CASE("what one group pushes shares records, and what comes alone does not", "[list]") {
  OneList data(each_engine(), 0);
  const ListEnd end = GENERATE(ListEnd::kLeft, ListEnd::kRight);
  const auto push = [&](int count, const std::string& element) {
    data.change([&](ListWriter& list) {
      for (int i = 0; i < count; ++i) list.push(end, element);
    });
    data.commit();
  };
  push(160, "element");
  // The first block has what the list was when it became large.
  CHECK(data.records_in(storage::Space::kData) <= 11 + 16);
  const size_t before = data.records_in(storage::Space::kData);
  for (int i = 0; i < 32; ++i) push(1, "element");
  CHECK(data.records_in(storage::Space::kData) == before + 32);
  push(32, std::string(kNodeBytes, 'x'));
  CHECK(data.records_in(storage::Space::kData) == before + 64);
}

TEST_CASE("a list of before elements shared records is read and changed", "[list]") {
  OneList data(each_engine(), 0);
  std::mt19937_64 random(1);
  std::deque<std::string> model;
  data.change([](ListWriter& list) { list.push(ListEnd::kRight, "0"); });
  storage::Metadata old = data.record().metadata();
  data.overlay().remove(storage::Space::kData,
                        ListKey(old.collection->id, node_label(ListEnd::kLeft, kFirstLabel)));
  old.collection->count = 40;
  std::string payload;
  storage::append_le64(&payload, kFirstLabel);
  storage::append_le64(&payload, kFirstLabel + 39 * kListStride);
  payload.push_back('\0');
  old.payload = payload;
  for (uint64_t i = 0; i < 40; ++i) {
    model.push_back(std::to_string(i));
    data.overlay().put(storage::Space::kData,
                       ListKey(old.collection->id, kFirstLabel + i * kListStride),
                       std::string(1, '\0').append(model.back()));
  }
  data.replace_record(old);
  data.commit();
  data.check(model, random);
  data.change([&](ListWriter& list) {
    for (int i = 0; i < 30; ++i) {
      std::string taken;
      list.pop(ListEnd::kLeft, &taken);
      REQUIRE(taken == model.front());
      model.pop_front();
      list.push(ListEnd::kRight, taken);
      model.push_back(taken);
    }
  });
  data.check(model, random);
  check_records(data, model.size());
}

TEST_CASE("insertions at one place find room for ever", "[list]") {
  std::mt19937_64 random(1);
  OneList data(each_engine(), 0);
  std::deque<std::string> model = {"a", "b"};
  data.change([&](ListWriter& list) {
    for (const std::string& element : model) list.push(ListEnd::kRight, element);
  });
  const bool before = GENERATE(true, false);
  for (size_t i = 0; i < data.steps(2000); ++i) {
    const std::string element = std::to_string(i);
    data.change(
        [&](ListWriter& list) { REQUIRE(list.insert(before, before ? "b" : "a", element)); });
    model.insert(before ? model.end() - 1 : model.begin() + 1, element);
    if (i % 100 == 0) data.commit();
  }
  data.check(model, random);
}

// They are moved to before the first one, while the node that counts them is parted.
TEST_CASE("insertions near the front leave the order's counts right", "[list]") {
  const unsigned seed = GENERATE(range(1u, 7u));
  std::mt19937_64 random(seed);
  OneList data(each_engine(), 0);
  if (seed > (data.on_disk() ? 1 : data.steps(8))) return;
  std::deque<std::string> model;
  data.change([&](ListWriter& list) {
    for (; model.size() < 1000; list.push(ListEnd::kRight, model.back())) {
      model.push_back("e" + std::to_string(model.size()));
    }
  });
  const auto insert_behind = [&](ListWriter& list, size_t index) {
    const std::string element = "m" + std::to_string(model.size());
    REQUIRE(list.insert(/*before=*/false, model[index], element));
    model.insert(model.begin() + static_cast<long>(index) + 1, element);
  };
  // Halves every gap between the first two, the last times only some.
  for (size_t round = 0, last = 1; round < 12; ++round) {
    const uint64_t percent = round < 10 ? 100 : random() % 100;
    data.change([&](ListWriter& list) {
      for (size_t at = 0; at < last; ++at) {
        if (random() % 100 >= percent) continue;
        insert_behind(list, at++);
        ++last;
      }
    });
  }
  const size_t at = 200 + random() % 800;
  for (int i = 0; i < 25; ++i) {
    data.change([&](ListWriter& list) { insert_behind(list, at); });
    data.check(model, random);
  }
  const Record found = data.record();
  ListReader list(data.overlay(), found);
  std::deque<std::string> by_index(model.size());
  for (size_t i = 0; i < model.size(); ++i) REQUIRE(list.get(i, &by_index[i]));
  REQUIRE(by_index == model);
}

// What the writer remembers of the order that was undone is not that of the next one.
TEST_CASE("a list is changed in its middle after the first such change was undone", "[list]") {
  std::mt19937_64 random(1);
  OneList data(each_engine(), 0);
  const size_t length = GENERATE(range<size_t>(110, 130));
  std::deque<std::string> model;
  const auto push = [&](size_t count) {
    data.change([&](ListWriter& list) {
      for (size_t i = 0; i < count; ++i) {
        model.push_back(std::to_string(model.size()));
        list.push(ListEnd::kRight, model.back());
      }
    });
    data.commit();
  };
  push(length);
  data.undone([&] {
    data.change([&](ListWriter& list) {
      for (int i = 0; i < 9; ++i) REQUIRE(list.insert(false, model[length - 2], "x"));
    });
  });
  push(9);
  data.change([&](ListWriter& list) { REQUIRE(list.insert(true, model[length + 4], "y")); });
  model.insert(std::ranges::find(model, model[length + 4]), "y");
  for (int i = 0; i < 200; ++i) data.check(model, random);
  data.change([&](ListWriter& list) {
    while (!model.empty()) {
      const std::string element = model[random() % model.size()];
      REQUIRE(list.remove(1, element) == remove(model, 1, element));
    }
  });
  REQUIRE_FALSE(data.exists());
}

}  // namespace ingot::types
