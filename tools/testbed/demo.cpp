// tools/demo: a node of 1 GiB on a real containerd, three pods, and what evictd does when one of them grows without
// end. With --graceful a program that has something to write before it ends: killed at once, and held by the brake.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/pod.hpp"
#include "testbed/agent.hpp"
#include "testbed/database.hpp"
#include "testbed/event_stream.hpp"
#include "testbed/failure.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/supervise.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;

namespace {

constexpr std::int64_t mebi = 1 << 20;
constexpr std::int64_t node_memory = 1024 * mebi;

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

testbed::PodSpec pod(std::string name, QosClass qos, std::vector<std::string> load, std::optional<int> priority = {}) {
  return {.name = std::move(name), .qos = qos, .priority = priority, .containers = {{.args = std::move(load)}}};
}

/// Prints each event once, with its time since the threshold was crossed.
class Narrator {
 public:
  explicit Narrator(const testbed::EventStream& events) : events_{events} {}

  void tell_news() {
    const auto events = events_.all();
    for (; told_ < events.size(); ++told_) tell(events[told_]);
  }
  [[nodiscard]] const std::optional<Event>& crossed() const { return crossed_; }
  [[nodiscard]] const std::optional<Event>& cleaned_up() const { return cleaned_up_; }
  /// Milliseconds from the wake-up to a stage that the last event of the eviction names.
  [[nodiscard]] double stage(const char* name) const {
    const auto& stages = cleaned_up_->stages();
    return stages.contains(name) ? static_cast<double>(stages.at(name)) / 1000 : 0;
  }

 private:
  void tell(const Event& event) {
    if (!crossed_) {
      if (event.kind() != Event::THRESHOLD_CROSSED) return;
      crossed_ = event;
    }
    const auto since = static_cast<double>(event.monotonic_ns() - crossed_->wake().monotonic_ns()) / 1e6;
    say(fmt::format("  {:8.1f} ms  {:<18} {}", since, Event::Kind_Name(event.kind()), event.message()));
    if (event.kind() == Event::THRESHOLD_CROSSED) say(fmt::format("{:>14} woken by {}", "", event.wake().reasons(0)));
    if (event.kind() == Event::EVICTION_INTENDED) tell_ranking(event.eviction_intended());
    if (event.kind() == Event::CLEANUP_DONE) cleaned_up_ = event;
  }

  static void tell_ranking(const evictd::v1::EvictionIntended& intended) {
    say(fmt::format("{:>14} ranking: {:<8} {:>10} {:>10} {:>11}", "", "pod", "uses", "requests", "priority"));
    for (const auto& ranked : intended.ranking())
      say(fmt::format("{:>14}          {:<8} {:>6} MiB {:>6} MiB {:>11}{}", "", ranked.pod().name(),
                      ranked.usage() / mebi, ranked.request() / mebi, ranked.priority(),
                      ranked.critical() ? "  critical: never evicted" : ""));
  }

  const testbed::EventStream& events_;
  std::size_t told_ = 0;
  std::optional<Event> crossed_;
  std::optional<Event> cleaned_up_;
};

int demonstrate() {
  say("A node of 1 GiB (a cgroup), a containerd of its own, evictd with memory.available<250Mi.");
  testbed::Testbed testbed{{.node = {.memory_limit = node_memory}}};
  testbed::Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 250Mi}\n"}};

