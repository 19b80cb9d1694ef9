#include "agent/kept_allocations.hpp"

#include <doctest/doctest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/fake_clock.hpp"
#include "fixture/pods.hpp"
#include "fixture/result.hpp"

namespace evictd::agent::kept_allocations_test {
namespace {

using namespace std::chrono_literals;

/// A node whose writes end when the test has them end.
struct FakeNode final : AdmittingNode {
  [[nodiscard]] admission::NodeSnapshot snapshot() const override { return {}; }
  void save(const admission::Allocations& allocations, const admission::Coming& awaited, Written written) override {
    saved.push_back(allocations);
    coming = awaited;
    writes.push_back(std::move(written));
  }

  std::vector<admission::Allocations> saved;
  admission::Coming coming;  // as it was saved last
  std::vector<Written> writes;
};

admission::PodAllocation cpu(int number) { return {{"main", {.cpus = {number}}}}; }

/// "a" was given CPU 1 before the restart.
struct Scene {
  KeptAllocations& kept() { return *allocations; }
  /// Begins to wait for what these have.
  void wait_for(std::vector<std::string> uids) {
    outcome.reset();
    boost::asio::co_spawn(reactor, allocations->written(std::move(uids)),
                          [this](const std::exception_ptr& thrown, Result<void> result) {
                            if (thrown) std::rethrow_exception(thrown);
                            outcome = std::move(result);
                          });
    clock.settle();
  }
  /// The save, from 0 on, comes to this.
  void end(std::size_t save, const Result<void>& result = {}) {
    node.writes.at(save)(result);
    clock.settle();
  }

