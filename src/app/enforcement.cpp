#include "app/enforcement.hpp"

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <filesystem>
#include <utility>

#include "app/find_kubelet.hpp"
#include "async/deadline_thread.hpp"
#include "async/offload.hpp"
#include "config/agent_configuration.hpp"
#include "config/kubelet_configuration.hpp"
#include "kubelet/process.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::app {
namespace {

/// Looking through a thousand processes takes 10 ms.
constexpr core::Duration lookout_patience = 1s;

bool gives_anything(const config::KubeletConfiguration& kubelet) {
  return kubelet.cpu_manager_policy != "none" || kubelet.memory_manager_policy != "None";
}

}  // namespace

/// The kubelet among the node's processes.
class Enforcement::KubeletProcesses final : public agent::KubeletLookout {
 public:
  explicit KubeletProcesses(std::filesystem::path proc) : proc_{std::move(proc)} {}

  [[nodiscard]] asio::awaitable<std::optional<bool>> kubelet_runs() override {
    const auto thread = thread_.get_executor();
    auto look = [proc = proc_] { return kubelet::find_process(proc).has_value(); };
    const auto found = co_await async::offload(thread, std::move(look), os::now() + lookout_patience);
    co_return found;
  }

 private:
  std::filesystem::path proc_;
  async::DeadlineThread thread_{"looking for a kubelet"};
};

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
