#include "app/enforcement.hpp"

#include <utility>

#include "app/find_kubelet.hpp"
#include "config/agent_configuration.hpp"
#include "config/kubelet_configuration.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;

namespace evictd::app {
namespace {

bool gives_anything(const config::KubeletConfiguration& kubelet) {
  return kubelet.cpu_manager_policy != "none" || kubelet.memory_manager_policy != "None";
}

}  // namespace

Enforcement::~Enforcement() = default;

std::unique_ptr<Enforcement> Enforcement::make(const asio::any_io_executor& reactor, const Configuration& configuration,
                                               std::shared_ptr<const admission::ResourceAllocator> allocator,
                                               const Parts& parts) {
  using enum config::InKubeletsPlace;
  const auto& agent = configuration.agent;
  const auto enforce = agent.admission.enforce;
  if (enforce == Off || !gives_anything(configuration.kubelet)) return nullptr;
  if (enforce == Auto && names_kubelet(agent)) return nullptr;
  std::unique_ptr<Enforcement> made{new Enforcement};
  made->allocator_ = std::move(allocator);
  if (enforce == Auto) made->kubelet_ = std::make_unique<KubeletProcesses>(agent.node.proc_mount);
  made->enforcer_.emplace(reactor, agent::AllocationEnforcer::Parts{.runtime = parts.runtime,
                                                                    .pods = parts.pods,
                                                                    .tracker = parts.tracker,
                                                                    .admission = parts.admission,
                                                                    .allocator = *made->allocator_,
                                                                    .clock = parts.clock,
                                                                    .kubelet = made->kubelet_.get()});
  return made;
}

void Enforcement::start() {
  os::log_info("containers are confined to the CPUs and the memory that admission gives them{}",
               kubelet_ != nullptr ? ", as long as no kubelet runs" : "");
  enforcer_->start();
}

}  // namespace evictd::app