  const auto chill = testbed.cri().run_pod(pod("chill", QosClass::Burstable, {"hold", "40Mi"}));
  const auto vital = testbed.cri().run_pod(pod("vital", QosClass::Burstable, {"hold", "300Mi"}, 2'000'000'000));
  const auto bloat = testbed.cri().run_pod(pod("bloat", QosClass::BestEffort, {"grow", "20Mi", "80Mi/s"}));
  say("Pods: chill holds 40 MiB; vital, of critical priority, holds 300 MiB; bloat begins with 20 MiB and takes 80 MiB "
      "more each second.\n");

  Narrator narrator{agent.events()};
  auto next_look = std::chrono::steady_clock::now();
  testbed::wait_until("bloat is evicted", 90s, [&] {
    narrator.tell_news();
    if (const auto now = std::chrono::steady_clock::now(); now >= next_look && !narrator.crossed()) {
      next_look = now + 500ms;
      const auto used = testbed.node().memory_usage();
      const auto bar = static_cast<std::size_t>(used * 40 / node_memory);
      say(fmt::format("  [{:<40}] {:4} of 1024 MiB used", std::string(bar, '#'), used / mebi));
    }
    return narrator.cleaned_up().has_value();
  });
  const auto after = testbed.node().memory_usage();

  const bool chill_runs = testbed.cri().is_running(chill);
  const bool vital_runs = testbed.cri().is_running(vital);
  say(fmt::format("\nbloat is gone, chill {} on, vital {} on; {} MiB are in use.", chill_runs ? "runs" : "does NOT run",
                  vital_runs ? "runs" : "does NOT run", after / mebi));
  say(fmt::format(
      "From the wake-up: decided after {:.2f} ms, containers stopped after {:.1f} ms, first memory back after "
      "{:.1f} ms, all after {:.1f} ms,\ncleaned up after {:.1f} ms.",
      narrator.stage("decided"), narrator.stage("killed"), narrator.stage("first_release"), narrator.stage("released"),
      narrator.stage("cleanup")));
  return chill_runs && vital_runs && !testbed.cri().is_running(bloat) ? 0 : 1;
}

/// What came of the database, by its files, the runtime and the events.
struct Outcome {
  std::int64_t written = 0;  ///< bytes
  bool whole = false;
  int exit_code = 0;                 ///< 128 + N of what signal N ended
  double milliseconds = 0;           ///< from the decision to its end
  std::int64_t least_available = 0;  ///< bytes, of those that were seen
  std::string brake{};               ///< "held", "ended" or "killed", whichever was said last; empty: it was not held
  bool killed_by_kernel = false;     ///< a process of the node's pods was
  bool neighbour_runs = false;
};

std::int64_t available_memory(const testbed::NodeCgroup& node) {
  return node.memory_capacity() - (node.memory_usage() - node.memory_stat("inactive_file"));
}

Outcome evict_database(const std::string& eviction) {
  testbed::Testbed testbed{{.node = {.memory_limit = node_memory}}};
  const auto chill = testbed.cri().run_pod(pod("chill", QosClass::Burstable, {"hold", "64Mi"}));
  testbed::Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}\n", .eviction = eviction}};
  agent.wait_for_pods(1);
  const testbed::Database database{testbed};

  Narrator narrator{agent.events()};
  Outcome outcome{.least_available = node_memory};
  testbed::wait_until("the database is evicted", 90s, [&] {
    outcome.least_available = std::min(outcome.least_available, available_memory(testbed.node()));
    narrator.tell_news();
    return narrator.cleaned_up().has_value();
  });
  const auto& container = database.running.container();
  testbed::wait_until("the runtime tells of its end", 30s, [&] { return !testbed.cri().is_running(container); });

  const auto status = testbed.cri().container_status(container);
  const auto decided = agent.events().wait_for(Event::EVICTION_INTENDED, "default/database", 30s).time();
  outcome.written = database.written();
  outcome.whole = database.ended_in_order() && outcome.written == testbed::Database::size;
  outcome.exit_code = status.exit_code();
  outcome.milliseconds =
      static_cast<double>(status.finished_at() - decided.seconds() * 1'000'000'000 - decided.nanos()) / 1e6;
  for (const auto& event : agent.events().all()) {
    if (event.kind() == Event::BRAKED) outcome.brake = event.braked().phase();
    if (event.kind() == Event::KERNEL_OOM) outcome.killed_by_kernel = true;
  }
  outcome.neighbour_runs = testbed.cri().is_running(chill);
  return outcome;
}

void tell_row(std::string_view run, const Outcome& outcome) {
  const auto file = fmt::format("{:.1f} of {} MiB, {}", static_cast<double>(outcome.written) / mebi,
                                testbed::Database::size / mebi, outcome.whole ? "whole" : "incomplete");
  const auto number = outcome.exit_code - 128;
  const auto end = number > 0 ? fmt::format("signal {} ({})", number, ::strsignal(number))
                              : fmt::format("exit code {}", outcome.exit_code);
  say(fmt::format("  {:<17} {:<26} {:<19} {:<7} {:>10.1f} ms {:>11.1f} MiB", run, file, end,
                  outcome.brake.empty() ? "-" : outcome.brake, outcome.milliseconds,
                  static_cast<double>(outcome.least_available) / mebi));
}

int demonstrate_brake() {
  const auto time = testbed::patient(5s) / 1s;
  say("A node of 1 GiB, evictd with memory.available<300Mi, and a database that takes 400 MiB more each second.\n"
      "SIGTERM has it write 20 MiB and end.\n\nWithout a brake:");
  const auto plain = evict_database("");
  say(fmt::format("\nOn a new node, with eviction.brake: {{time: {}s}}:", time));
  const auto braked = evict_database(fmt::format("brake: {{time: {}s}}", time));

  say(fmt::format("\n  {:<17} {:<26} {:<19} {:<7} {:>13} {:>15}", "", "its file", "ended by", "brake", "after",
                  "least available"));
  tell_row("killed at once", plain);
  tell_row(fmt::format("brake: {{time: {}s}}", time), braked);
  say("\nAfter: from the decision to its end. Least available: of what was seen by a look every few milliseconds.");

  const bool killed = plain.brake.empty() && !plain.whole && plain.exit_code == 128 + SIGKILL;
  const bool ended = braked.brake == "ended" && braked.whole && braked.exit_code == 0;
  const auto undisturbed = [](const Outcome& outcome) { return outcome.neighbour_runs && !outcome.killed_by_kernel; };
  if (killed && ended && undisturbed(plain) && undisturbed(braked)) return 0;
  say("That is NOT what should have come of it.");
  return 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const bool graceful = argc == 2 && std::string_view(argv[1]) == "--graceful";
  if (argc > 1 && !graceful) {
    fmt::print(stderr, "usage: demo [--graceful]\n");
    return 2;
  }
  if (const auto missing = testbed::missing_prerequisite()) testbed::fail(*missing);
  return testbed::supervise([graceful] {
    const int result = graceful ? demonstrate_brake() : demonstrate();
    say("Everything the demo made is removed again.");
    return result;
  });
} catch (const std::exception& error) {
  fmt::print(stderr, "demo: {}\n", error.what());
  return 1;
}
