#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <string>

#include "kube/client.hpp"
#include "kube/reporter.hpp"
#include "pods/api_server_source.hpp"

namespace bench {

/// The half of an evictd that talks to an API server, put together as src/app does: the pods' source and the
/// reporter, each with a client of its own.
class SimulatedNode final : private evictd::pods::SpecListener {
 public:
  struct Options {
    int port = 0;
    int number = 0;
    std::chrono::milliseconds start_spread{};
    int haste = 1;  ///< divides the times of what is done at rest
  };

  SimulatedNode(const boost::asio::any_io_executor& reactor, const boost::asio::any_io_executor& pool, Options options);
  SimulatedNode(const SimulatedNode&) = delete;
  SimulatedNode& operator=(const SimulatedNode&) = delete;
  ~SimulatedNode() = default;

  void start();
  void stop();

  /// It evicts so many of its pods, one after the other. Once.
  void come_under_pressure(int evictions, std::chrono::milliseconds between);
  void recover();

  [[nodiscard]] std::size_t pods() const { return source_.pods()->size(); }
  /// It evicts no more, and the API server has taken all reports.
  [[nodiscard]] bool has_told_all() const { return !evicting_ && reporter_.status().waiting == 0; }

 private:
  void specs_changed() override;
  void spec_source_degraded(evictd::pods::SpecOrigin, const evictd::Error&) override {}
  void spec_unreadable(evictd::pods::SpecOrigin, const evictd::Error&) override {}
  boost::asio::awaitable<void> evict(int evictions, std::chrono::milliseconds between);

  boost::asio::any_io_executor reactor_;
  std::string name_;
  evictd::kube::Client watching_;
  evictd::kube::Client telling_;
  evictd::pods::ApiServerSource source_;
  evictd::kube::Reporter reporter_;
  bool evicting_ = false;
};

}  // namespace bench
