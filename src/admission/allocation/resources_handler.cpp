#include "admission/allocation/resources_handler.hpp"

namespace evictd::admission {

Verdict ResourcesHandler::admit(const Attributes& attributes) {
  const bool has_nothing = !attributes.node.allocations.contains(attributes.pod.uid);
  if (attributes.operation == Operation::Resize && has_nothing) return Verdict::admit();
  auto given = allocator_.allocate(attributes.pod, attributes.node.allocations, attributes.node.plugins);
  if (!given) return Verdict::reject(given.error().reason, given.error().message);
  auto verdict = Verdict::admit();
  verdict.allocation = *std::move(given);
  return verdict;
}

}  // namespace evictd::admission
