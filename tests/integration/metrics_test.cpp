#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/json.hpp>
#include <optional>
#include <string>

#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"
#include "web/http_client.hpp"

namespace integration::metrics_test {

namespace json = boost::json;
using namespace std::chrono_literals;
using evictd::test::free_port;
using evictd::test::http_get;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;

/// A real Prometheus that scrapes one evictd every second.
class Prometheus {
 public:
  Prometheus(Testbed& testbed, std::uint16_t target) : port_{free_port()}, process_{start(testbed, target, port_)} {
    testbed::wait_until("Prometheus is ready", 60s, [&] {
      if (!process_.running()) FAIL("Prometheus ended: " << process_.errors());
      try {
        return http_get(port_, "/-/ready").status == 200;
      } catch (const std::exception&) {
        return false;  // nobody listens yet
      }
    });
  }

  /// The one value that an expression has now; nothing where it has none.
  [[nodiscard]] std::optional<double> value(const std::string& expression) const {
    std::string query;
    for (const char c : expression) query += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    const auto answer = http_get(port_, "/api/v1/query?query=" + query);
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    const auto body = json::parse(answer.body);
    const auto& result = body.at("data").at("result").as_array();
    if (result.empty()) return std::nullopt;
    REQUIRE_MESSAGE(result.size() == 1, expression << " has several values");
    return std::stod(std::string(result[0].at("value").as_array()[1].as_string()));
  }

  void wait_for(const std::string& expression, double wanted) const {
    testbed::wait_until(fmt::format("Prometheus has {} for {}", wanted, expression), 60s,
                        [&] { return value(expression) == wanted; });
  }

 private:
  static testbed::Process start(Testbed& testbed, std::uint16_t target, std::uint16_t port) {
    const auto config = testbed.directory() / "prometheus.yaml";
    testbed::replace_file(config, fmt::format("global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n"
                                              "scrape_configs:\n"
                                              "  - job_name: evictd\n"
                                              "    static_configs: [{{targets: [\"127.0.0.1:{}\"]}}]\n",
                                              target));
    return testbed.spawn({"prometheus", "--config.file=" + config.native(),
                          "--storage.tsdb.path=" + (testbed.directory() / "prometheus").native(),
                          fmt::format("--web.listen-address=127.0.0.1:{}", port), "--log.level=warn"});
  }

  std::uint16_t port_;
  testbed::Process process_;
};

}  // namespace

TEST_CASE("a real Prometheus sees an eviction: in the counter, in the histograms, in what the runtime was asked") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto port = free_port();
  Agent agent{
      testbed,
      {.thresholds = "evictionHard: {memory.available: 300Mi}", .sections = fmt::format("http: {{port: {}}}\n", port)}};
  const Prometheus prometheus{testbed, port};
  prometheus.wait_for("up", 1);
  prometheus.wait_for(R"(evictd_evictions_total{signal="memory.available"})", 0);
  CHECK(prometheus.value("sum(evictd_eviction_stage_duration_seconds_count)") == std::nullopt);
  CHECK(prometheus.value("evictd_runtime_connected") == 1);
  CHECK(prometheus.value(R"(evictd_signal_threshold_bytes{signal="memory.available"})") == 300.0 * mebi);
  CHECK(prometheus.value(R"(evictd_signal_capacity_bytes{signal="memory.available"})") == 1024.0 * mebi);

  const auto bloat = testbed.cri().run_pod({.name = "bloat",
                                            .qos = evictd::core::QosClass::BestEffort,
                                            .containers = {{.args = {"grow", "16Mi", "100Mi/s"}}}});
  agent.events().wait_for(Event::CLEANUP_DONE, "default/bloat", 60s);

  prometheus.wait_for(R"(evictd_evictions_total{signal="memory.available",reason="Evicted"})", 1);
  for (const auto* stage : {"decision", "first_kill", "first_release", "cleanup"})
    prometheus.wait_for(
        fmt::format(R"(evictd_eviction_stage_duration_seconds_count{{signal="memory.available",stage="{}"}})", stage),
        1);
  prometheus.wait_for(R"(evictd_eviction_stats_age_seconds_count{signal="memory.available"})", 1);
  prometheus.wait_for(R"(evictd_cleanups_total{outcome="done"})", 1);
  prometheus.wait_for(R"(evictd_events_total{kind="EVICTION_INTENDED"})", 1);
  // Before and after: only who was scraped at 0 increases.
  testbed::wait_until("the eviction is an increase", 60s, [&] {
    return prometheus.value(R"(increase(evictd_evictions_total{signal="memory.available"}[5m]))").value_or(0) > 0.5;
  });
  CHECK(prometheus.value(R"(sum(evictd_cri_calls_total{method="StopPodSandbox"}))").value_or(0) +
            prometheus.value(R"(sum(evictd_cri_calls_total{method="StopContainer",code="OK"}))").value_or(0) >=
        1);
  CHECK(prometheus.value(R"(sum(evictd_wake_ups_total{source=~"memcg|tripwire|sampler"}))").value_or(0) >= 1);
  CHECK(prometheus.value("evictd_released_bytes_total").value_or(0) > 100.0 * mebi);

  const auto scraped = http_get(port, "/metrics");
  CHECK(scraped.header.find("text/plain; version=0.0.4") != std::string::npos);
  CHECK(scraped.body.find("bloat") == std::string::npos);
  testbed::replace_file(testbed.directory() / "metrics.txt", scraped.body);
  testbed::run({"sh", "-c", fmt::format("promtool check metrics < {}/metrics.txt", testbed.directory().native())});
}

TEST_CASE("a port that is taken ends the start with 1, an address that is none with 2, each with one line") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}, .start_containerd = false}};
  const auto port = free_port();
  Agent first{testbed,
              {.thresholds = "evictionHard: {}",
               .sections = fmt::format("http: {{port: {}}}\n", port),
               .wait_until_ready = false}};
  testbed::wait_until("the first one serves", 60s, [&] {
    try {
      return http_get(port, "/metrics").status == 200;
    } catch (const std::exception&) {
      return false;
    }
  });
  const auto start = [&](const std::string& http) {
    const auto file = testbed.directory() / "other.yaml";
    testbed::replace_file(file, fmt::format("apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n"
                                            "stateDirectory: \"\"\nruntimeDirectory: {}\n"
                                            "node: {{cgroupRoot: {}}}\nhttp: {{{}}}\n",
                                            (testbed.directory() / "other").native(), testbed.node().cgroup(), http));
    return testbed.spawn(
        {testbed::evictd_program(), "run", "--config", file, "--kubelet-config", testbed.directory() / "kubelet.yaml"});
  };
  auto taken = start(fmt::format("port: {}", port));
  CHECK(taken.wait(60s) == 1);
  CHECK(taken.errors().find(fmt::format("http.port: 127.0.0.1:{}: Address already in use", port)) != std::string::npos);
  auto nowhere = start(fmt::format("port: {}, address: localhost", port));
  CHECK(nowhere.wait(60s) == 2);
  CHECK(nowhere.errors().find("http.address: \"localhost\" is no IP address") != std::string::npos);
}

}  // namespace integration::metrics_test
