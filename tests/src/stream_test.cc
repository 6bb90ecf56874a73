// Streams on disk, small and large, on every engine: the bytes, the way from one form to the other,
// and random changes against a plain model.
#include "src/types/stream_value.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/src/typed_store.h"

namespace ingot::types {
namespace {

using storage::Space;

constexpr uint64_t kOften = 400;  // crossed now and then

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

// Everything that a reader tells of a stream, so that two can be compared.
std::string told_by(const StreamReader& stream) {
  const StreamNotes& notes = stream.notes();
  std::string text =
      fmt::format("{} entries, first {} last {} deleted {} added {} groups {}\n", stream.length(),
                  stream_id_text(notes.first), stream_id_text(notes.last),
                  stream_id_text(notes.max_deleted), notes.added, notes.groups);
  stream.walk(kStreamIdMin, kStreamIdMax, false, [&](StreamId id, const StreamFields& fields) {
    text += fmt::format("{}: {}\n", stream_id_text(id), hex(fields.packed()));
    return true;
  });
  stream.walk_groups([&](const StreamGroup& group) {
    text +=
        fmt::format("group {} last {} read {} pending {} consumers {}\n", group.name,
                    stream_id_text(group.last), group.entries_read, group.pending, group.consumers);
    stream.walk_consumers(group, [&](const StreamConsumer& consumer) {
      text += fmt::format("consumer {} pending {}:", consumer.name, consumer.pending);
      stream.walk_pending(group, consumer, kStreamIdMin, [&](const StreamPending& pending) {
        text += " " + stream_id_text(pending.id);
        return true;
      });
      text += "\n";
      return true;
    });
    stream.walk_pending(group, kStreamIdMin, [&](const StreamPending& pending) {
      text += fmt::format("pending {} of {} x{}\n", stream_id_text(pending.id), pending.consumer,
                          pending.deliveries);
      return true;
    });
    text +=
        fmt::format("up to {}\n", stream_id_text(stream.last_pending(group).value_or(StreamId{})));
    return true;
  });
  return text;
}

// One key's stream.
class OneStream : public TypedStore {
 public:
  OneStream(const std::string& engine, uint64_t inline_max)
      : TypedStore(engine), inline_max_(inline_max) {}

  template <typename Change>
  void change(const Change& change) {
    TypedStore::change<StreamWriter>(inline_max_, change);
    REQUIRE_FALSE(overlay().failed());
  }
  void add(uint64_t ms, std::string_view value) {
    change([&](StreamWriter& stream) {
      const std::string_view fields[] = {"f", value};
      stream.add({ms, 1}, fields);
    });
  }
  std::string told() {
    const Record found = record();
    const std::string text = told_by(StreamReader(overlay(), found));
    CHECK_FALSE(overlay().failed());
    return text;
  }
  std::string stored() { return hex(record().bytes()); }
  std::vector<std::string> data() {
    std::vector<std::string> records;
    for (const auto& [key, value] : records_of(Space::kData)) {
      records.push_back(hex(key) + " -> " + hex(value));
    }
    return records;
  }

 private:
  const uint64_t inline_max_;
};

// What a stream is to those who use it.
struct Model {
  struct Group {
    StreamId last;
    int64_t entries_read = -1;
    std::set<std::string> consumers;
    struct Pending {
      std::string consumer;
      uint64_t deliveries;
    };
    std::map<StreamId, Pending> pending;
  };
  std::map<StreamId, std::string> entries;  // packed
  StreamId last, max_deleted;
  uint64_t added = 0;
  std::map<std::string, Group> groups;

  std::string told() const {
    std::string text =
        fmt::format("{} entries, first {} last {} deleted {} added {} groups {}\n", entries.size(),
                    stream_id_text(entries.empty() ? StreamId{} : entries.begin()->first),
                    stream_id_text(last), stream_id_text(max_deleted), added, groups.size());
    for (const auto& [id, packed] : entries) {
      text += fmt::format("{}: {}\n", stream_id_text(id), hex(packed));
    }
    for (const auto& [name, group] : groups) text += told_of(name, group);
    return text;
  }

