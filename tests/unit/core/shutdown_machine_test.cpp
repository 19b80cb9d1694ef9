#include "core/shutdown_machine.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "fixture/pods.hpp"

namespace evictd::core::shutdown_machine_test {
namespace {

using namespace std::chrono_literals;

Instant at(Duration time) { return Instant{time}; }

PodPtr pod_of(std::string name, std::int32_t priority, std::int64_t grace) {
  auto pod = fixture::with_priority(fixture::pod(std::move(name)), priority);
  pod.termination_grace_period_seconds = grace;
  return std::make_shared<const Pod>(std::move(pod));
}

ShutdownPending pending() { return {true}; }
ShutdownPending called_off() { return {false}; }

/// Two groups of 20 s and 10 s, with two pods in the first and one in the second.
struct Node {
  PodListPtr pods = std::make_shared<const PodList>(
      PodList{pod_of("web", 0, 30), pod_of("vital", 2'000'000'000, 60), pod_of("batch", -1, 5)});
  ShutdownMachine machine;

  explicit Node(std::optional<ShutdownProgress> earlier = {})
      : machine{{{0, 20s}, {2'000'000'000, 10s}}, std::move(earlier)} {}

  std::string step(const ShutdownEvent& event, Duration time) { return keep(machine.step(event, at(time))); }
  std::string list(Duration time) { return step(PodsListed{pods}, time); }
  std::string ended(std::string uid, Duration time) { return step(PodEnded{std::move(uid)}, time); }
  std::string wake(Duration time) { return step(TimePassed{}, time); }

  /// Remembers what a restart would find.
  std::string keep(const ShutdownActions& actions) {
    for (const auto& action : actions)
      if (const auto* kept = std::get_if<KeepProgress>(&action)) progress = kept->progress;
    std::ostringstream out;
    out << actions;
    return out.str();
  }
  std::optional<ShutdownProgress> progress;
};

TEST_CASE("the groups end by rising priority, each when the one before is down, and the lock is let go last") {
  Node node;
  CHECK(node.keep(node.machine.start(at(0s))) == "[]");
  CHECK(node.step(called_off(), 0s) == "[take lock]");
  CHECK_FALSE(node.machine.shutting_down());

  CHECK(node.step(pending(), 100s) == "[keep 0 told, 0 ended; tell begun; wake at 2m10s; list pods]");
  CHECK(node.machine.shutting_down());
  CHECK(node.list(100s) == "[keep 2 told, 0 ended; end web in 20s; end batch in 5s; wake at 2m0s]");
  CHECK(node.ended("batch", 103s) == "[keep 2 told, 1 ended]");
  CHECK(node.ended("web", 104s) == "[keep 2 told, 2 ended; keep 3 told, 2 ended; end vital in 10s; wake at 1m54s]");
  CHECK_FALSE(node.machine.over());
  CHECK(node.ended("vital", 106s) ==
        "[keep 3 told, 3 ended; keep 3 told, 3 ended, over; tell ended; wake at no time; release lock]");
  CHECK(node.machine.over());
  CHECK(node.machine.shutting_down());
}

TEST_CASE("a group's time goes by whoever is left of it, and who is left at the end is named") {
  Node node;
  node.step(pending(), 100s);
  node.list(100s);
  CHECK(node.wake(119s) == "[]");  // too early
  CHECK(node.wake(120s) == "[keep 3 told, 0 ended; end vital in 10s; wake at 2m10s]");
  CHECK(node.ended("web", 121s) == "[keep 3 told, 1 ended]");
  CHECK(node.wake(130s) ==
        "[keep 3 told, 1 ended, over; tell ended left:batch left:vital; wake at no time; release lock]");
  CHECK(node.ended("vital", 131s) == "[keep 3 told, 2 ended, over]");
  CHECK(node.wake(140s) == "[]");
}

TEST_CASE("a node without pods is not held up") {
  Node node;
  node.pods = std::make_shared<const PodList>();
  node.step(pending(), 100s);
  CHECK(node.list(100s) == "[keep 0 told, 0 ended, over; tell ended; wake at no time; release lock]");
}

TEST_CASE("a group without pods is not waited for, and one without time ends its pods at once and goes on") {
  Node node;
  node.pods = std::make_shared<const PodList>(PodList{pod_of("vital", 2'000'000'000, 60)});
  node.step(pending(), 100s);
  CHECK(node.list(100s) == "[keep 1 told, 0 ended; end vital in 10s; wake at 1m50s]");

  ShutdownMachine hasty{{{0, 0s}, {100, 5s}}};
  static_cast<void>(hasty.step(pending(), at(0s)));
  CHECK(node.keep(hasty.step(
            PodsListed{std::make_shared<const PodList>(PodList{pod_of("low", 0, 30), pod_of("high", 100, 30)})},
            at(0s))) ==
        "[keep 1 told, 0 ended; end low in 0s; wake at 0s; keep 2 told, 0 ended; end high in 5s; wake at 5s]");
}

TEST_CASE("groups without any time have their pods killed, and the list of the pods is awaited for a second") {
  Node node;
  ShutdownMachine none{{{0, 0s}, {100, 0s}}};
  CHECK(node.keep(none.step(pending(), at(10s))) == "[keep 0 told, 0 ended; tell begun; wake at 11s; list pods]");
  CHECK(none.shutting_down());
  CHECK(node.keep(none.step(TimePassed{}, at(10s))) == "[]");
  CHECK(node.keep(none.step(
            PodsListed{std::make_shared<const PodList>(PodList{pod_of("low", 0, 30), pod_of("high", 100, 30)})},
            at(10100ms))) ==
        "[keep 1 told, 0 ended; end low in 0s; wake at 10.1s; keep 2 told, 0 ended; end high in 0s; wake at 10.1s; "
        "keep 2 told, 0 ended, over; tell ended left:high left:low; wake at no time; release lock]");

  ShutdownMachine unlisted{{{0, 0s}}};
  static_cast<void>(unlisted.step(pending(), at(10s)));
  CHECK(node.keep(unlisted.step(TimePassed{}, at(11s))) ==
        "[keep 0 told, 0 ended, over; tell ended unlisted; wake at no time; release lock]");
}

TEST_CASE("nobody gets more than is left of the promised time when the pods were not known for a while") {
  Node node;
  node.step(pending(), 100s);
  CHECK(node.list(125s) == "[keep 2 told, 0 ended; end web in 5s; end batch in 5s; wake at 2m10s]");
  CHECK(node.wake(130s) ==
        "[keep 3 told, 0 ended; end vital in 0s; wake at 2m10s; keep 3 told, 0 ended, over; "
        "tell ended left:batch left:vital left:web; wake at no time; release lock]");
}

TEST_CASE("the few milliseconds that a list takes are nobody's loss") {
  Node node;
  node.step(pending(), 100s);
  node.list(100s + 7ms);
  CHECK(node.wake(120s + 7ms) == "[keep 3 told, 0 ended; end vital in 10s; wake at 2m10.007s]");
}

TEST_CASE("where nobody can say what runs the lock is let go when the promised time is over") {
  Node node;
  node.step(pending(), 100s);
  CHECK(node.wake(129s) == "[]");
  CHECK(node.wake(130s) == "[keep 0 told, 0 ended, over; tell ended unlisted; wake at no time; release lock]");
  CHECK(node.list(131s) == "[]");
}

TEST_CASE("a shutdown that is called off leaves the later groups alone and takes pods and the lock again") {
  Node node;
  node.step(pending(), 100s);
  node.list(100s);
  CHECK(node.step(called_off(), 105s) == "[forget; tell cancelled; wake at no time; take lock]");
  CHECK_FALSE(node.machine.shutting_down());
  CHECK(node.ended("web", 106s) == "[]");
  CHECK(node.wake(120s) == "[]");

  // The next one is a new one.
  CHECK(node.step(pending(), 200s) == "[keep 0 told, 0 ended; tell begun; wake at 3m50s; list pods]");
  CHECK(node.list(200s) == "[keep 2 told, 0 ended; end web in 20s; end batch in 5s; wake at 3m40s]");
}

TEST_CASE("one that is called off when it is over, as when the machine does not go down, takes pods again") {
  Node node;
  node.pods = std::make_shared<const PodList>();
  node.step(pending(), 100s);
  node.list(100s);
  CHECK(node.step(called_off(), 101s) == "[forget; tell cancelled; wake at no time; take lock]");
  CHECK_FALSE(node.machine.over());
}

TEST_CASE("what is said twice is heard once") {
  Node node;
  node.step(pending(), 100s);
  CHECK(node.step(pending(), 101s) == "[]");
  node.list(101s);
  CHECK(node.list(102s) == "[]");
  CHECK(node.step(pending(), 102s) == "[]");
  node.ended("web", 103s);
  CHECK(node.ended("web", 104s) == "[]");
  CHECK(node.ended("a stranger", 104s) == "[]");
}

TEST_CASE("after a restart nobody gets a fresh period, and who has ended is left alone") {
  Node before;
  before.step(pending(), 100s);
  before.list(100s);
  before.ended("batch", 103s);

  Node node{before.progress};
  CHECK(node.machine.shutting_down());  // before logind has said anything
  CHECK(node.keep(node.machine.start(at(110s))) == "[wake at 2m50s]");
  CHECK(node.step(pending(), 110s) == "[tell resumed; wake at 2m10s; list pods]");
  CHECK(node.list(111s) == "[keep 2 told, 1 ended; end web in 9s; wake at 2m0s]");
  CHECK(node.wake(120s) == "[keep 3 told, 1 ended; end vital in 10s; wake at 2m10s]");
}

TEST_CASE("after a restart a pod whose time has run out is killed, and one that is gone has ended") {
  Node before;
  before.step(pending(), 100s);
  before.list(100s);

  Node node{before.progress};
  node.pods = std::make_shared<const PodList>(PodList{pod_of("batch", -1, 5), pod_of("vital", 2'000'000'000, 60)});
  static_cast<void>(node.machine.start(at(110s)));
  node.step(pending(), 110s);
  CHECK(node.list(110s) == "[keep 2 told, 1 ended; end batch in 0s; wake at 2m0s]");
  CHECK(node.ended("batch", 111s) == "[keep 2 told, 2 ended; keep 3 told, 2 ended; end vital in 10s; wake at 2m1s]");
}

TEST_CASE("a restart in the last group does not go back to the first; a restart that took too long leaves no time") {
  Node before;
  before.step(pending(), 100s);
  before.list(100s);
  before.wake(120s);

  Node node{before.progress};
  node.step(pending(), 124s);
  CHECK(node.list(124s) == "[keep 3 told, 0 ended; end web in 0s; end vital in 6s; end batch in 0s; wake at 2m10s]");

  Node late{before.progress};
  late.step(pending(), 200s);
  CHECK(late.list(200s) ==
        "[keep 3 told, 0 ended; end web in 0s; end vital in 0s; end batch in 0s; wake at 3m20s; "
        "keep 3 told, 0 ended, over; tell ended left:batch left:vital left:web; wake at no time; release lock]");
}

TEST_CASE("a pod of the group under way that no earlier evictd told gets what is left of the group's time") {
  Node before;
  before.step(pending(), 100s);
  before.list(100s);
  Node node{before.progress};
  auto pods = *node.pods;
  pods.push_back(pod_of("new", 7, 30));
  node.pods = std::make_shared<const PodList>(pods);
  node.step(pending(), 112s);
  CHECK(node.list(112s) == "[keep 3 told, 0 ended; end web in 8s; end batch in 0s; end new in 8s; wake at 2m0s]");
}

TEST_CASE("after a restart in a shutdown that was called off meanwhile the node takes pods again") {
  Node before;
  before.step(pending(), 100s);
  before.list(100s);
  Node node{before.progress};
  static_cast<void>(node.machine.start(at(110s)));
  CHECK(node.step(called_off(), 110s) == "[forget; tell cancelled; wake at no time; take lock]");
  CHECK_FALSE(node.machine.shutting_down());
}

TEST_CASE("an earlier shutdown of which logind never says a word is forgotten") {
  Node before;
  before.step(pending(), 100s);
  Node node{before.progress};
  static_cast<void>(node.machine.start(at(110s)));
  CHECK(node.wake(169s) == "[]");
  CHECK(node.wake(170s) == "[forget; tell cancelled; wake at no time; take lock]");
  CHECK_FALSE(node.machine.shutting_down());
}

TEST_CASE("a restart after the last group holds nothing up") {
  Node before;
  before.pods = std::make_shared<const PodList>();
  before.step(pending(), 100s);
  before.list(100s);
  Node node{before.progress};
  CHECK(node.step(pending(), 101s) == "[tell resumed; wake at no time; release lock]");
  CHECK(node.machine.over());
  CHECK(node.machine.shutting_down());
}

}  // namespace
}  // namespace evictd::core::shutdown_machine_test
