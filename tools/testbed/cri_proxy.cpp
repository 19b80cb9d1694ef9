#include "testbed/cri_proxy.hpp"

#include <fmt/format.h>

#include <chrono>

#include "testbed/channel.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

using namespace std::chrono_literals;

namespace testbed {

CriProxy::CriProxy(Testbed& testbed, const Options& options)
    : socket_{testbed.directory() / "cri.sock"}, process_{start(testbed, options)}, cri_{socket_, testbed.node()} {
  const auto channel = channel_to("unix:" + socket_.native());
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + patient(60s)))
    fail("evictd cri-proxy takes no calls; it said: " + process_.errors());
}

Process CriProxy::start(Testbed& testbed, const Options& options) const {
  const auto file = testbed.directory() / "cri-proxy.yaml";
  const auto kubelet_file = testbed.directory() / "cri-proxy-kubelet.yaml";
  replace_file(file, fmt::format(R"(apiVersion: evictd.io/v1alpha1
kind: AgentConfiguration
runtimeDirectory: {}
cri: {{endpoint: "{}"}}
criProxy: {{undecided: {}, timeout: {}ms}}
)",
                                 testbed.directory().native(), testbed.containerd().address(), options.undecided,
                                 patient(2s).count()));
  replace_file(kubelet_file, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n");
  return testbed.spawn({evictd_program(), "cri-proxy", "--config", file, "--kubelet-config", kubelet_file},
                       {.environment = options.environment});
}

}  // namespace testbed
