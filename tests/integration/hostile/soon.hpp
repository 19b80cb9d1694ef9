#pragma once
#include <doctest/doctest.h>

#include <chrono>

#include "fault_scene.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

// The suite "hostile": something around evictd does not behave while the node runs short. Expected in each case: the
// right pod goes soon, and nobody else does.

namespace integration {

/// The limit within which the right pod is dead once the node is short of something. It goes within milliseconds where
/// nothing is in the way; the rest is for a machine that is busy, slow to give memory, or both.
inline constexpr std::chrono::seconds soon{30};

/// The hog crosses the threshold now; it alone goes, and soon. evictd's API is not asked: it may be what is held up.
inline void expect_hog_goes_soon(FaultScene& scene) {
  scene.cross();
  testbed::wait_until("the hog's processes are dead", soon,
                      [&] { return !has_processes(scene.testbed, scene.hog->running); });
  CHECK(has_processes(scene.testbed, scene.chill));
  CHECK(has_processes(scene.testbed, scene.vital));
}

}  // namespace integration
