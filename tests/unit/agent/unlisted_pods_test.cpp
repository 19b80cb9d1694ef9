#include "agent/unlisted_pods.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>

#include "core/pod_resources.hpp"
#include "core/qos.hpp"
#include "fixture/few_descriptors.hpp"
#include "fixture/inotify_watches.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/openings.hpp"
#include "fixture/pods.hpp"
#include "fixture/real_cgroup.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace evictd::agent::unlisted_pods_test {
namespace {

using fixture::dir;
using fixture::Entry;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

Entry cgroup(std::string name, std::string processes, std::vector<Entry> below = {}) {
  below.push_back(file("cgroup.procs", std::move(processes)));
  return dir(std::move(name), std::move(below));
}

Entry process(int pid, int adjustment) {
  return dir(std::to_string(pid), {file("oom_score_adj", std::to_string(adjustment) + "\n")});
}

/// A node of cgroup v1 with these cgroups among its pods'.
struct Node final : ListedPods {
  explicit Node(std::vector<Entry> pods, std::vector<Entry> processes = {})
      : tree{{dir("cgroup",
                  {dir("memory", {cgroup("kubepods", "", std::move(pods)), file("memory.usage_in_bytes", "0\n")}),
                   dir("pids")}),
              dir("proc", std::move(processes))}} {}

  [[nodiscard]] bool contains(const pods::NamedUid& named) const override {
    ++asked;
    return std::ranges::any_of(listed, [&](const std::string& uid) { return named.is_of(uid); });
  }
  [[nodiscard]] bool goes(const pods::NamedUid& named) const override {
    return std::ranges::any_of(going, [&](const std::string& uid) { return named.is_of(uid); });
  }
  std::vector<std::string> look() { return look(unlisted); }
  std::vector<std::string> look(UnlistedPods& pods) const {
    pods.look(*this);
    std::vector<std::string> uids;
    for (const auto& pod : pods.pods()) uids.push_back(pod->pod->uid);
    std::ranges::sort(uids);
    return uids;
  }

  Tree tree;
  node::CgroupHierarchy hierarchy = value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
  UnlistedPods::Place place{
      .hierarchy = hierarchy, .pods_cgroup = "/kubepods", .proc = tree.path("proc").native(), .memory_capacity = 1000};
  UnlistedPods unlisted{place};
  std::set<std::string> listed{};
  std::set<std::string> going{};
  mutable int asked = 0;
};

using Uids = std::vector<std::string>;

}  // namespace

TEST_CASE("a pod that no list names is found with what its processes' oom_score_adj tells") {
  Node node{{cgroup("burstable", "", {cgroup("poda", "", {cgroup("pause", "1\n"), cgroup("main", "2\n")})}),
             cgroup("podb", "3\n"), cgroup("podc", ""), cgroup("besteffort", "", {cgroup("podd", "4\n")})},
            {process(1, -998), process(2, 900), process(3, -997), process(4, 1000)}};
  node.listed = {"d"};
  CHECK(node.look() == Uids{"a", "b"});
  const auto a = node.unlisted.find("a");
  REQUIRE(a != nullptr);
  CHECK(a->cgroup == "/kubepods/burstable/poda");
  CHECK(a->pod->status_qos == core::QosClass::Burstable);
  CHECK(core::pod_request(*a->pod, "memory").value() == core::request_from_oom_score_adj(900, 1000));
  CHECK_FALSE(core::is_critical(*a->pod));
  CHECK(core::is_critical(*node.unlisted.find("b")->pod));
}

TEST_CASE("what comes is found by the next look, and what goes forgotten, with inotify and without") {
  Node node{{cgroup("burstable", "", {cgroup("poda", "2\n")})}, {process(2, 1000), process(3, 1000), process(4, 1000)}};
  std::optional<UnlistedPods> without;
  UnlistedPods* unlisted = &node.unlisted;
  SUBCASE("with") {}
  SUBCASE("without") {
    const fixture::NoDescriptors none;
    unlisted = &without.emplace(node.place);
  }
  const std::string pods = "cgroup/memory/kubepods";
  CHECK(node.look(*unlisted) == Uids{"a"});
  CHECK(node.look(*unlisted) == Uids{"a"});
  node.tree.add(pods + "/burstable", cgroup("podb", "3\n"));
  CHECK(node.look(*unlisted) == Uids{"a", "b"});
  node.tree.remove(pods + "/burstable/poda");
  node.tree.add(pods + "/burstable", cgroup("podc", "4\n"));
  CHECK(node.look(*unlisted) == Uids{"b", "c"});
  node.tree.add(pods, cgroup("podd", "2\n"));
  node.tree.add(pods, cgroup("besteffort", ""));
  CHECK(node.look(*unlisted) == Uids{"b", "c", "d"});
  node.tree.add(pods + "/besteffort", cgroup("pode", "2\n"));
  CHECK(node.look(*unlisted) == Uids{"b", "c", "d", "e"});
  node.tree.remove(pods);
  CHECK(node.look(*unlisted).empty());
  node.tree.add("cgroup/memory", cgroup("kubepods", "", {cgroup("podf", "3\n")}));
  CHECK(node.look(*unlisted) == Uids{"f"});
  node.tree.add(pods, cgroup("podg", "4\n"));
  CHECK(node.look(*unlisted) == Uids{"f", "g"});
}

