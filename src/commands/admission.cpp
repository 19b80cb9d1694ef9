#include "commands/admission.hpp"

#include <utility>

#include "kube/node_mirror.hpp"

namespace evictd::commands {

Result<std::unique_ptr<Admission>> Admission::prepare(const Configuration& configuration,
                                                      std::int64_t memory_capacity) {
  auto chain = admission::kubelet_chain({.allowed_unsafe_sysctls = configuration.kubelet.allowed_unsafe_sysctls});
  if (!chain) return std::unexpected(chain.error());
  return std::unique_ptr<Admission>{new Admission(configuration, memory_capacity, *std::move(chain))};
}

void Admission::begin(const Parts& parts) {
  facts_.emplace(configuration_, memory_capacity_, parts.sources.node());
  if (auto* node = parts.sources.node()) node->start();
  admission_.emplace(
      agent::PodAdmission::Parts{
          .agent = parts.agent,
          .catalog = parts.sources.catalog(),
          .recorder = parts.recorder,
          .chain = *std::move(chain_),
          .node =
              [this, parts] {
                auto node = facts_->snapshot(parts.agent.capacity(core::Signal::NodefsAvailable));
                node.shutting_down = parts.shutting_down();
                return node;
              }},
      admission::Allocations{});
}

api::Admitter Admission::admitter() {
  return {.memory_capacity = memory_capacity_,
          .admit = [this](const std::vector<api::AskedPod>& pods, bool reserve) {
            return admission_->admit(pods, reserve);
          }};
}

}  // namespace evictd::commands
