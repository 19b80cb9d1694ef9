#include "benchmarks/proxy.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <utility>

#include "core/pod.hpp"
#include "testbed/agent.hpp"
#include "testbed/calls.hpp"
#include "testbed/cri_proxy.hpp"
#include "testbed/failure.hpp"
#include "testbed/node_cgroup.hpp"
#include "testbed/testbed.hpp"

namespace bench {

namespace json = boost::json;
namespace cri = runtime::v1;

namespace {

using testbed::Calls;

/// One kind of call; fails where the answer is not what it has to be.
struct Kind {
  std::string name;
  std::function<void(const Calls&)> call;
};

cri::RunPodSandboxRequest refused_sandbox(const testbed::NodeCgroup& node) {
  cri::RunPodSandboxRequest request;
  auto& config = *request.mutable_config();
  config.mutable_metadata()->set_name("refused");
  config.mutable_metadata()->set_namespace_("default");
  config.mutable_metadata()->set_uid("refused");
  config.mutable_linux()->set_cgroup_parent(node.pod_cgroup(evictd::core::QosClass::Burstable, "refused"));
  request.set_runtime_handler("there-is-none");
  return request;
}

void expect_refusal(const Calls& calls, const cri::RunPodSandboxRequest& request) {
  cri::RunPodSandboxResponse response;
  const auto status = calls.make(request, response);
  if (status.error_message().find("there-is-none") == std::string::npos)
    testbed::fail("RunPodSandbox did not fail for want of a runtime handler: " + status.error_message());
}

std::vector<Kind> kinds_of_calls(const testbed::NodeCgroup& node, const std::string& container) {
  cri::ContainerStatusRequest status;
  status.set_container_id(container);
  return {
      {"Version", [](const Calls& calls) { calls.ask<cri::VersionResponse>(cri::VersionRequest{}); }},
      {"ListPodSandbox",
       [](const Calls& calls) { calls.ask<cri::ListPodSandboxResponse>(cri::ListPodSandboxRequest{}); }},
      {"ContainerStatus", [status](const Calls& calls) { calls.ask<cri::ContainerStatusResponse>(status); }},
      {"RunPodSandbox, refused",
       [request = refused_sandbox(node)](const Calls& calls) { expect_refusal(calls, request); }},
  };
}

double milliseconds_of(const Kind& kind, const Calls& calls) {
  const auto start = std::chrono::steady_clock::now();
  kind.call(calls);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

ProxiedCall measure(const Kind& kind, const Calls& directly, const Calls& through, int calls) {
  constexpr int warm_up = 20;  // connections, caches
  std::vector<double> direct;
  std::vector<double> proxied;
  for (int i = -warm_up; i < calls; ++i) {
    const std::array times{milliseconds_of(kind, directly), milliseconds_of(kind, through)};
    if (i < 0) continue;
    direct.push_back(times[0]);
    proxied.push_back(times[1]);
  }
  return {.name = kind.name, .direct = summarize(std::move(direct)), .proxied = summarize(std::move(proxied))};
}

json::object summary_json(const Summary& summary) {
  return {{"medianMs", summary.median}, {"p90Ms", summary.p90}, {"maxMs", summary.max}};
}

}  // namespace

std::vector<ProxiedCall> measure_proxy(const ProxyOptions& options) {
  testbed::Testbed testbed{{.node = {.memory_limit = std::int64_t{1} << 30}}};
  testbed::Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 50Mi}"}};
  testbed::CriProxy proxy{testbed, {.undecided = "reject"}};  // so what passes was decided on
  std::string container;
  for (int i = 0; i < options.pods; ++i)
    container =
        proxy.cri().run_pod({.name = fmt::format("pod-{}", i), .containers = {{.args = {"hold", "1Mi"}}}}).container();

  std::vector<ProxiedCall> results;
  for (const auto& kind : kinds_of_calls(testbed.node(), container))
    results.push_back(measure(kind, testbed.cri().calls(), proxy.cri().calls(), options.calls));
  return results;
}

std::string proxy_table(const std::vector<ProxiedCall>& calls, const ProxyOptions& options) {
  auto table = fmt::format(
      "{} calls each way in turn, one after the other; {} pods. Milliseconds, median / p90.\n\n"
      "{:<24}{:>17}{:>17}{:>17}{:>9}{:>9}\n",
      options.calls, options.pods, "call", "directly", "by the proxy", "more", "ratio", "at p90");
  for (const auto& [name, direct, proxied] : calls)
    fmt::format_to(std::back_inserter(table),
                   "{:<24}{:>9.2f} /{:>6.2f}{:>9.2f} /{:>6.2f}{:>9.2f} /{:>6.2f}{:>9.2f}{:>9.2f}\n", name,
                   direct.median, direct.p90, proxied.median, proxied.p90, proxied.median - direct.median,
                   proxied.p90 - direct.p90, proxied.median / direct.median, proxied.p90 / direct.p90);
  return table;
}

std::string proxy_json(const std::vector<ProxiedCall>& calls, const ProxyOptions& options) {
  json::array rows;
  for (const auto& [name, direct, proxied] : calls)
    rows.push_back(json::object{{"call", name}, {"direct", summary_json(direct)}, {"proxied", summary_json(proxied)}});
  return json::serialize(
      json::object{{"bench", "proxy"}, {"calls", options.calls}, {"pods", options.pods}, {"results", std::move(rows)}});
}

}  // namespace bench
