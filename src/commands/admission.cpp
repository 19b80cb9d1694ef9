#include "commands/admission.hpp"

#include <evictd.pb.h>

#include <utility>
#include <vector>

#include "admission/allocation/machine_topology.hpp"
#include "admission/chain.hpp"
#include "config/chain_settings.hpp"
#include "config/kubelet_configuration.hpp"
#include "core/error.hpp"
#include "core/signal.hpp"
#include "kube/node_mirror.hpp"
#include "node/machine_topology.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;

namespace evictd::commands {
namespace {

bool needs_topology(const config::KubeletConfiguration& kubelet) {
  return kubelet.topology_manager_policy != "none" || kubelet.cpu_manager_policy != "none" ||
         kubelet.memory_manager_policy != "None";
}

Result<admission::ChainSettings> read_settings(const Configuration& configuration) {
  auto topology = node::read_machine_topology();
  if (!topology && needs_topology(configuration.kubelet)) return std::unexpected(topology.error());
  return config::chain_settings(configuration.kubelet, topology.value_or(admission::MachineTopology{}),
                                configuration.agent.admission.devices);
}

struct Made {
  admission::ResourceAllocator allocator;
  admission::Chain chain;
};

Result<Made> make(const Configuration& configuration) {
  const auto settings = read_settings(configuration);
  if (!settings) return std::unexpected(settings.error());
  auto allocator = admission::ResourceAllocator::make(settings->allocation);
  if (!allocator) return std::unexpected(allocator.error());
  auto chain = admission::kubelet_chain(*settings);
  if (!chain) return std::unexpected(chain.error());
  return Made{*std::move(allocator), *std::move(chain)};
}

}  // namespace

Result<std::unique_ptr<Admission>> Admission::prepare(const Configuration& configuration,
                                                      std::int64_t memory_capacity) {
  auto made = make(configuration);
  if (!made) return std::unexpected(made.error());
  std::unique_ptr<Admission> admission{new Admission(configuration, memory_capacity, std::move(made->allocator))};
  admission->chain_.emplace(std::move(made->chain));
  auto loaded = admission->store_->file.load(admission->store_->allocator);
  if (!loaded) return fail(loaded.error(), "stateDirectory");
  if (loaded->set_aside) os::log_warning("stateDirectory: {}", loaded->set_aside->message);
  admission->restored_ = std::move(loaded->allocations);
  return admission;
}

Admission::Admission(const Configuration& configuration, std::int64_t memory_capacity,
                     admission::ResourceAllocator allocator)
    : configuration_{configuration},
      memory_capacity_{memory_capacity},
      store_{std::make_shared<Store>(std::move(allocator),
                                     node::AllocationStore{config::state_files(configuration.agent).allocations})},
      saved_{writer_.get_executor(), [store = store_](const admission::Allocations& allocations) {
               if (const auto saved = store->file.save(allocations, store->allocator); !saved)
                 os::log_warning("stateDirectory: what pods were given is not kept: {}", saved.error().message);
             }} {}

Admission::~Admission() { writer_.finish(); }

void Admission::begin(const Parts& parts) {
  facts_.emplace(configuration_, memory_capacity_, parts.sources.node());
  if (auto* node = parts.sources.node()) node->start();
  const auto node = [this, parts] {
    auto snapshot = facts_->snapshot(parts.reports.capacity(core::Signal::NodefsAvailable));
    snapshot.conditions = parts.agent.synchronizer().conditions();
    snapshot.shutting_down = parts.shutting_down();
    return snapshot;
  };
  admission_.emplace(
      agent::PodAdmission::Parts{.pods = parts.pods,
                                 .evictions = parts.evictions,
                                 .catalog = parts.sources.catalog(),
                                 .recorder = parts.recorder,
                                 .chain = *std::exchange(chain_, std::nullopt),
                                 .node = node,
                                 .changed = [this](const admission::Allocations& given) { saved_.write(given); }},
      std::move(restored_));
}

api::Admitter Admission::admitter() {
  return {.memory_capacity = memory_capacity_, .admit = [this](api::AskedPodsPtr pods, bool reserve) {
            return admission_->admit(std::move(pods), reserve);
          }};
}

Result<void> check_admission(const Configuration& configuration) {
  if (const auto made = make(configuration); !made) return std::unexpected(made.error());
  return {};
}

}  // namespace evictd::commands
