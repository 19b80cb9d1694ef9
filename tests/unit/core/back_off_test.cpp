#include "core/back_off.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::core {
namespace {

using namespace std::chrono_literals;
using fixture::pods;

Pod named(std::string name, std::string uid) {
  auto pod = fixture::pod(std::move(name));
  pod.uid = std::move(uid);
  return pod;
}

constexpr Instant at(Duration time) { return Instant{time}; }

}  // namespace

TEST_CASE("pods of one controller share all but the generated end of their names") {
  CHECK(controller_of(named("web-5d4f8c7b6-x2x9z", "1")) == controller_of(named("web-5d4f8c7b6-kq7lm", "2")));
  CHECK(controller_of(named("agent-bcdfg", "1")) == "default/agent");
  CHECK(controller_of(named("db-0", "1")) == "default/db-0");
  CHECK(controller_of(named("mail-queue", "1")) == "default/mail-queue");  // vowels are never generated
  CHECK(controller_of(named("-bcdfg", "1")) == "default/-bcdfg");
}

TEST_CASE("a pod that comes straight back is held for the time, those that were there before are not") {
  BackOff back_off{5min};
  const auto first = named("agent-bcdfg", "1");
  const auto sibling = named("agent-zzzzz", "2");
  const auto successor = named("agent-22222", "3");
  back_off.pods_changed(pods({first, sibling}), at(0s));
  back_off.evicted(first, at(10s));
  back_off.pods_changed(pods({sibling, successor}), at(11s));
  CHECK(back_off.holds(successor, at(11s)));
  CHECK_FALSE(back_off.holds(sibling, at(11s)));
  back_off.pods_changed(pods({sibling, successor}), at(12s));
  CHECK(back_off.holds(successor, at(5min)));
  CHECK_FALSE(back_off.holds(successor, at(5min + 10s)));
}

TEST_CASE("a pod of the same name is held as well, one that comes later is not") {
  BackOff back_off{1min};
  const auto pod = named("db-0", "1");
  back_off.pods_changed(pods({pod}), at(0s));
  back_off.evicted(pod, at(0s));
  back_off.pods_changed({}, at(1s));
  back_off.pods_changed(pods({named("db-0", "2")}), at(59s));
  CHECK(back_off.holds(named("db-0", "2"), at(59s)));
  back_off.pods_changed({}, at(60s));
  back_off.pods_changed(pods({named("db-0", "3")}), at(61s));
  CHECK_FALSE(back_off.holds(named("db-0", "3"), at(61s)));
}

TEST_CASE("without a time nobody is held") {
  BackOff back_off{0s};
  const auto pod = named("db-0", "1");
  back_off.evicted(pod, at(0s));
  back_off.pods_changed(pods({pod}), at(0s));
  CHECK_FALSE(back_off.holds(pod, at(0s)));
}

}  // namespace evictd::core
