#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "testbed/agent.hpp"
#include "testbed/traced_calls.hpp"
#include "victims.hpp"

namespace integration::hot_path_test {

namespace {

using namespace std::chrono_literals;
using enum evictd::core::QosClass;
using evictd::v1::Event;
using testbed::TracedCall;
using testbed::TracedCalls;

/// From the read(2) by which the kernel's word is learnt to the first signal, both included; empty if there is none.
std::vector<TracedCall> to_first_signal(const std::vector<TracedCall>& calls) {
  const auto signal = std::ranges::find(calls, std::uint64_t{SYS_pidfd_send_signal}, &TracedCall::number);
  if (signal == calls.end()) return {};
  const auto is_word = [](const TracedCall& call) {
    return call.number == SYS_read && call.result == 8 && call.file == "anon_inode:[eventfd]";
  };
  for (auto word = signal; word != calls.begin();)
    if (is_word(*--word)) return {word, signal + 1};
  return {};
}

/// A line for each: its number, what was read, its result.
std::string listed(const std::vector<TracedCall>& calls) {
  std::string text;
  for (const auto& call : calls) text += fmt::format("{} {} {}\n", call.number, call.file, call.result);
  return text;
}

}  // namespace

TEST_SUITE_BEGIN("cgroup v1");

TEST_CASE(
    "from the kernel's word to the first signal it is at most 26 system calls with five pods, beside the turns of the "
    "loop, and no directory is listed") {
  testbed::Testbed node{gibi_node};
  std::vector<testbed::RunningPod> others{node.cri().run_pod(pod("vital", Burstable, {"hold", "64Mi"}, 2000000000))};
  for (const auto* name : {"one", "two", "three"})
    others.push_back(node.cri().run_pod(pod(name, Burstable, {"hold", "16Mi"})));
  const Follower hog{node, "hog"};
  testbed::Agent agent{node,
                       {.thresholds = "evictionHard: {memory.available: 300Mi}",
                        .notifier = "disable: [psi, sampler], fallbackInterval: 5m"}};
  agent.wait_for_pods(5);
  agent.wait_for_pod(hog.running.uid);
  const TracedCalls traced{agent.process().pid()};
  hog.hold(800 * mebi);
  agent.events().wait_for(Event::CONTAINERS_KILLED, "default/hog", 60s);

  const auto calls = to_first_signal(traced.all());
  REQUIRE_FALSE(calls.empty());
  INFO(listed(calls));
  const auto made = [&](std::uint64_t number) { return std::ranges::count(calls, number, &TracedCall::number); };
  // What another thread has done this moment, as it may on a busy machine, takes the loop one turn more: the word's own
  // takes four of these.
  const auto turns = made(SYS_epoll_wait) + made(SYS_clock_gettime) +
                     std::ranges::count(calls, "anon_inode:[eventfd]", &TracedCall::file);
  CHECK(std::ssize(calls) - turns <= 26);
  CHECK(turns <= 10);
  CHECK(made(SYS_getdents64) == 0);
  // It is held before it is looked for once more in its cgroup, and signalled after that.
  const auto held = std::ranges::find(calls, std::uint64_t{SYS_pidfd_open}, &TracedCall::number);
  CHECK(std::ranges::any_of(held, calls.end(), [](const TracedCall& call) {
    return call.number == SYS_read && call.file.ends_with("/cgroup.procs") && call.result > 0;
  }));
  // What the strike needs was opened before, with the last list of pods.
  CHECK(std::none_of(held, calls.end(), [](const TracedCall& call) { return call.number == SYS_openat; }));
  CHECK(made(SYS_pwritev) > 0);  // the intent is saved
  for (const auto& other : others) CHECK(has_processes(node, other));
}

TEST_SUITE_END();

}  // namespace integration::hot_path_test
