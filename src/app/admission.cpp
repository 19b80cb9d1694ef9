#include "app/admission.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>

#include <boost/asio/post.hpp>
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
#include "os/boot_id.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;

namespace evictd::app {
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

config::KubeletConfiguration without_allocation(config::KubeletConfiguration kubelet) {
  // A node's CPUs that are reserved are not the pods', whoever hands the others out.
  auto reserved = config::reservations(kubelet);
  kubelet.kube_reserved = std::move(reserved.kube);
  kubelet.system_reserved = std::move(reserved.system);
  config::KubeletConfiguration defaults;
  kubelet.topology_manager_policy = defaults.topology_manager_policy;
  kubelet.topology_manager_scope = defaults.topology_manager_scope;
  kubelet.topology_manager_policy_options.clear();
  kubelet.cpu_manager_policy = defaults.cpu_manager_policy;
  kubelet.cpu_manager_policy_options.clear();
  kubelet.memory_manager_policy = defaults.memory_manager_policy;
  kubelet.reserved_memory.clear();
  kubelet.reserved_system_cpus.clear();
  return kubelet;
}

}  // namespace

void leave_out_impossible_allocation(Configuration& configuration) {
  const auto made = make(configuration);
  if (made) return;
  auto without = configuration;
  without.kubelet = without_allocation(std::move(without.kubelet));
  if (!make(without)) return;
  configuration.kubelet = std::move(without.kubelet);
  configuration.no_allocation = fmt::format(
      "admission gives no CPUs and no memory to pods by the kubelet's policies, for its configuration says what evictd "
      "cannot do: {}",
      made.error().message);
}

void leave_out_allocation(Configuration& configuration) {
  configuration.kubelet = without_allocation(std::move(configuration.kubelet));
  configuration.agent.admission.devices.clear();
  configuration.agent.device_plugins.directory.clear();
}

Result<PreparedAdmission> prepare_admission(const Configuration& configuration) {
  auto made = make(configuration);
  if (!made) return std::unexpected(made.error());
  auto store = std::make_shared<PreparedAdmission::Store>(
      std::move(made->allocator),
      node::AllocationStore{configuration.no_allocation ? std::string{}  // it rests on policies that are left out
                                                        : config::state_files(configuration.agent).allocations,
                            os::read_boot_id()});
  auto loaded = store->file.load(store->allocator);
  if (!loaded) return fail(loaded.error(), "stateDirectory");
  if (loaded->set_aside) os::log_warning("stateDirectory: {}", loaded->set_aside->message);
  return PreparedAdmission{std::move(made->chain), std::move(store), std::move(loaded->allocations),
                           std::move(loaded->coming), std::move(loaded->plugin_resources)};
}

Admission::Admission(const asio::any_io_executor& reactor, const Configuration& configuration, Options options,
                     PreparedAdmission prepared, const Parts& parts)
    : memory_capacity_{options.memory_capacity},
      trusted_{configuration.agent.pod_sources.trusted_namespaces},
      parts_{parts},
      facts_{configuration, memory_capacity_, parts.sources.node()},
      store_{std::move(prepared.store)},
      plugin_resources_{std::move(prepared.plugin_resources)},
      saved_{writer_.get_executor(),
             [store = store_, reactor](const Kept& kept) {
               auto saved = store->file.save(kept.allocations, store->allocator, kept.plugin_resources, kept.coming);
               if (!saved)
                 os::log_warning("stateDirectory: what pods were given is not kept: {}", saved.error().message);
               if (kept.written)
                 asio::post(reactor, [written = kept.written, saved = std::move(saved)] { written(saved); });
             }},
      admission_{{.reactor = reactor,
                  .pods = parts.pods,
                  .evictions = parts.evictions,
                  .catalog = parts.sources.catalog(),
                  .recorder = parts.recorder,
                  .chain = std::move(prepared.chain),
                  .node = *this,
                  .clock = parts.clock,
                  .plugins = parts.plugins != nullptr ? &parts.plugins->plugins() : nullptr},
                 std::move(prepared.restored),
                 std::move(prepared.coming)} {
  if (parts.plugins != nullptr)
    parts.plugins->plugins().when_resources_change([this] { keep(admission_.allocations(), admission_.coming()); });
  if (options.dry_run) return;
  enforcement_ = Enforcement::make(reactor, configuration, {store_, &store_->allocator},
                                   {.runtime = parts.runtime,
                                    .pods = parts.runtime_pods,
                                    .tracker = parts.pods,
                                    .admission = admission_,
                                    .clock = parts.clock});
}

Admission::~Admission() {
  if (parts_.plugins != nullptr) parts_.plugins->plugins().when_resources_change({});
  writer_.finish();
}

admission::NodeSnapshot Admission::snapshot() const {
  auto snapshot = facts_.snapshot(parts_.reports.capacity(core::Signal::NodefsAvailable));
  snapshot.conditions = parts_.reports.conditions();
  if (parts_.plugins != nullptr) snapshot.plugins.groups = parts_.plugins->plugins().devices();
  snapshot.shutting_down = parts_.shutdown != nullptr && parts_.shutdown->shutting_down();
  return snapshot;
}

void Admission::save(const admission::Allocations& allocations, const admission::Coming& coming, Written written) {
  written_ = std::move(written);
  keep(allocations, coming);
  if (enforcement_ != nullptr) enforcement_->allocations_changed();
}

void Admission::keep(const admission::Allocations& allocations, const admission::Coming& coming) {
  if (parts_.plugins != nullptr) plugin_resources_ = parts_.plugins->plugins().resources();
  saved_.write(
      {.allocations = allocations, .coming = coming, .plugin_resources = plugin_resources_, .written = written_});
}

void Admission::start() {
  if (enforcement_ != nullptr) enforcement_->start();
}

void Admission::stop() {
  if (enforcement_ != nullptr) enforcement_->stop();
}

std::unique_ptr<api::AdmissionTask> Admission::admit(api::AdmissionRequestsPtr pods, bool reserve) {
  return admission_.admit(std::move(pods), reserve);
}

Result<void> check_admission(const Configuration& configuration) {
  if (const auto made = make(configuration); !made) return std::unexpected(made.error());
  return {};
}

}  // namespace evictd::app
