#include "core/displacement.hpp"

namespace evictd::core {

std::string_view name(Displacement displacement) {
  switch (displacement) {
    case Displacement::Preemption: return "preemption";
    case Displacement::NodeShutdown: return "shutdown";
  }
  return "";
}

}  // namespace evictd::core
