#pragma once
#include "core/event.hpp"
#include "evict/eviction_record.hpp"

namespace evictd::agent {

/// The state machine, for parts that learn of something that it has to know. On the reactor.
class Decisions {
 public:
  Decisions() = default;
  Decisions(const Decisions&) = delete;
  Decisions& operator=(const Decisions&) = delete;
  virtual ~Decisions() = default;

  /// Tells it. Nothing is done because of it before the next pass.
  virtual void tell(const core::Event& event, core::Turn& turn) = 0;
};

}  // namespace evictd::agent
