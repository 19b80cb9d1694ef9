#include "core/action.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "fixture/node.hpp"

namespace evictd::core::action_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;

const Acted acted{fixture::threshold(MemoryAvailable, "1Gi"), {.available = 5, .capacity = 10}};

std::string printed(const Actions& actions) {
  std::ostringstream out;
  out << actions;
  return out.str();
}

}  // namespace

TEST_CASE("actions print as one line, so that a failing test can be read") {
  const auto pod = fixture::pods({fixture::pod("a")}).front();
  CHECK(printed({}) == "[]");
  CHECK(printed({ReadPodUsage{.measure = Measure::Memory, .pods = {}}}) == "[read pod usage: memory]");
  CHECK(printed({ReadPodUsage{.measure = Measure::LocalStorageLimits, .pods = {}}}) ==
        "[read pod usage: local storage limits]");
  CHECK(printed({ReclaimNode{.threshold = acted.threshold, .containers = true, .images = true}}) ==
        "[reclaim node: containers images]");
  CHECK(printed({Eviction{.pod = pod, .cause = MemoryAvailable, .grace_period = 5s, .message = {}}}) ==
        "[evict default/a (memory.available, grace 5s)]");
  CHECK(printed({NoVictim{acted, {}}, Recovered{acted}}) ==
        "[no victim for memory.available<1Gi; recovered: memory.available<1Gi]");
  CHECK(printed({ReportCrossing{acted}}) == "[crossed memory.available<1Gi]");
  CHECK(printed({ReportConditions{{NodeCondition::MemoryPressure, NodeCondition::DiskPressure}}, ReportConditions{}}) ==
        "[conditions [DiskPressure MemoryPressure]; conditions []]");
  CHECK(printed({WakeAt{Instant{90s}}, WakeAt{}}) == "[wake at 1m30s; wake at no time]");
  CHECK(printed({ArmLevels{{{MemoryAvailable, 100}, {PidAvailable, 5}}}}) ==
        "[arm memory.available<100 pid.available<5]");
}

TEST_CASE("what walks disks or removes images takes time; all else is done at once") {
  CHECK(takes_time(ReclaimNode{}));
  CHECK(takes_time(ReadPodUsage{.measure = Measure::Disk, .pods = {}}));
  for (const auto measure : {Measure::Memory, Measure::Processes, Measure::LocalStorageLimits})
    CHECK_FALSE(takes_time(ReadPodUsage{.measure = measure, .pods = {}}));
  CHECK_FALSE(takes_time(WakeAt{}));
}

TEST_CASE("a cause is named as the kubelet's metrics name it") {
  CHECK(name(EvictionCause{NodefsInodesFree}) == "nodefs.inodesFree");
  CHECK(name(EvictionCause{LocalStorageLimit::Container}) == "ephemeralcontainerfs.limit");
  CHECK(name(EvictionCause{Displacement::Preemption}) == "preemption");
  CHECK(name(EvictionCause{Displacement::NodeShutdown}) == "shutdown");
}

TEST_CASE("the reason is the one that the kubelet writes into the pod's status") {
  CHECK(reason(EvictionCause{MemoryAvailable}) == "Evicted");
  CHECK(reason(EvictionCause{LocalStorageLimit::Pod}) == "Evicted");
  CHECK(reason(EvictionCause{Displacement::Preemption}) == "Preempting");
  CHECK(reason(EvictionCause{Displacement::NodeShutdown}) == "Terminated");
}

}  // namespace evictd::core::action_test
