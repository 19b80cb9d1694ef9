#include "wake/memcg_event.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>

#include "fixture/patience.hpp"
#include "fixture/real_cgroup.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

using namespace std::chrono_literals;

namespace evictd::wake::memcg_event_test {

using fixture::dir;
using fixture::file;
using fixture::own_cgroup;
using fixture::real_hierarchy;
using fixture::RealCgroup;
using fixture::Tree;
using fixture::value_of;

TEST_SUITE("real cgroups") {
  TEST_CASE("a registration tells of its cgroup's removal, is void from then on, and can be made anew") {
    SKIP_IF(fixture::no_real_cgroups());
    if (real_hierarchy().version() == node::CgroupVersion::v2) return;
    const RealCgroup cgroup{own_cgroup("-event")};
    const auto hierarchy = real_hierarchy();
    boost::asio::io_context reactor{1};
    MemcgEvent event{reactor.get_executor()};
    CHECK_FALSE(event.is_open());
    CHECK_FALSE(event.is_void());
    int spoken = 0;
    const auto open = [&] {
      return event.open(value_of(hierarchy.memory(cgroup.path())), "memory.usage_in_bytes", "1048576", [&] {
        ++spoken;
        event.close();  // which is permitted here
      });
    };
    REQUIRE(open());
    reactor.run_for(20ms);
    CHECK(event.is_open());
    CHECK_FALSE(event.is_void());
    CHECK(spoken == 0);

    cgroup.remove();
    CHECK(event.is_void());
    reactor.restart();
    // The kernel tells of it once it comes to take the cgroup apart.
    for (const auto give_up = std::chrono::steady_clock::now() + test::patience;
         spoken == 0 && std::chrono::steady_clock::now() < give_up; reactor.restart())
      reactor.run_for(10ms);
    CHECK(spoken == 1);
    CHECK_FALSE(event.is_open());

    cgroup.make();
    REQUIRE(open());
    CHECK_FALSE(event.is_void());
  }
}

TEST_CASE("a file that a cgroup lacks is the kernel's lack, and what was registered stays") {
  const Tree tree{dir("memory", {file("memory.usage_in_bytes", "0\n"), dir("node")})};
  const auto hierarchy = value_of(node::CgroupHierarchy::detect(tree.path()));
  boost::asio::io_context reactor{1};
  MemcgEvent event{reactor.get_executor()};
  const auto opened = event.open(value_of(hierarchy.memory("/node")), "memory.oom_control", "", [] {});
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == EOPNOTSUPP);
  CHECK_FALSE(event.is_open());
}

}  // namespace evictd::wake::memcg_event_test
