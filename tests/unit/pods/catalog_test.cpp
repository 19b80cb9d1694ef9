#include "pods/catalog.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"
#include "fixture/random.hpp"
#include "pods/fake_source.hpp"

namespace evictd::pods::catalog_test {
namespace {

using fixture::pod;
using fixture::with_priority;
using test::FakeSource;
using enum SpecOrigin;

core::PodListPtr share(core::PodList list) { return std::make_shared<const core::PodList>(std::move(list)); }

struct Node : test::HeardSpecs {
  Catalog catalog{"node1", TrustedNamespaces{{"kube-system"}}};
  FakeSource* manifests = add(Manifests);
  FakeSource* api = add(ApiServer);

  Node() { catalog.start(*this); }
  FakeSource* add(SpecOrigin origin) {
    auto source = std::make_unique<FakeSource>(origin);
    auto* raw = source.get();
    catalog.add(std::move(source));
    return raw;
  }
};

}  // namespace

TEST_CASE("without sources the runtime's list is the answer, the very same") {
  Catalog catalog{"", TrustedNamespaces{{}}};
  const auto listed = share(fixture::pods({pod("a")}));
  CHECK(catalog.complete(listed) == listed);
  CHECK(catalog.status().empty());
}

TEST_CASE("the richest source counts, in whatever order they were added") {
  Node node;
  node.manifests->say(fixture::pods({with_priority(pod("a"), 3)}));
  const auto listed = share(fixture::pods({pod("a"), pod("b")}));
  CHECK(node.catalog.complete(listed)->at(0)->priority == 3);
  node.api->say(fixture::pods({with_priority(pod("a"), 1)}));
  CHECK(node.changes == 2);
  CHECK(node.catalog.complete(listed)->at(0)->priority == 1);
  const auto statuses = node.catalog.status();
  REQUIRE(statuses.size() == 2);
  CHECK(statuses[0].origin == ApiServer);
  CHECK(statuses[1].origin == Manifests);
}

TEST_CASE("a pod in the cluster is what the API server shows of it, as long as that is known to be so") {
  Node node;
  auto failed = pod("a");
  failed.phase = "Failed";
  node.manifests->say(fixture::pods({pod("a"), pod("b")}));
  node.api->say(fixture::pods({failed}));
  CHECK(node.catalog.in_cluster(failed.uid) == nullptr);  // not looked through yet
  (void)node.catalog.complete(share({}));
  REQUIRE(node.catalog.in_cluster(failed.uid) != nullptr);
  CHECK(node.catalog.in_cluster(failed.uid)->phase == "Failed");
  CHECK(node.catalog.in_cluster(pod("b").uid) == nullptr);
  node.api->fail("away");
  CHECK(node.catalog.in_cluster(failed.uid) == nullptr);
  CHECK(Catalog{"", TrustedNamespaces{{}}}.in_cluster(failed.uid) == nullptr);
}

TEST_CASE(
    "a pod may be known while a source was never heard of, then if a source has it, also by its manifest's hash") {
  Node node;
  CHECK(node.catalog.may_know("nobody"));
  node.api->say({});
  CHECK(node.catalog.may_know("nobody"));
  auto mirror = pod("static");
  mirror.annotations["kubernetes.io/config.hash"] = "hash";
  node.manifests->say(fixture::pods({mirror}));
  CHECK_FALSE(node.catalog.may_know("nobody"));
  CHECK(node.catalog.may_know(mirror.uid));
  CHECK(node.catalog.may_know("hash"));
  node.manifests->fail("away");  // what was known of it still holds
  CHECK(node.catalog.may_know("hash"));
  CHECK_FALSE(node.catalog.may_know("nobody"));
  CHECK_FALSE(Catalog{"", TrustedNamespaces{{}}}.may_know("nobody"));
}

TEST_CASE("where nothing changed the answer is the same list") {
  Node node;
  node.api->say(fixture::pods({with_priority(pod("a"), 1)}));
  const auto listed = share(fixture::pods({pod("a")}));
  const auto first = node.catalog.complete(listed);
  CHECK(node.catalog.complete(listed) == first);
  CHECK(node.catalog.complete(share(fixture::pods({pod("a")}))) != first);
}

TEST_CASE("to ask about one pod leaves the list as true as it was") {
  Node node;
  node.api->say(fixture::pods({with_priority(pod("a"), 1)}));
  const auto listed = share(fixture::pods({pod("a")}));
  CHECK(node.catalog.complete(listed)->at(0)->priority == 1);
  node.api->say(fixture::pods({with_priority(pod("a"), 2)}));
  CHECK(node.catalog.complete(listed->at(0))->priority == 2);
  CHECK(node.catalog.complete(listed)->at(0)->priority == 2);
}

TEST_CASE("a source that is lost takes nothing away") {
  Node node;
  node.api->say(fixture::pods({with_priority(pod("a"), 1)}));
  const auto listed = share(fixture::pods({pod("a"), pod("b")}));
  const auto before = node.catalog.complete(listed);
  node.api->fail("connection refused");
  CHECK(node.degraded == std::vector<std::string>{"apiServer: connection refused"});
  CHECK(node.catalog.complete(listed) == before);
  CHECK(node.catalog.status().at(0).state == SpecSourceStatus::State::Stale);
}

TEST_CASE("sources that do not know a new pod are told to look, once") {
  Node node;
  node.api->say(fixture::pods({pod("a")}));
  const auto complete = [&](core::PodList list) { static_cast<void>(node.catalog.complete(share(std::move(list)))); };
  complete(fixture::pods({pod("a"), pod("b")}));
  CHECK(node.api->looks == 1);
  CHECK(node.manifests->looks == 2);
  complete(fixture::pods({pod("a"), pod("b")}));
  CHECK(node.api->looks == 1);
  CHECK(node.manifests->looks == 2);
  complete(fixture::pods({pod("a")}));
  complete(fixture::pods({pod("a"), pod("b")}));  // a pod that came back is new
  CHECK(node.api->looks == 2);
}

TEST_CASE("a pod known by its uid alone gets its name and its spec") {
  Node node;
  core::Pod unlisted{.name_space = "unlisted", .name = "u1", .uid = "u1"};
  unlisted.priority = core::system_critical_priority;
  const auto given = std::make_shared<const core::Pod>(unlisted);
  CHECK(node.catalog.identify(given) == given);
  auto spec = with_priority(pod("web"), 7);
  spec.uid = "u1";
  node.api->say(fixture::pods({spec}));
  static_cast<void>(node.catalog.complete(share({})));
  const auto identified = node.catalog.identify(given);
  CHECK(identified->key() == "default/web");
  CHECK(identified->uid == "u1");
  CHECK(identified->priority == 7);
}

TEST_CASE("property: through any sequence of lists, failures and recoveries every listed pod is in the answer") {
  for (const auto seed : fixture::seeds(100)) {
    CAPTURE(seed);
    fixture::Random random{seed};
    Node node;
    const auto some = [&] {
      core::PodList list;
      for (const auto* name : {"a", "b", "c", "d"})
        if (random.chance(60))
          list.push_back(std::make_shared<const core::Pod>(
              with_priority(pod(name), static_cast<std::int32_t>(random.between(0, 9)))));
      return list;
    };
    auto listed = share(some());
    std::map<std::string, std::optional<std::int32_t>> known;  // what the API server said last
    for (int step = 0; step < 30; ++step) {
      switch (random.between(0, 3)) {
        case 0: listed = share(some()); break;
        case 1: {
          auto list = some();
          known.clear();
          for (const auto& pod : list) known[pod->uid] = pod->priority;
          node.api->say(std::move(list));
          break;
        }
        case 2: node.api->fail("lost"); break;
        default: node.manifests->say(some());
      }
      const auto completed = node.catalog.complete(listed);
      REQUIRE(completed->size() == listed->size());
      for (std::size_t i = 0; i < listed->size(); ++i) {
        const auto& pod = *(*completed)[i];
        CHECK(pod.uid == (*listed)[i]->uid);
        if (const auto said = known.find(pod.uid); said != known.end()) CHECK(pod.priority == said->second);
      }
    }
  }
}

}  // namespace evictd::pods::catalog_test
