// The log on spdlog: levels, their marks, and where the lines go.
#include "src/metrics/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

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

}  // namespace

std::string configure(const std::string& file, settings::LogLevel level) {
  spdlog::sink_ptr sink;
  try {
    if (file.empty()) {
      sink = std::make_shared<spdlog::sinks::stdout_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
    }
  } catch (const spdlog::spdlog_ex& error) {
    return "Can't open the log file: " + std::string(error.what());
  }
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelMark>('*').set_pattern("%P:M %d %b %Y %H:%M:%S.%e %* %v");
  sink->set_formatter(std::move(formatter));
  auto logger = std::make_shared<spdlog::logger>("ingot", std::move(sink));
  logger->set_level(level_of(level));
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
