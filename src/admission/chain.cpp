#include "admission/chain.hpp"

#include <utility>

#include "admission/allocation/resource_allocator.hpp"
#include "admission/allocation/resources_handler.hpp"
#include "admission/apparmor_handler.hpp"
#include "admission/declared_features_handler.hpp"
#include "admission/eviction_handler.hpp"
#include "admission/predicate_handler.hpp"
#include "admission/resize_handler.hpp"
#include "admission/shutdown_handler.hpp"
#include "admission/sysctl_allowlist.hpp"
#include "admission/sysctl_handler.hpp"

namespace evictd::admission {

Decision Chain::admit(const Attributes& attributes) const {
  const auto operation = attributes.operation;
  Decision decision{.verdict = {}, .operation = operation};
  for (const auto& handler : handlers_) {
    if (!handler->is_asked(operation)) continue;
    auto verdict = handler->admit(attributes);
    if (!verdict.admitted) {
      if (operation == Operation::Resize && verdict.reason != infeasible_resize) verdict.reason = deferred_resize;
      decision.verdict = std::move(verdict);
      decision.handler = handler->name();
      return decision;
    }
    decision.admitted_by.push_back(handler->name());
    if (!verdict.preempted.empty()) decision.verdict.preempted = std::move(verdict.preempted);
    if (!verdict.allocation.empty()) decision.verdict.allocation = std::move(verdict.allocation);
  }
  return decision;
}

std::vector<std::string_view> Chain::names(Operation operation) const {
  std::vector<std::string_view> result;
  for (const auto& handler : handlers_)
    if (handler->is_asked(operation)) result.push_back(handler->name());
  return result;
}

Result<Chain> kubelet_chain(const ChainSettings& settings) {
  auto sysctls = SysctlAllowlist::make(settings.allowed_unsafe_sysctls);
  if (!sysctls) return fail(sysctls.error(), "allowedUnsafeSysctls");
  auto allocator = ResourceAllocator::make(settings.allocation);
  if (!allocator) return std::unexpected(allocator.error());

  std::vector<std::unique_ptr<AdmissionHandler>> handlers;
  handlers.push_back(std::make_unique<ResizeHandler>(settings.allocation));
  handlers.push_back(std::make_unique<EvictionHandler>());
  handlers.push_back(std::make_unique<SysctlHandler>(*std::move(sysctls)));
  handlers.push_back(std::make_unique<ResourcesHandler>(*std::move(allocator)));
  handlers.push_back(std::make_unique<PredicateHandler>());
  handlers.push_back(std::make_unique<AppArmorHandler>());
  handlers.push_back(std::make_unique<DeclaredFeaturesHandler>());
  handlers.push_back(std::make_unique<ShutdownHandler>());
  return Chain{std::move(handlers)};
}

}  // namespace evictd::admission
