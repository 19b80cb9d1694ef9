#pragma once
#include "core/pressure.hpp"

namespace evictd::admission {

/// What the handlers know of the node at the moment of the question.
struct NodeSnapshot {
  core::NodeConditions conditions;
};

}  // namespace evictd::admission