TEST_CASE("between two lists nobody is looked up unless a cgroup came or went, or was of no list") {
  Node node{{cgroup("poda", "2\n"), cgroup("podb", "3\n")}, {process(2, 1000), process(3, 1000), process(4, 1000)}};
  node.listed = {"a", "b"};
  CHECK(node.look() == Uids{});
  node.asked = 0;
  CHECK_FALSE(node.unlisted.look_again(node));
  CHECK(node.asked == 0);
  node.tree.add("cgroup/memory/kubepods", cgroup("podc", ""));
  CHECK_FALSE(node.unlisted.look_again(node));
  CHECK(node.asked == 3);
  node.tree.write("cgroup/memory/kubepods/podc/cgroup.procs", "4\n");
  CHECK(node.unlisted.look_again(node));
  REQUIRE(node.unlisted.pods().size() == 1);
  node.tree.remove("cgroup/memory/kubepods/podc");
  CHECK(node.unlisted.look_again(node));
  CHECK(node.unlisted.pods().empty());
  CHECK_FALSE(node.unlisted.look_again(node));
}

TEST_CASE("one that is on its way out is no news, and is found again where it has not gone when nobody waits for it") {
  Node node{{cgroup("poda", "2\n"), cgroup("podb", "3\n")}, {process(2, 1000), process(3, 1000)}};
  node.listed = {"a"};
  node.going = {"b"};
  CHECK(node.look() == Uids{});
  CHECK_FALSE(node.unlisted.look_again(node));
  node.going.clear();
  CHECK(node.unlisted.look_again(node));
  REQUIRE(node.unlisted.pods().size() == 1);
  CHECK(node.unlisted.pods().front()->pod->uid == "b");
}

// By another name elsewhere: that does not end a watch either, as the end of a cgroup does not.
TEST_CASE("containers' cgroups among the pods' leave no watches") {
  Node node{{cgroup("burstable", "", {cgroup("poda", "2\n")}), cgroup("podb", "3\n")},
            {process(2, 1000), process(3, 1000)}};
  CHECK(node.look() == Uids{"a", "b"});
  const auto before = fixture::inotify_watches();
  for (const std::string name : {"container1", "container2", "container3"}) {
    node.tree.add("cgroup/memory/kubepods", cgroup(name, "3\n"));
    node.look();
    CHECK(fixture::inotify_watches() == before + 1);
    std::filesystem::rename(node.tree.path("cgroup/memory/kubepods") / name, node.tree.path("cgroup") / name);
    node.look();
    CHECK(fixture::inotify_watches() == before);
  }
}

TEST_CASE("cgroups that could not be listed are listed by the next look") {
  for (const std::size_t descriptors : {0U, 1U, 2U, 3U}) {
    CAPTURE(descriptors);
    Node node{{cgroup("burstable", "", {cgroup("poda", "2\n")})}, {process(2, 1000)}};
    {
      const fixture::NoDescriptors none(descriptors);
      node.unlisted.look(node);
    }
    CHECK(node.look() == Uids{"a"});
  }
}

TEST_SUITE_BEGIN("real cgroups");

// cgroupfs does not tell of the end of a directory by inotify, as other file systems do.
TEST_CASE("pods are found in a pods' cgroup that was made again") {
  SKIP_IF(fixture::no_real_cgroups());
  struct Nobody final : ListedPods {
    [[nodiscard]] bool contains(const pods::NamedUid& /*named*/) const override { return false; }
    [[nodiscard]] bool goes(const pods::NamedUid& /*named*/) const override { return false; }
  } const nobody;
  const auto hierarchy = fixture::real_hierarchy();
  const fixture::RealCgroup pods(fixture::own_cgroup());
  UnlistedPods unlisted{
      {.hierarchy = hierarchy, .pods_cgroup = pods.path(), .proc = "/proc", .memory_capacity = 1 << 30}};
  unlisted.look(nobody);
  pods.remove();
  pods.make();
  const fixture::RealCgroup pod(pods.path() + "/poda");
  const fixture::Sleeper sleeper;
  pod.put(sleeper.pid());
  CHECK(unlisted.look(nobody));
  CHECK(unlisted.find("a") != nullptr);
}

TEST_SUITE_END();

TEST_CASE("a pod whose uid has a '_' is not found a second time by its slice") {
  Node node{{cgroup("kubepods-burstable.slice", "", {cgroup("kubepods-burstable-podmy_pod_1.slice", "2\n")}),
             cgroup("podmy_pod", "3\n")},
            {process(2, 900), process(3, 900)}};
  node.listed = {"my_pod-1", "my_pod"};
  CHECK(node.look() == Uids{});
  node.listed = {"my-pod"};  // the names of cgroupfs are exact
  CHECK(node.look() == Uids{"my-pod-1", "my_pod"});
}