  boost::asio::io_context reactor{1};
  FakeClock clock{reactor};
  FakeNode node;
  std::optional<KeptAllocations> allocations{std::in_place, KeptAllocations::Parts{reactor.get_executor(), node, clock},
                                             admission::Allocations{{"a", cpu(1)}}, admission::Coming{}};
  std::optional<Result<void>> outcome;  // absent: it is waited for
};

}  // namespace

TEST_CASE("what was kept over a restart is written, and so is what a pod without anything has") {
  Scene scene;
  CHECK(scene.kept().is_written("a"));
  CHECK(scene.kept().is_written("stranger"));
  scene.wait_for({"a", "stranger"});
  REQUIRE(scene.outcome);
  CHECK(scene.outcome->has_value());
  scene.wait_for({});
  CHECK(scene.outcome);
  CHECK(scene.node.saved.empty());
}

TEST_CASE("only what has changed is saved") {
  Scene scene;
  scene.kept().give("a", cpu(1));
  scene.kept().give("b", {});
  CHECK(scene.kept().keep_edits("a", cpu(1)).has_value());
  CHECK(scene.node.saved.empty());
  scene.kept().give("b", cpu(2));
  scene.kept().give("b", {});
  REQUIRE(scene.node.saved.size() == 2);
  CHECK(scene.node.saved[0] == admission::Allocations{{"a", cpu(1)}, {"b", cpu(2)}});
  CHECK(scene.node.saved[1] == admission::Allocations{{"a", cpu(1)}});
}

TEST_CASE("what a pod was given is written once a save is that has it, its own or a later one") {
  Scene scene;
  scene.kept().give("b", cpu(2));
  scene.kept().give("c", cpu(3));
  scene.wait_for({"c"});
  scene.end(0);
  CHECK_FALSE(scene.outcome);
  CHECK(scene.kept().is_written("b"));
  CHECK_FALSE(scene.kept().is_written("c"));
  scene.kept().give("d", cpu(4));
  scene.end(2);
  REQUIRE(scene.outcome);
  CHECK(scene.outcome->has_value());
  CHECK(scene.kept().is_written("c"));
  CHECK(scene.kept().is_written("d"));
}

TEST_CASE("a pod that is given more waits anew") {
  Scene scene;
  scene.kept().give("a", cpu(2));
  CHECK_FALSE(scene.kept().is_written("a"));
  scene.wait_for({"a"});
  CHECK_FALSE(scene.outcome);
  scene.end(0);
  CHECK(scene.outcome);
}

TEST_CASE("a write that fails is told to all who wait for it, and not to those whom an earlier one has written") {
  Scene scene;
  scene.kept().give("b", cpu(2));
  scene.end(0);
  scene.kept().give("c", cpu(3));
  scene.wait_for({"b", "c"});
  CHECK_FALSE(scene.outcome);
  scene.end(1, fail("no space"));
  REQUIRE(scene.outcome);
  CHECK(fixture::error_of(*scene.outcome) == "writing what the pod was given: no space");
  CHECK(scene.kept().is_written("b"));
  CHECK_FALSE(scene.kept().is_written("c"));
}

TEST_CASE("what failed to be written is tried again for the next who waits for it") {
  Scene scene;
  scene.kept().give("b", cpu(2));
  scene.end(0, fail("no space"));
  scene.wait_for({"b"});
  CHECK_FALSE(scene.outcome);
  REQUIRE(scene.node.saved.size() == 2);
  // Beside one that is tried already no other is.
  scene.wait_for({"b"});
  CHECK(scene.node.saved.size() == 2);
  scene.end(1);
  REQUIRE(scene.outcome);
  CHECK(scene.outcome->has_value());
}

TEST_CASE("a write is waited for until the limit, and one that ends later counts from then on") {
  Scene scene;
  scene.kept().give("b", cpu(2));
  scene.wait_for({"b"});
  scene.clock.advance(longest_write - 1s);
  CHECK_FALSE(scene.outcome);
  scene.clock.advance(1s);
  REQUIRE(scene.outcome);
  CHECK(fixture::error_of(*scene.outcome) == "writing what the pod was given, which took longer than 5s");
  CHECK_FALSE(scene.kept().is_written("b"));
  scene.end(0);
  CHECK(scene.kept().is_written("b"));
}

TEST_CASE("what a pod was given that had not come yet when evictd ended is kept for it, and not for longer") {
  Scene scene;
  const auto until = scene.clock.now() + 5min;
  scene.allocations.emplace(KeptAllocations::Parts{scene.reactor.get_executor(), scene.node, scene.clock},
                            admission::Allocations{{"a", cpu(1)}, {"gone", cpu(2)}, {"n1/late", cpu(3)}},
                            admission::Coming{{"a", until}, {"n1/late", until}});
  scene.kept().pods_changed({});
  CHECK(scene.kept().all() == admission::Allocations{{"a", cpu(1)}, {"n1/late", cpu(3)}});
  SUBCASE("it comes, and goes") {
    scene.kept().pods_changed(fixture::pods({fixture::pod("a")}));
    CHECK(scene.kept().coming() == admission::Coming{{"n1/late", until}});
    scene.kept().pods_changed({});
    CHECK(scene.kept().all() == admission::Allocations{{"n1/late", cpu(3)}});
  }
  SUBCASE("it is awaited in vain") {
    scene.clock.advance(5min);
    scene.kept().pods_changed({});
    CHECK(scene.kept().all().empty());
    CHECK(scene.kept().coming().empty());
  }
  SUBCASE("it is given something else while it is awaited, or nothing") {
    scene.kept().give("a", cpu(4));
    CHECK(scene.kept().coming().at("a") == until);
    scene.kept().give("a", cpu(4), until + 1min);
    CHECK(scene.kept().coming().at("a") == until + 1min);
    scene.kept().give("a", {});
    CHECK_FALSE(scene.kept().coming().contains("a"));
  }
}

TEST_CASE("what is promised anew is written anew") {
  Scene scene;
  const auto until = scene.clock.now() + 5min;
  scene.kept().give("b", cpu(2), until);
  scene.end(0);
  scene.kept().give("b", cpu(2), until);
  CHECK(scene.node.saved.size() == 1);
  scene.kept().give("b", cpu(2), until + 1min);
  REQUIRE(scene.node.saved.size() == 2);
  CHECK(scene.node.coming == admission::Coming{{"b", until + 1min}});
  CHECK_FALSE(scene.kept().is_written("b"));
  scene.end(1);
  CHECK(scene.kept().is_written("b"));

  // One that a list names has it for as long as it is there.
  scene.kept().pods_changed(fixture::pods({fixture::pod("a"), fixture::pod("b")}));
  scene.kept().give("b", cpu(2), until + 2min);
  scene.kept().give("b", cpu(2), until + 3min);
  CHECK(scene.node.saved.size() == 2);
  CHECK(scene.kept().is_written("b"));
}

TEST_CASE("what is kept by name is not lost to an earlier pod of that name") {
  Scene scene;
  const auto until = scene.clock.now() + 5min;
  const auto named_a = [](const char* uid) {
    auto pod = fixture::pod("a");
    pod.name_space = "shop";
    pod.uid = uid;
    return pod;
  };
  scene.kept().give("shop/a", cpu(2), until);
  scene.kept().pods_changed(fixture::pods({named_a("a")}));
  CHECK(scene.kept().all() == admission::Allocations{{"a", cpu(1)}, {"shop/a", cpu(2)}});
  CHECK(scene.kept().coming() == admission::Coming{{"shop/a", until}});
  SUBCASE("the later one comes beside it") {
    scene.kept().pods_changed(fixture::pods({named_a("a"), named_a("a2")}));
    CHECK(scene.kept().all() == admission::Allocations{{"a", cpu(1)}, {"a2", cpu(2)}});
  }
  SUBCASE("the later one comes when it has gone") {
    scene.kept().pods_changed({});
    scene.kept().pods_changed(fixture::pods({named_a("a2")}));
    CHECK(scene.kept().all() == admission::Allocations{{"a2", cpu(2)}});
  }
  SUBCASE("no other one comes") {
    scene.clock.advance(5min);
    scene.kept().pods_changed(fixture::pods({named_a("a")}));
    CHECK(scene.kept().all() == admission::Allocations{{"a", cpu(1)}});
  }
}

TEST_CASE("those who wait may outlive it, and so may a write") {
  Scene scene;
  scene.kept().give("b", cpu(2));
  SUBCASE("one who waits until the write has ended") {
    scene.wait_for({"b"});
    scene.allocations.reset();
    scene.end(0);
    CHECK(scene.outcome);
  }
  SUBCASE("one who waits in vain") {
    scene.wait_for({"b"});
    scene.allocations.reset();
    scene.clock.advance(longest_write);
    CHECK(scene.outcome);
    scene.end(0);
  }
  SUBCASE("a write for which nobody waits") {
    scene.allocations.reset();
    scene.end(0);
  }
}

TEST_CASE("a pod that has gone has nothing to be written any more; one that gets its uid has") {
  Scene scene;
  auto named = fixture::pod("late");
  named.name_space = "shop";
  scene.kept().give("a", cpu(1), scene.clock.now() + 5min);
  scene.kept().give("b", cpu(2));
  scene.kept().give("shop/late", cpu(3));
  scene.end(1, fail("no space"));
  scene.kept().pods_changed({std::make_shared<const core::Pod>(named)});
  CHECK(scene.kept().all() == admission::Allocations{{"a", cpu(1)}, {"late", cpu(3)}});
  CHECK(scene.node.saved.size() == 3);
  CHECK(scene.kept().is_written("b"));
  CHECK_FALSE(scene.kept().is_written("late"));
  scene.end(2);
  CHECK(scene.kept().is_written("late"));
}

}  // namespace evictd::agent::kept_allocations_test
