#include "admission/chain.hpp"

#include "admission/eviction_handler.hpp"

namespace evictd::admission {

Decision Chain::admit(const Attributes& attributes) const {
  for (const auto& handler : handlers_)
    if (auto verdict = handler->admit(attributes); !verdict.admitted) return {std::move(verdict), handler->name()};
  return {};
}

Chain kubelet_chain() {
  std::vector<std::unique_ptr<AdmissionHandler>> handlers;
  handlers.push_back(std::make_unique<EvictionHandler>());
  return Chain{std::move(handlers)};
}

}  // namespace evictd::admission
