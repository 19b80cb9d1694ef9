#include "node/processor_time.hpp"

#include <doctest/doctest.h>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"

namespace evictd::node::processor_time_test {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::value_of;

TEST_CASE("processor time is that of cpu.stat, or of the hierarchy that v1 has for it") {
  const fixture::Tree two{
      fixture::v2_node({}, 0, {dir("kubepods", {file("cpu.stat", "usage_usec 1500\nuser_usec 1000\n"), dir("poda")})})};
  const auto unified = value_of(CgroupHierarchy::detect(two.path("cgroup")));
  CHECK(value_of(processor_time(unified, "/kubepods")) == 1500us);
  CHECK(processor_time(unified, "/kubepods/poda").error().is_gone());

  const fixture::Tree one{fixture::v1_node({}, {}, {dir("kubepods")})};
  const auto hierarchy = value_of(CgroupHierarchy::detect(one.path("cgroup")));
  CHECK(processor_time(hierarchy, "/kubepods").error().is_gone());
  one.add("cgroup", dir("cpuacct", {dir("kubepods", {file("cpuacct.usage", "2500000\n")})}));
  CHECK(value_of(processor_time(hierarchy, "/kubepods")) == 2500us);
}

}  // namespace evictd::node::processor_time_test
