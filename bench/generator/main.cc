// A load generator for servers that speak RESP: asks the same question in many variations, and
// prints how many answers came and how long they took, as lines of JSON. Unlike redis-benchmark it
// runs for a time, tells latencies while it runs, sets every key once, and can send at a given
// rate.
//
//   generator [options] COMMAND WORD...     requests.h tells what {random} and the like mean in a
//   word
//
// It ends with 1, and says why, at the first error that the server answers, or when the server
// goes. SIGTERM and SIGINT: sends no more, and ends as if its time were over.
#include <fmt/format.h>
#include <netdb.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "bench/generator/worker.h"

namespace generator {
namespace {

using Clock = Worker::Clock;
using Seconds = std::chrono::duration<double>;

constexpr std::string_view kUsage = R"(usage: generator [options] COMMAND WORD...
  --host H  --port N          the server (127.0.0.1 6379)
  --connections N             (50)
  --threads N                 (1)
  --pipeline N                requests that a connection sends at a time (1)
  --seconds S, --requests N   how long; the first of the two
  --rate R                    requests a second, and latencies from when each was due; else as fast as it goes
  --batch-ms M                with --rate: send a pipeline that is not full when its first has waited so long
  --keys N                    {random} and {next} are below that (1)
  --hot-keys N                {hot} is one of so many (1)
  --first N                   {next} begins behind so many (0)
  --value-bytes N             (100)
  --last "COMMAND WORD..."    is the last of each pipeline instead
  --report-seconds S          a line that often; --report-requests N: after so many
The server's password is taken from the environment, REDISCLI_AUTH. The last line has "total": true. requests, rate, nils; mean_us, p50_us, p99_us, p999_us, max_us; seconds since the
begin; interval: seconds that the line is of.
)";

// Only a flag may be touched in a signal handler.
volatile std::sig_atomic_t signalled = 0;

double number(std::string_view option, const std::string& text) {
  size_t end = 0;
  double value = -1;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
  }
  if (end != text.size() || !(value >= 0) || value > 1e15) {
    throw std::invalid_argument(fmt::format("{} wants a number and not '{}'", option, text));
  }
  return value;
}

template <typename T>
auto into(T& target) {
  return [&target](std::string_view option, const std::string& text) {
    target = static_cast<T>(number(option, text));
  };
}

