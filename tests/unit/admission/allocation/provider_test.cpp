#include "admission/allocation/provider.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "fixture/machines.hpp"

namespace evictd::admission::provider_test {
namespace {

using fixture::as_sidecar;
using fixture::container;
using fixture::pod;
using fixture::with_init;

}  // namespace

TEST_CASE("what a pod needs at once is what stays, or its largest init container beside the sidecars before it") {
  const std::map<std::string, std::int64_t> amounts{{"side", 1}, {"init", 9}, {"late", 4}, {"a", 2}, {"b", 3}};
  const auto needed = [&](const core::Pod& pod) {
    return needed_at_once(pod, [&](const core::Container& each) { return amounts.at(each.name); });
  };
  const auto running = pod("p", {container("a"), container("b")});
  CHECK(needed(running) == 5);
  CHECK(needed(with_init(running, {container("init")})) == 9);
  CHECK(needed(with_init(running, {as_sidecar(container("side")), container("init")})) == 10);
  CHECK(needed(with_init(running, {container("init"), as_sidecar(container("side"))})) == 9);
  CHECK(needed(with_init(running, {as_sidecar(container("side")), container("late")})) == 6);
}

TEST_CASE("a pod may ask for more than can be counted") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  const auto all = [](const core::Container&) { return most; };
  const auto two = pod("p", {container("a"), container("b")});
  CHECK(needed_at_once(two, all) == most);
  const auto beside = with_init(pod("p", {container("a")}), {as_sidecar(container("side")), container("init")});
  CHECK(needed_at_once(beside, all) == most);
}

}  // namespace evictd::admission::provider_test
