// The log on spdlog: levels, their marks, and where the lines go.
#include "src/metrics/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "src/settings/log_file.h"

namespace ingot::metrics::log {

namespace {

// Redis marks levels by one character each.
class LevelMark : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    switch (message.level) {
      case spdlog::level::trace:
        out.push_back('.');
        break;
      case spdlog::level::debug:
        out.push_back('-');
        break;
      case spdlog::level::info:
        out.push_back('*');
        break;
      default:
        out.push_back('#');
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelMark>();
  }
};

spdlog::level::level_enum level_of(settings::LogLevel level) {
  switch (level) {
    case settings::LogLevel::kDebug:
      return spdlog::level::trace;
    case settings::LogLevel::kVerbose:
      return spdlog::level::debug;
    case settings::LogLevel::kNotice:
      return spdlog::level::info;
    case settings::LogLevel::kWarning:
      return spdlog::level::warn;
  }
  return spdlog::level::info;
}

// Opens the file for each line, as Redis does: whoever rotates logs moves it away, or removes it,
// and tells nobody.
class LogFile : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LogFile(std::string path) : path_(std::move(path)) {}
  // Errno; 0: it can be written.
  int probe() const {
    const int fd = open();
    if (fd < 0) return errno;
    ::close(fd);
    return 0;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const int fd = open();
    if (fd < 0) return;
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    (void)!::write(fd, line.data(), line.size());
    ::close(fd);
  }
  void flush_() override {}

 private:
  int open() const { return settings::open_log_file(path_.c_str()); }

  const std::string path_;
};

// spdlog's own gives levels other priorities than Redis does.
class Syslog : public spdlog::sinks::base_sink<std::mutex> {
 public:
  Syslog(std::string ident, int facility) : ident_(std::move(ident)) {
    openlog(ident_.c_str(), LOG_PID | LOG_NDELAY | LOG_NOWAIT, facility);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const int priority = message.level == spdlog::level::trace   ? LOG_DEBUG
                         : message.level == spdlog::level::debug ? LOG_INFO
                         : message.level == spdlog::level::info  ? LOG_NOTICE
                                                                 : LOG_WARNING;
    syslog(priority, "%.*s", static_cast<int>(message.payload.size()), message.payload.data());
  }
  void flush_() override {}

 private:
  const std::string ident_;  // openlog() keeps a pointer to it
};

}  // namespace

std::string configure(const settings::Settings& settings) {
  const std::string& file = settings.logfile;
  spdlog::sink_ptr sink;
  if (file.empty()) {
    sink = std::make_shared<spdlog::sinks::stdout_sink_mt>();
  } else {
    auto log_file = std::make_shared<LogFile>(file);
    if (const int error = log_file->probe(); error != 0) {
      return fmt::format("Can't open the log file: {}", std::strerror(error));
    }
    sink = std::move(log_file);
  }
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelMark>('*').set_pattern("%P:M %d %b %Y %H:%M:%S.%e %* %v");
  sink->set_formatter(std::move(formatter));
  auto logger = std::make_shared<spdlog::logger>("ingot", std::move(sink));
  if (settings.syslog_enabled) {
    logger->sinks().push_back(
        std::make_shared<Syslog>(settings.syslog_ident, settings.syslog_facility));
  }
  logger->set_level(level_of(settings.loglevel));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

void set_level(settings::LogLevel level) {
  spdlog::default_logger_raw()->set_level(level_of(level));
}

void write(settings::LogLevel level, std::string_view line) {
  spdlog::default_logger_raw()->log(level_of(level),
                                    spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace ingot::metrics::log