  static std::string told_of(const std::string& name, const Group& group) {
    std::string text = fmt::format("group {} last {} read {} pending {} consumers {}\n", name,
                                   stream_id_text(group.last), group.entries_read,
                                   group.pending.size(), group.consumers.size());
    for (const std::string& consumer : group.consumers) {
      std::string owned;
      size_t count = 0;
      for (const auto& [id, pending] : group.pending) {
        if (pending.consumer != consumer) continue;
        owned += " " + stream_id_text(id);
        ++count;
      }
      text += fmt::format("consumer {} pending {}:{}\n", consumer, count, owned);
    }
    for (const auto& [id, pending] : group.pending) {
      text += fmt::format("pending {} of {} x{}\n", stream_id_text(id), pending.consumer,
                          pending.deliveries);
    }
    const StreamId end = group.pending.empty() ? StreamId{} : group.pending.rbegin()->first;
    return text + fmt::format("up to {}\n", stream_id_text(end));
  }
};

// Changes a stream and its model alike.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  size_t below(size_t limit) { return random_() % limit; }

  void change_entries(StreamWriter& stream, Model& model) {
    const size_t kind = below(8);
    if (kind < 5) {
      const StreamId id{model.last.ms + below(2), model.last.seq + 1};
      const std::string value(below(10) == 0 ? below(200) : below(8), 'v');
      const std::string_view fields[] = {"f", value};
      stream.add(id, fields);
      append_packed(&model.entries[id], "f");
      append_packed(&model.entries[id], value);
      model.last = id;
      ++model.added;
    } else if (kind == 5) {
      const StreamId id = some_entry(model);
      const bool there = model.entries.erase(id) != 0;
      CHECK(stream.remove(id) == there);
      if (there) model.max_deleted = std::max(model.max_deleted, id);
    } else {
      types::StreamTrim trim{.length = below(30)};
      if (kind == 6) trim.min_id = some_entry(model);
      uint64_t gone = 0;
      while (!model.entries.empty() && (trim.min_id ? model.entries.begin()->first < *trim.min_id
                                                    : model.entries.size() > trim.length)) {
        model.entries.erase(model.entries.begin());
        ++gone;
      }
      CHECK(stream.trim(trim) == gone);
    }
  }

  void change_group(StreamWriter& stream, Model& model) {
    const std::string name = "g" + std::to_string(below(3));
    auto group = stream.group(name);
    const auto found = model.groups.find(name);
    REQUIRE(group.has_value() == (found != model.groups.end()));
    if (!group) {
      stream.create_group(name, model.last, 5);
      model.groups[name] = {.last = model.last, .entries_read = 5};
    } else if (below(12) == 0) {
      stream.destroy(*group);
      model.groups.erase(found);
    } else {
      change_consumer(stream, &*group, &found->second);
      if (below(4) == 0) group->last = found->second.last = model.last;
      stream.store(*group);
    }
  }

 private:
  StreamId some_entry(const Model& model) {
    if (model.entries.empty()) return {1, 1};
    return std::next(model.entries.begin(), static_cast<long>(below(model.entries.size())))->first;
  }

  void change_consumer(StreamWriter& stream, StreamGroup* group, Model::Group* model) {
    const std::string name = "c" + std::to_string(below(3));
    auto consumer = stream.consumer(*group, name);
    REQUIRE(consumer.has_value() == model->consumers.contains(name));
    if (!consumer) {
      stream.create_consumer(group, name, 1);
      model->consumers.insert(name);
      return;
    }
    const StreamId id{below(20), 1};
    const auto before = stream.pending(*group, id);
    REQUIRE(before.has_value() == model->pending.contains(id));
    if (below(10) == 0) {
      stream.remove(group, *consumer);
      model->consumers.erase(name);
      std::erase_if(model->pending, [&](const auto& each) { return each.second.consumer == name; });
    } else if (before && below(2) == 0) {
      const bool known = below(2) == 0;
      stream.release(group, *before, known ? &*consumer : nullptr);
      if (known) stream.store(*group, *consumer);
      model->pending.erase(id);
    } else {
      const uint64_t deliveries = before ? before->deliveries + 1 : 1;
      stream.give(group, &*consumer, {.id = id, .consumer = name, .deliveries = deliveries},
                  before ? &*before : nullptr);
      stream.store(*group, *consumer);
      model->pending[id] = {.consumer = name, .deliveries = deliveries};
    }
  }

