#include <doctest/doctest.h>
#include <fmt/format.h>

#include "api/temporary_directory.hpp"
#include "fault_scene.hpp"
#include "testbed/fake_hook.hpp"

namespace integration::faults_hooks_test {

using evictd::test::TemporaryDirectory;
using testbed::FakeHook;
namespace hook_does = testbed::hook_does;

TEST_SUITE_BEGIN("faults");

TEST_CASE("hooks before the kill hang, lie, die and pour: the pod is dead once their time is over") {
  const TemporaryDirectory directory;
  const FakeHook hangs{directory / "hangs", hook_does::hang};
  const FakeHook dies{directory / "dies", hook_does::leave};
  const FakeHook lies{directory / "lies",
                      [](FakeHook&, int connection, const std::string&) { FakeHook::answer(connection, "[[[["); }};
  const FakeHook pours{directory / "pours",
                       [](FakeHook& hook, int connection, const std::string&) { hook.pour(connection); }};
  FaultScene scene{{.thresholds = "evictionHard: {memory.available: 300Mi}",
                    .eviction = fmt::format("hooks: {{time: 1s, directory: {}}}", directory.path().native())}};
  scene.cross();
  scene.wait_until_dead();
  scene.wait_until_cleaned();
  scene.check();
}

TEST_SUITE_END();

}  // namespace integration::faults_hooks_test