TEST_CASE("a pod that a list named as critical stays so while its cgroup is there") {
  Node node{{cgroup("burstable", "", {cgroup("podvital", "2\n")})}, {process(2, 900)}};
  core::Pod vital{.name_space = "kube-system", .name = "vital", .uid = "vital"};
  vital.priority = core::system_critical_priority;
  core::Pod other{.name_space = "default", .name = "other", .uid = "other"};
  node.listed = {"vital"};
  CHECK(node.look() == Uids{});
  node.unlisted.remember({std::make_shared<const core::Pod>(vital), std::make_shared<const core::Pod>(other)});
  node.listed.clear();
  CHECK(node.look() == Uids{"vital"});
  CHECK(core::is_critical(*node.unlisted.find("vital")->pod));

  node.tree.remove("cgroup/memory/kubepods/burstable/podvital");
  CHECK(node.look() == Uids{});
  node.tree.add("cgroup/memory/kubepods/burstable", cgroup("podvital", "2\n"));
  CHECK(node.look() == Uids{"vital"});
  CHECK_FALSE(core::is_critical(*node.unlisted.find("vital")->pod));
}

TEST_CASE("of a pod with very many processes only a few are looked at") {
  std::string many;
  for (int pid = 1; pid <= 20'000; ++pid) many += std::to_string(pid) + "\n";
  Node node{{cgroup("besteffort", "", {cgroup("podbomb", "", {cgroup("pause", "30000\n"), cgroup("main", many)})})},
            {process(1, 1000), process(30'000, -998)}};
  for (int pid = 2; pid <= 20'000; ++pid)
    std::filesystem::create_directory_symlink("1", node.tree.path("proc") / std::to_string(pid));
  const fixture::Openings openings{node.tree.path("proc/1/oom_score_adj")};
  CHECK(node.look() == Uids{"bomb"});
  CHECK(openings.count() <= 8);
  CHECK_FALSE(core::is_critical(*node.unlisted.find("bomb")->pod));
}

TEST_CASE("a pod with very many cgroups does not hide its processes") {
  std::vector<Entry> empty;
  for (int i = 0; i < 200; ++i) empty.push_back(cgroup(fmt::format("c{:03}", i), ""));
  empty.push_back(cgroup("zzz", "5\n"));
  Node node{{cgroup("podbomb", "", std::move(empty))}, {process(5, 1000)}};
  CHECK(node.look() == Uids{"bomb"});
}

TEST_CASE("a pod's cgroup is found by its uid where the runtime does not say where it is") {
  Node node{{cgroup("burstable", "", {cgroup("poda", "2\n")}),
             cgroup("kubepods-burstable.slice", "", {cgroup("kubepods-burstable-podb_c.slice", "3\n")})}};
  node.listed = {"a", "b-c"};
  CHECK(node.look() == Uids{});
  CHECK(node.unlisted.cgroup_of("a") == "/kubepods/burstable/poda");
  CHECK(node.unlisted.cgroup_of("b-c") == "/kubepods/kubepods-burstable.slice/kubepods-burstable-podb_c.slice");
  CHECK(node.unlisted.cgroup_of("x").empty());
}

TEST_CASE("a listed pod of which nothing else is known has what its cgroup tells, any other what the list tells") {
  core::Pod inferred{.name_space = "unlisted", .name = "u", .uid = "u"};
  inferred.status_qos = core::QosClass::Burstable;
  inferred.containers = {fixture::container("unknown", {{"memory", "1Gi"}})};
  const auto blank = std::make_shared<const core::Pod>(fixture::with_priority(fixture::pod("web"), 7));
  const auto completed = complete_blank(blank, inferred);
  CHECK(completed->key() == "default/web");
  CHECK(completed->priority == 7);
  CHECK(completed->status_qos == core::QosClass::Burstable);
  CHECK(core::pod_request(*completed, "memory").value() == 1 << 30);

  auto known = fixture::pod("web");
  known.status_qos = core::QosClass::BestEffort;
  const auto listed = std::make_shared<const core::Pod>(known);
  CHECK(complete_blank(listed, inferred) == listed);
}

TEST_CASE("cgroups among the pods' that bear no pod's name are told apart") {
  Node node{{cgroup("burstable", "", {cgroup("poda", "2\n"), cgroup("odd", "3\n")}), cgroup("besteffort", ""),
             cgroup("elsewhere", "", {cgroup("inner", "4\n")}), cgroup("tenant", "", {cgroup("podb", "5\n")}),
             cgroup("kubepods-besteffort.slice", "")}};
  node.look();
  CHECK(node.unlisted.strays() == std::vector<std::string>{"/kubepods/burstable/odd", "/kubepods/elsewhere"});
}

}  // namespace evictd::agent::unlisted_pods_test
