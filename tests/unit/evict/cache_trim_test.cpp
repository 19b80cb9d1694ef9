#include "evict/cache_trim.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fixture/pods.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "os/directory.hpp"

namespace evictd::evict::cache_trim_test {
namespace {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::Tree;
using fixture::value_of;
using fixture::operator""_MiB;
using node::CgroupVersion;

/// A pod's cgroup as the kernel would show it.
struct Memory {
  std::int64_t anonymous = 0;
  std::int64_t active = 0;
  std::int64_t inactive = 0;
  std::int64_t refaults = 0;  // pages
};

/// Pods in files. A write takes of their cache what it asks for, inactive cache first, as the kernel does.
class Node : private TrimTools {
 public:
  explicit Node(CgroupVersion version = CgroupVersion::v2, std::int64_t swap = 0)
      : version_{version}, tree_{{dir("proc", {file("meminfo", fmt::format("SwapTotal: {} kB\n", swap))})}} {}

  void add(const std::string& name, const Memory& memory, std::int64_t request = 0) {
    pods.emplace_back(name, memory);
    const bool v1 = version_ == CgroupVersion::v1;
    tree_.add("", dir(name, {file(v1 ? "memory.force_empty" : "memory.reclaim", ""), file("memory.stat", ""),
                             file(v1 ? "memory.usage_in_bytes" : "memory.current", "")}));
    show(name);
    targets_.push_back({.pod = std::make_shared<const core::Pod>(fixture::pod(name)),
                        .cgroup = value_of(os::Directory::open(tree_.path(name))),
                        .request = request});
  }

  TrimResult trim(std::int64_t wanted) {
    TrimPlan plan{.version = version_, .proc = tree_.path("proc"), .pods = std::move(targets_), .wanted = wanted};
    return trim_cache(plan, stopped, {}, *this);
  }

  Memory& of(const std::string& name) {
    for (auto& [each, memory] : pods)
      if (each == name) return memory;
    FAIL("no pod " << name);
    return pods.front().second;
  }
  void show(const std::string& name) {
    const auto& memory = of(name);
    const bool v1 = version_ == CgroupVersion::v1;
    const auto* prefix = v1 ? "total_" : "";
    tree_.write(name + (v1 ? "/memory.usage_in_bytes" : "/memory.current"),
                fmt::format("{}\n", memory.anonymous + memory.active + memory.inactive));
    tree_.write(
        name + "/memory.stat",
        fmt::format("{0}{4} {5}\n{0}inactive_file {1}\n{0}active_file {2}\n{0}workingset_refault_file {3}\n", prefix,
                    memory.inactive, memory.active, memory.refaults, v1 ? "rss" : "anon", memory.anonymous));
  }
  void remove(const std::string& name) const { tree_.remove(name); }

  std::vector<std::string> writes;  // "a 16777216 swappiness=0"
  std::vector<std::pair<std::string, Memory>> pods;
  std::function<int(const std::string& pod)> answer;  // in place of taking anything: 0 or errno
  std::function<void(const std::string& pod)> afterwards;
  std::int64_t taken_by_v1 = 20_MiB;
  bool counts_stand_still = false;  // memory.stat is as it was, as seconds before
  core::Instant time{1h};
  std::atomic<bool> stopped = false;

 private:
  [[nodiscard]] core::Instant now() const override { return time; }
  int write(int descriptor, std::string_view text, core::Duration) override {
    const auto path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", descriptor));
    return take(path.parent_path().filename(), std::string(text));
  }
  int take(const std::string& name, const std::string& text) {
    writes.push_back(name + " " + text);
    if (answer) return answer(name);
    auto& memory = of(name);
    auto left = version_ == CgroupVersion::v1 ? taken_by_v1 : std::stoll(text);
    for (auto* cache : {&memory.inactive, &memory.active}) {
      const auto part = std::min<std::int64_t>(left, *cache);
      *cache -= part;
      left -= part;
    }
    if (afterwards) afterwards(name);
    if (counts_stand_still) {
      tree_.write(name + "/memory.current", fmt::format("{}\n", memory.anonymous + memory.active + memory.inactive));
    } else {
      show(name);
    }
    return left == 0 ? 0 : EAGAIN;
  }