std::vector<std::string> split(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

Options parse(int count, char** words) {
  Options options;
  if (const char* const password = std::getenv("REDISCLI_AUTH")) options.password = password;
  using Take = std::function<void(std::string_view, const std::string&)>;
  const std::map<std::string_view, Take> known = {
      {"--host", [&](auto, const std::string& text) { options.host = text; }},
      {"--port", [&](auto, const std::string& text) { options.port = text; }},
      {"--last", [&](auto, const std::string& text) { options.last_words = split(text); }},
      {"--connections", into(options.connections)},
      {"--threads", into(options.threads)},
      {"--pipeline", into(options.pipeline)},
      {"--seconds", into(options.seconds)},
      {"--requests", into(options.requests)},
      {"--rate", into(options.rate)},
      {"--batch-ms", into(options.batch_ms)},
      {"--keys", into(options.keys)},
      {"--hot-keys", into(options.hot_keys)},
      {"--first", into(options.first)},
      {"--value-bytes", into(options.value_bytes)},
      {"--report-seconds", into(options.report_seconds)},
      {"--report-requests", into(options.report_requests)},
  };
  int at = 1;
  while (at < count && std::string_view(words[at]).starts_with("--")) {
    const auto found = known.find(words[at]);
    if (found == known.end()) {
      throw std::invalid_argument(fmt::format("there is no option {}", words[at]));
    }
    if (at + 1 == count) throw std::invalid_argument(fmt::format("{} wants a value", words[at]));
    found->second(words[at], words[at + 1]);
    at += 2;
  }
  options.words.assign(words + at, words + count);
  if (options.words.empty()) throw std::invalid_argument("a command is wanted");
  if (options.seconds == 0 && options.requests == 0) {
    throw std::invalid_argument("--seconds or --requests is wanted");
  }
  if (options.connections == 0 || options.threads == 0 || options.pipeline == 0 ||
      options.keys == 0 || options.hot_keys == 0 || options.hot_keys > options.keys ||
      options.threads > options.connections) {
    throw std::invalid_argument(
        "connections, threads, pipeline and keys are 1 at least; hot keys are keys; a thread has a "
        "connection");
  }
  return options;
}

void print_line(const Tally& tally, Seconds since_begin, Seconds interval, bool total) {
  const Histogram& times = tally.latencies_us;
  fmt::print(
      R"({{"requests": {}, "nils": {}, "rate": {:.1f}, "mean_us": {:.1f}, "p50_us": {}, "p99_us": {}, )"
      R"("p999_us": {}, "max_us": {}, "seconds": {:.3f}, "interval": {:.3f}{}}})"
      "\n",
      tally.replies.all, tally.replies.nil,
      static_cast<double>(tally.replies.all) / interval.count(), times.mean(), times.quantile(0.5),
      times.quantile(0.99), times.quantile(0.999), times.max(), since_begin.count(),
      interval.count(), total ? R"(, "total": true)" : "");
  std::fflush(stdout);
}

void add(Tally& to, const Tally& from) {
  to.latencies_us.merge(from.latencies_us);
  to.replies.all += from.replies.all;
  to.replies.nil += from.replies.nil;
}

// Prints what the workers count, until they are done; tells them when the time is over.
class Reporter {
 public:
  explicit Reporter(Shared& shared) : shared_(shared) {}

  void run(const std::vector<std::unique_ptr<Worker>>& workers,
           const std::atomic<size_t>& working) {
    const Options& options = shared_.options;
    while (working > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const Seconds passed = Clock::now() - begin_;
      if (signalled != 0 || (options.seconds > 0 && passed.count() >= options.seconds) ||
          (options.requests > 0 && shared_.taken >= options.requests)) {
        shared_.stop = true;
      }
      collect(workers);
      const Seconds interval = Clock::now() - reported_;
      const bool time = options.report_seconds > 0 && interval.count() >= options.report_seconds;
      const bool count =
          options.report_requests > 0 && since_report_.replies.all >= options.report_requests;
      if (time || count) report();
    }
    collect(workers);
    if (options.report_seconds > 0 || options.report_requests > 0) report();
    add(total_, since_report_);
    const Seconds passed = Clock::now() - begin_;
    print_line(total_, passed, passed, true);
  }

 private:
  void collect(const std::vector<std::unique_ptr<Worker>>& workers) {
    for (const auto& worker : workers) add(since_report_, worker->take_tally());
  }

  // No line without an answer, but for one that tells of a second without any.
  void report() {
    const auto now = Clock::now();
    if (since_report_.replies.all > 0 || now - reported_ > std::chrono::seconds(1)) {
      print_line(since_report_, now - begin_, now - reported_, false);
    }
    add(total_, since_report_);
    since_report_ = {};
    reported_ = now;
  }

  Shared& shared_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point reported_ = begin_;
  Tally since_report_, total_;
};

struct FreeAddress {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

std::unique_ptr<addrinfo, FreeAddress> resolve(const Options& options) {
  const addrinfo hints = {.ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(options.host.c_str(), options.port.c_str(), &hints, &found)) {
    throw std::runtime_error(
        fmt::format("{}:{}: {}", options.host, options.port, gai_strerror(code)));
  }
  return std::unique_ptr<addrinfo, FreeAddress>(found);
}

// Throws what the first worker that failed has thrown.
void run(const Options& options) {
  Numbers numbers(options.keys);
  numbers.hot_keys = options.hot_keys;
  numbers.value_bytes = options.value_bytes;
  numbers.next = options.first;
  Shared shared(options, numbers);
  const auto address = resolve(options);
  std::vector<std::unique_ptr<Worker>> workers;
  // Other keys than the last run: a cache would still have those.
  std::random_device seeds;
  for (unsigned i = 0; i < options.threads; ++i) {
    const unsigned own = (options.connections + i) / options.threads;
    workers.push_back(
        std::make_unique<Worker>(shared, address->ai_addr, address->ai_addrlen, own, seeds()));
  }
  std::atomic<size_t> working = workers.size();
  std::mutex mutex;
  std::exception_ptr failed;  // guarded by mutex
  std::vector<std::jthread> threads;
  threads.reserve(workers.size());
  for (const auto& worker : workers) {
    threads.emplace_back([&, own = worker.get()] {
      try {
        own->run();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failed) failed = std::current_exception();
        shared.stop = true;
      }
      --working;
    });
  }
  Reporter(shared).run(workers, working);
  threads.clear();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace
}  // namespace generator

int main(int count, char** words) {
  if (count < 2 || std::string_view(words[1]) == "--help") {
    fmt::print("{}", generator::kUsage);
    return count < 2 ? 2 : 0;
  }
  for (const int each : {SIGINT, SIGTERM}) {
    std::signal(each, [](int) { generator::signalled = 1; });
  }
  try {
    generator::run(generator::parse(count, words));
  } catch (const std::invalid_argument& wrong) {
    fmt::print(stderr, "generator: {}\n", wrong.what());
    return 2;
  } catch (const std::exception& failed) {
    fmt::print(stderr, "generator: {}\n", failed.what());
    return 1;
  }
  return 0;
}
