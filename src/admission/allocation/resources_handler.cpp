#include "admission/allocation/resources_handler.hpp"

namespace evictd::admission {

Verdict ResourcesHandler::admit(const Attributes& attributes) {
  auto given = allocator_.allocate(attributes.pod, attributes.node.allocations);
  if (!given) return Verdict::reject(given.error().reason, given.error().message);
  auto verdict = Verdict::admit();
  verdict.allocation = *std::move(given);
  return verdict;
}

}  // namespace evictd::admission