  CgroupVersion version_;
  Tree tree_;
  std::vector<TrimTarget> targets_;
};

std::vector<std::pair<std::string, std::int64_t>> gains(const TrimResult& result) {
  std::vector<std::pair<std::string, std::int64_t>> gained;
  for (const auto& pod : result.pods) gained.emplace_back(pod.pod->name, pod.bytes);
  return gained;
}

using Gains = std::vector<std::pair<std::string, std::int64_t>>;

}  // namespace

TEST_CASE("what is wanted is taken a little at a time, without swapping, and of the first pod first") {
  Node node;
  node.add("a", {.anonymous = 10_MiB, .active = 40_MiB});
  node.add("b", {.anonymous = 10_MiB, .active = 40_MiB});
  const auto result = node.trim(50_MiB);
  CHECK(result.end == TrimEnd::Enough);
  CHECK(gains(result) == Gains{{"a", 40_MiB}, {"b", 16_MiB}});
  CHECK(result.bytes == 56_MiB);
  CHECK(node.writes == std::vector<std::string>{"a 16777216 swappiness=0", "a 16777216 swappiness=0",
                                                "a 8388608 swappiness=0", "b 16777216 swappiness=0"});
  CHECK(result.pods[0].ended_by == "nothing left above its request");
  CHECK(result.pods[1].ended_by == "enough");
}

TEST_CASE("inactive cache is no gain: it counts as available already") {
  Node node;
  node.add("a", {.anonymous = 10_MiB, .active = 10_MiB, .inactive = 32_MiB});
  const auto result = node.trim(1'000_MiB);
  CHECK(result.end == TrimEnd::NoneLeft);
  CHECK(gains(result) == Gains{{"a", 10_MiB}});
  Node idle;
  idle.add("a", {.anonymous = 10_MiB, .inactive = 32_MiB});
  CHECK(gains(idle.trim(1'000_MiB)) == Gains{{"a", 0}});
  CHECK(idle.writes.empty());
}

TEST_CASE("what was taken counts while memory.stat still shows it, and no more is taken for that") {
  Node node;
  node.add("a", {.anonymous = 10_MiB, .active = 400_MiB});
  node.counts_stand_still = true;
  const auto result = node.trim(40_MiB);
  CHECK(result.end == TrimEnd::Enough);
  CHECK(gains(result) == Gains{{"a", 48_MiB}});
}

TEST_CASE("what a pod gives back by itself meanwhile is no gain of the trim") {
  Node node;
  node.add("a", {.anonymous = 500_MiB, .active = 16_MiB});
  node.afterwards = [&](const std::string& pod) { node.of(pod).anonymous = 0; };
  CHECK(gains(node.trim(1'000_MiB)) == Gains{{"a", 16_MiB}});
}

TEST_CASE("no pod is taken below its request") {
  Node node;
  node.add("a", {.anonymous = 10_MiB, .active = 40_MiB}, 30_MiB);
  node.add("within", {.anonymous = 10_MiB, .active = 40_MiB}, 50_MiB);
  const auto result = node.trim(1'000_MiB);
  CHECK(gains(result) == Gains{{"a", 20_MiB}, {"within", 0}});
  CHECK(node.of("a").anonymous + node.of("a").active == 30_MiB);
  CHECK(node.of("within").active == 40_MiB);
}

TEST_CASE("a pod that reads back what was taken is left alone, and the next one's turn comes") {
  Node node;
  node.add("reader", {.anonymous = 10_MiB, .active = 400_MiB});
  node.add("b", {.active = 16_MiB});
  node.afterwards = [&](const std::string& pod) {
    if (pod == "reader") node.of(pod).refaults += 8_MiB / 4096;
  };
  const auto result = node.trim(1'000_MiB);
  CHECK(result.pods[0].ended_by == "it reads back what was taken");
  CHECK(gains(result) == Gains{{"reader", 16_MiB}, {"b", 16_MiB}});
}

TEST_CASE("two writes that come to nothing end a pod's turn, one does not") {
  Node node;
  node.add("a", {.active = 64_MiB});
  node.add("b", {.active = 16_MiB});
  int count = 0;
  node.answer = [&](const std::string& pod) {
    if (pod == "b" || ++count == 2) {
      node.of(pod).active -= 16_MiB;
      node.show(pod);
      return 0;
    }
    return EAGAIN;
  };
  const auto result = node.trim(1'000_MiB);
  CHECK(result.pods[0].ended_by == "no progress");
  CHECK(gains(result) == Gains{{"a", 16_MiB}, {"b", 16_MiB}});
  CHECK(count == 4);
}

TEST_CASE("it ends with the time, however much is left") {
  Node node;
  node.add("a", {.active = 1'000_MiB});
  node.add("b", {.active = 1'000_MiB});
  node.afterwards = [&](const std::string&) { node.time += 900ms; };
  const auto result = node.trim(2'000_MiB);
  CHECK(result.end == TrimEnd::Time);
  CHECK(gains(result) == Gains{{"a", 48_MiB}});
  CHECK(result.duration == 2700ms);
}

TEST_CASE("it ends once it is stopped") {
  Node node;
  node.add("a", {.active = 1'000_MiB});
  node.add("b", {.active = 1'000_MiB});
  node.afterwards = [&](const std::string&) { node.stopped = true; };
  const auto result = node.trim(2'000_MiB);
  CHECK(result.end == TrimEnd::Stopped);
  CHECK(gains(result) == Gains{{"a", 16_MiB}});
}

TEST_CASE("a pod whose cgroup goes, before its turn or while it lasts, ends nothing but that") {
  Node node;
  node.add("gone", {.active = 64_MiB});
  node.add("goes", {.active = 64_MiB});
  node.add("stays", {.active = 16_MiB});
  node.remove("gone");
  node.answer = [&](const std::string& pod) {
    if (pod == "goes") return node.remove(pod), ENODEV;
    node.of(pod).active -= 16_MiB;
    node.show(pod);
    return 0;
  };
  const auto result = node.trim(1'000_MiB);
  CHECK(result.end == TrimEnd::NoneLeft);
  CHECK(gains(result) == Gains{{"gone", 0}, {"goes", 0}, {"stays", 16_MiB}});
  CHECK(result.errors.empty());
}

TEST_CASE("before Linux 6.9 the plain word does, unless there is swap") {
  const auto refuse = [](Node& node) {
    node.answer = [&node](const std::string& pod) {
      if (node.writes.back().ends_with("swappiness=0")) return EINVAL;
      node.of(pod).active -= 16_MiB;
      node.show(pod);
      return 0;
    };
  };
  Node node;
  node.add("a", {.active = 32_MiB});
  refuse(node);
  CHECK(gains(node.trim(1'000_MiB)) == Gains{{"a", 32_MiB}});
  CHECK(node.writes == std::vector<std::string>{"a 16777216 swappiness=0", "a 16777216", "a 16777216"});

  Node swaps{CgroupVersion::v2, 1024};
  swaps.add("a", {.active = 32_MiB});
  swaps.add("b", {.active = 32_MiB});
  refuse(swaps);
  const auto result = swaps.trim(1'000_MiB);
  CHECK(result.end == TrimEnd::Impossible);
  REQUIRE(result.errors.size() == 1);
  CHECK(result.errors[0].message == "this kernel cannot take file cache alone while there is swap: Linux 6.9 can");
  CHECK(swaps.writes.size() == 1);
}

TEST_CASE("on v1 writes that were broken off before they took anything are tried again some times") {
  Node node{CgroupVersion::v1};
  node.add("a", {.active = 64_MiB});
  int count = 0;
  node.answer = [&](const std::string& pod) {
    if (++count == 5) {
      node.of(pod).active -= 40_MiB;
      node.show(pod);
    }
    return EINTR;
  };
  CHECK(gains(node.trim(1'000_MiB)) == Gains{{"a", 40_MiB}});
  Node stuck{CgroupVersion::v1};
  stuck.add("a", {.active = 64_MiB});
  stuck.answer = [](const std::string&) { return EINTR; };
  CHECK(stuck.trim(1'000_MiB).pods[0].ended_by == "no progress");
  CHECK(stuck.writes.size() == 8);
}

TEST_CASE("on v1 writes are all or nothing, so a pod near its request is left alone, and all are where there is swap") {
  Node node{CgroupVersion::v1};
  node.add("a", {.anonymous = 40_MiB, .active = 60_MiB}, 30_MiB);
  node.add("near", {.anonymous = 40_MiB, .active = 60_MiB}, 80_MiB);
  const auto result = node.trim(1'000_MiB);
  CHECK(gains(result) == Gains{{"a", 40_MiB}, {"near", 0}});
  CHECK(node.writes == std::vector<std::string>{"a 0", "a 0"});

  Node swaps{CgroupVersion::v1, 1024};
  swaps.add("a", {.active = 100_MiB});
  CHECK(swaps.trim(1'000_MiB).end == TrimEnd::Impossible);
  CHECK(swaps.writes.empty());
}

}  // namespace evictd::evict::cache_trim_test