  std::mt19937_64 random_;
};

void change_at_random(OneStream& stream, Model& model, Dice& dice) {
  stream.change([&](StreamWriter& writer) {
    dice.below(2) == 0 ? dice.change_entries(writer, model) : dice.change_group(writer, model);
    // What the writer still has to store is read, too.
    CHECK(told_by(writer) == model.told());
  });
}

TEST_CASE("the examples of docs/format.md: a stream", "[stream]") {
  const std::string notes =
      "00000000000000050000000000000001"
      "00000000000000050000000000000001"
      "00000000000000000000000000000000"
      "01000000000000000000000000000000";
  const std::string engine = each_engine();
  OneStream small(engine, 1024);
  small.add(5, "v");
  CHECK(small.stored() == "06" + notes + "110000000000000000050000000000000001" + "050001660176");
  CHECK(small.data().empty());

  OneStream large(engine, kAlwaysLarge);
  large.add(5, "v");
  CHECK(large.stored() ==
        "26"
        "0700000000000000"
        "0100000000000000"
        "01000000" +
            notes);
  CHECK(large.data() == std::vector<std::string>{"0000000000000007"
                                                 "00"
                                                 "00000000000000050000000000000001 -> 0001660176"});
}

TEST_CASE("a stream is small up to the limit, whatever makes it longer", "[stream]") {
  const std::string growing = GENERATE("entries", "groups", "consumers", "pending");
  INFO(growing);
  const std::string engine = each_engine();
  OneStream stream(engine, 500);
  OneStream never(engine, kAlwaysSmall);
  size_t bytes = 0;
  for (uint64_t i = 1; i < 60; ++i) {
    for (OneStream* each : {&stream, &never}) {
      if (growing == "entries" || i == 1) each->add(i, "value");
      each->change([&](StreamWriter& writer) {
        if (i == 1) writer.create_group("g", {}, 0);
        auto group = writer.group("g");
        if (growing == "groups") writer.create_group("g" + std::to_string(i), {}, 0);
        if (growing == "consumers") writer.create_consumer(&*group, "c" + std::to_string(i), 1);
        if (growing == "pending") {
          auto consumer = writer.consumer(*group, "c");
          if (!consumer) consumer = writer.create_consumer(&*group, "c", 1);
          writer.give(&*group, &*consumer, {.id = {i, 1}, .consumer = "c"}, nullptr);
          writer.store(*group, *consumer);
        }
        writer.store(*group);
      });
    }
    bytes = never.record().payload().size();
    CHECK(stream.is_large() == (bytes > 500));
    CHECK(stream.told() == never.told());
  }
  CHECK(bytes > 500);
  CHECK(never.data().empty());
  CHECK(stream.record().collection()->id == 7);

  stream.change([](StreamWriter& writer) {
    writer.destroy(*writer.group("g"));
    writer.trim({.length = 0});
  });
  CHECK(stream.is_large());  // for good
  stream.remove_key();
  CHECK(stream.effects().dropped_collections == std::vector<storage::CollectionId>{7});
  never.remove_key();
  CHECK(never.effects().dropped_collections.empty());
}

TEST_CASE("random changes agree with a plain stream, in every form", "[stream]") {
  const uint64_t inline_max = GENERATE(kAlwaysLarge, kOften, kAlwaysSmall);
  OneStream stream(each_engine(), inline_max);
  const uint64_t seed = std::random_device{}();
  INFO("inline_max " << inline_max << ", seed " << seed);
  Dice dice(seed);
  Model model;
  for (int step = 0; step < 1500; ++step) {
    if (step % 40 == 39) stream.commit();
    if (step % 500 == 499) stream.reopen();
    if (step % 100 == 99) {  // begins again, small
      stream.remove_key();
      model = Model();
    }
    change_at_random(stream, model, dice);
    REQUIRE(stream.told() == model.told());
  }
}

TEST_CASE("bytes that are no stream are an error", "[stream]") {
  OneStream stream(each_engine(), 1024);
  stream.add(5, "v");
  const std::string good(stream.record().payload());
  const std::string notes = good.substr(0, good.size() - 24);
  REQUIRE(notes.size() == 64);
  for (const std::string& bad : {
           std::string(), notes.substr(1), good.substr(0, good.size() - 1), good + '\1',
           good + std::string("\x02\x05g\x01\0", 5),  // no such part
           notes + std::string("\x02\0x\x01\0", 5),   // half an ID
           notes + std::string("\x02\x01g\0", 4),     // an element is never empty
       }) {
    INFO(hex(bad));
    stream.replace_record({.type = storage::ValueType::kStream, .payload = bad});
    const Record found = stream.record();
    told_by(StreamReader(stream.overlay(), found));
    CHECK(stream.take_error().code() == storage::Status::Code::kCorruption);
  }
}

}  // namespace
}  // namespace ingot::types
