#pragma once
#include <fmt/format.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "core/signal.hpp"
#include "kube/client.hpp"
#include "kube/credentials.hpp"
#include "kube/message.hpp"
#include "kube/pod_objects.hpp"
#include "kube/report_options.hpp"
#include "kube/reporter.hpp"
#include "kube/retry_delay.hpp"
#include "os/log.hpp"
#include "pods/api_server_source.hpp"

namespace bench {

namespace asio = boost::asio;
namespace core = evictd::core;
namespace kube = evictd::kube;

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

  SimulatedNode(const asio::any_io_executor& reactor, const asio::any_io_executor& pool, const Options& options)
      : reactor_{reactor},
        name_{fmt::format("node-{}", options.number)},
        watching_{reactor, pool, credentials(options.port), client_options(options.haste)},
        telling_{reactor, pool, credentials(options.port), client_options(options.haste)},
        source_{reactor, pool, watching_, source_options(name_, options)},
        reporter_{reactor, report_options(name_, options),
                  [this](kube::Request request) { return telling_.send(std::move(request), std::chrono::seconds{30}); },
                  [](evictd::os::LogLevel, const std::string&) {}} {}
  SimulatedNode(const SimulatedNode&) = delete;
  SimulatedNode& operator=(const SimulatedNode&) = delete;
  ~SimulatedNode() = default;

  void start() {
    source_.start(*this);
    asio::co_spawn(reactor_, reporter_.run(), asio::detached);
    reporter_.node_conditions({});
  }
  void stop() {
    source_.stop();
    watching_.stop();
    telling_.stop();
  }

  /// It evicts so many of its pods, one after the other. Once.
  void come_under_pressure(int evictions, std::chrono::milliseconds between) {
    evicting_ = true;
    reporter_.node_conditions({core::NodeCondition::MemoryPressure});
    asio::co_spawn(reactor_, evict(evictions, between), asio::detached);
  }
  void recover() { reporter_.node_conditions({}); }

  [[nodiscard]] std::size_t pods() const { return source_.pods()->size(); }
  /// It evicts no more, and the API server has taken all reports.
  [[nodiscard]] bool has_told_all() const { return !evicting_ && reporter_.status().waiting == 0; }

 private:
  void specs_changed() override {
    for (const auto& pod : *source_.pods()) reporter_.seen(pod->uid, pod->phase, pod->reason);
  }
  void spec_source_degraded(evictd::pods::SpecOrigin, const evictd::Error&) override {}
  void spec_unreadable(evictd::pods::SpecOrigin, const evictd::Error&) override {}
  asio::awaitable<void> evict(int evictions, std::chrono::milliseconds between) {
    asio::steady_timer timer{reactor_};
    for (int pod = 0; pod < evictions; ++pod) {
      reporter_.threshold_met(core::resource_of(core::Signal::MemoryAvailable));
      reporter_.evicted(eviction(name_, pod));
      timer.expires_after(between);
      co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    evicting_ = false;
  }

  static kube::Credentials credentials(int port) {
    constexpr std::size_t token_length = 1000;  // bytes, as a service account's
    return {.server = {.tls = false, .host = "127.0.0.1", .port = std::to_string(port)},
            .token = {.text = std::string(token_length, 't')}};
  }

  static kube::ClientOptions client_options(int haste) {
    kube::ClientOptions options;
    options.keep_idle /= haste;
    return options;
  }

  static evictd::pods::ApiServerSourceOptions source_options(const std::string& name, const Options& options) {
    evictd::pods::ApiServerSourceOptions source{.node_name = name};
    source.reflector.longest_start_delay = options.start_spread;
    source.reflector.shortest_watch /= options.haste;
    source.reflector.longest_watch /= options.haste;
    return source;
  }

  static kube::ReportOptions report_options(const std::string& name, const Options& options) {
    const auto spread = std::chrono::duration<double>(options.start_spread) * kube::any_random()();
    kube::ReportOptions report{.node = name,
                               .report = kube::ReportMode::Status,
                               .node_conditions = kube::NodeConditionMode::Conditions,
                               .start_delay = std::chrono::duration_cast<core::Duration>(spread)};
    report.heartbeat /= options.haste;
    return report;
  }

  /// What is told of a pod that an eviction by memory ended.
  static kube::Eviction eviction(const std::string& node, int pod) {
    const auto name = fmt::format("{}-pod-{}", node, pod);
    return {
        .name_space = "default",
        .name = name,
        .uid = name + "-uid",
        .message = {"The node was low on resource: memory. Threshold quantity: 100Mi, available: 98304Ki. Container "
                    "app was using 812340Ki, request is 256Mi, has larger consumption of memory. ",
                    {{"offending_containers", "app"},
                     {"offending_containers_usage", "812340Ki"},
                     {"starved_resource", "memory"}}},
        .time = std::chrono::system_clock::now()};
  }

  asio::any_io_executor reactor_;
  std::string name_;
  kube::Client watching_;
  kube::Client telling_;
  evictd::pods::ApiServerSource source_;
  kube::Reporter reporter_;
  bool evicting_ = false;
};

}  // namespace bench
