#include "admission/shutdown_handler.hpp"

namespace evictd::admission {

Verdict ShutdownHandler::admit(const Attributes& attributes) {
  if (!attributes.node.shutting_down) return Verdict::admit();
  return Verdict::reject("NodeShutdown", "Pod was rejected as the node is shutting down.");
}

}  // namespace evictd::admission
