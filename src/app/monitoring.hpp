#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "core/error.hpp"

namespace evictd::events {
class EventLog;
class StatusSource;
}  // namespace evictd::events
namespace evictd::config {
struct HttpSettings;
}
namespace evictd::cri {
class Client;
}

namespace evictd::app {

/// What is looked at over HTTP; all must outlive it.
struct Monitored {
  events::EventLog& events;
  cri::Client& runtime;
  events::StatusSource& status;
};

/// Whether the settings make sense; the error names the key.
[[nodiscard]] Result<void> check_monitoring(const config::HttpSettings& settings);

/// Metrics and the status page: counts, and serves both.
class Monitoring {
 public:
  /// Null where it is switched off; then nothing is counted either. The settings have been checked.
  [[nodiscard]] static std::unique_ptr<Monitoring> make(const boost::asio::any_io_executor& reactor,
                                                        const config::HttpSettings& settings,
                                                        const Monitored& monitored);
  ~Monitoring();

  /// Listens. The error says that the port is taken, that the address is none of this machine's, or the like.
  [[nodiscard]] Result<void> start();

 private:
  struct Parts;
  explicit Monitoring(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace evictd::app
