#include "agent/eviction_record.hpp"

#include <chrono>

namespace evictd::agent {

void Turn::mark(std::string_view stage) {
  stages.insert_or_assign(std::string(stage), std::chrono::steady_clock::now() - wake.time);
}

}  // namespace evictd::agent
