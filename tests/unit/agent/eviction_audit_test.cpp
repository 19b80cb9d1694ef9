#include "agent/eviction_audit.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "fixture/node.hpp"
#include "fixture/pods.hpp"

namespace evictd::agent::eviction_audit_test {
namespace {

using namespace std::chrono_literals;
using fixture::pod;
using fixture::with_priority;

core::PodPtr shared(core::Pod pod) { return std::make_shared<const core::Pod>(std::move(pod)); }

evict::EvictionRecord record() {
  const auto hog = shared(with_priority(pod("hog"), 5));
  return {{.pod = hog,
           .cause = core::Signal::MemoryAvailable,
           .grace_period = 1500ms,
           .ranking = {{.pod = hog, .usage = 300, .request = 100}, {.pod = shared(pod("meek")), .usage = 20}}},
          {},
          42,
          {.wake = {.time = {}, .reasons = {{core::WakeSource::Memcg, "", {}}}},
           .stages = {{core::Stage::FirstRelease, 12ms}}}};
}

std::string field(const evict::EvictionRecord& record, const std::string& name) {
  for (const auto& [key, value] : eviction_fields(record, "cleaned up"))
    if (key == name) return value;
  return "none";
}

}  // namespace

TEST_CASE("an eviction's journal entry says who went, why, before whom, and how long it took") {
  CHECK(field(record(), "EVICTD_EVICTION") == "42");
  CHECK(field(record(), "EVICTD_POD") == "default/hog");
  CHECK(field(record(), "EVICTD_REASON") == "Evicted");
  CHECK(field(record(), "EVICTD_SIGNAL") == "memory.available");
  CHECK(field(record(), "EVICTD_WAKE_SOURCE") == "memcg");
  CHECK(field(record(), "EVICTD_OUTCOME") == "cleaned up");
  CHECK(field(record(), "EVICTD_RANKING") ==
        "default/hog usage=300 request=100 priority=5; default/meek usage=20 request=0 priority=0");
  CHECK(field(record(), "EVICTD_STAGE_FIRST_RELEASE_USEC") == "12000");
  CHECK(field(record(), "EVICTD_GRACE_PERIOD_SEC") == "2");
}

TEST_CASE("what the pod held is in the entry where it was seen") {
  CHECK(field(record(), "EVICTD_HELD") == "none");
  auto seen = record();
  seen.snapshot = std::make_shared<const node::PodMemorySnapshot>(node::PodMemorySnapshot{
      .processes = {{"postgres", 300, 200, 50}, {"sh", 10, 10, 0}}, .rows = {{"anon", 210}, {"shmem", 50}}});
  CHECK(field(seen, "EVICTD_HELD") == "anon=210 shmem=50");
  CHECK(field(seen, "EVICTD_HELD_PROCESSES") == "postgres=300; sh=10");
}

TEST_CASE("the threshold is named where one acted, and not for a limit of the pod's own") {
  CHECK(field(record(), "EVICTD_THRESHOLD") == "none");
  auto acted = record();
  acted.acted = core::Acted{fixture::threshold(core::Signal::MemoryAvailable, "1Gi"), {.available = 7, .capacity = 9}};
  CHECK(field(acted, "EVICTD_THRESHOLD") == "memory.available<1Gi");
  CHECK(field(acted, "EVICTD_AVAILABLE") == "7");
  CHECK(field(acted, "EVICTD_CAPACITY") == "9");
}

}  // namespace evictd::agent::eviction_audit_test
