#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/commands.hpp"
#include "core/pod.hpp"
#include "testbed/agent.hpp"
#include "testbed/calls.hpp"
#include "testbed/cri_proxy.hpp"
#include "testbed/failure.hpp"
#include "testbed/node_cgroup.hpp"
#include "testbed/testbed.hpp"

namespace bench {

namespace cri = runtime::v1;

namespace {

struct ProxyOptions {
  int trials = 2000;  ///< calls of each kind, each way
  int pods = 10;      ///< that containerd lists
};

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

Row measure(const Kind& kind, const Calls& directly, const Calls& through, int calls) {
  constexpr int warm_up = 20;  // connections, caches
  std::vector<double> direct;
  std::vector<double> proxied;
  for (int i = -warm_up; i < calls; ++i) {
    const std::array times{milliseconds_of(kind, directly), milliseconds_of(kind, through)};
    if (i < 0) continue;
    direct.push_back(times[0]);
    proxied.push_back(times[1]);
  }
  const auto without = summarize(std::move(direct));
  const auto with = summarize(std::move(proxied));
  const Summary more{.median = with.median - without.median, .p90 = with.p90 - without.p90};
  const auto object = [](const Summary& of) {
    return json_of({{"medianMs", of.median}, {"p90Ms", of.p90}, {"maxMs", of.max}});
  };
  return {{"call", "call", kind.name},
          {"direct", "directly", object(without), "{medianMs:.2f} / {p90Ms:.2f}"},
          {"proxied", "by the proxy", object(with), "{medianMs:.2f} / {p90Ms:.2f}"},
          {"", "more", more, "{median:.2f} / {p90:.2f}"},
          {"", "ratio", with.median / without.median, "{:.2f}"},
          {"", "at p90", with.p90 / without.p90, "{:.2f}"}};
}

/// By one client, directly and through the proxy in turn. The last kind asks for a sandbox, with a runtime handler that
/// containerd refuses at once: what the agent's answer takes is in it, and no pod's start.
Report measure_proxy(const ProxyOptions& options) {
  testbed::Testbed testbed{{.node = {.memory_limit = std::int64_t{1} << 30}}};
  testbed::Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 50Mi}"}};
  testbed::CriProxy proxy{testbed, {.undecided = "reject"}};  // so what passes was decided on
  std::string container;
  for (int i = 0; i < options.pods; ++i)
    container =
        proxy.cri().run_pod({.name = fmt::format("pod-{}", i), .containers = {{.args = {"hold", "1Mi"}}}}).container();

  std::vector<Row> rows;
  for (const auto& kind : kinds_of_calls(testbed.node(), container))
    rows.push_back(measure(kind, testbed.cri().calls(), proxy.cri().calls(), options.trials));
  return report_of("proxy",
                   fmt::format("{} calls each way in turn, one after the other; {} pods. Milliseconds, median / p90.",
                               options.trials, options.pods),
                   rows, {{"calls", options.trials}, {"pods", options.pods}});
}

}  // namespace

void add_proxy(Commands& commands) {
  commands.add(
      {"proxy", "what evictd cri-proxy adds to a call", "calls of each kind, each way"}, measure_proxy,
      [](auto& command, auto& options) { number(command, "--pods", options.pods, "that containerd lists", 1, 200); });
}

}  // namespace bench
