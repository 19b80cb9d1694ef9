#include "pods/trust.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fixture/pods.hpp"
#include "fixture/random.hpp"
#include "pods/assemble.hpp"
#include "pods/catalog.hpp"
#include "pods/fake_source.hpp"
#include "pods/pod_builder.hpp"
#include "pods/sandbox_pod.hpp"

namespace evictd::pods::trust_test {
namespace {

using fixture::pod;
using fixture::with_annotation;
using fixture::with_priority;
using test::FakeSource;
using enum SpecOrigin;

constexpr std::int64_t capacity = std::int64_t{4} << 30;
const auto by_default = TrustedNamespaces{{"kube-system"}};

using Texts = std::map<std::string, std::string>;

const std::string critical_spec = R"({"priority": 2000001000, "containers": [{"name": "main"}]})";
const std::string critical_class = R"({"priorityClassName": "system-node-critical", "containers": [{"name": "main"}]})";

/// Each alone makes a trusted pod critical.
const std::vector<std::pair<Texts, Texts>> claims{
    // annotations, labels
    {{{"kubernetes.io/config.source", "file"}}, {}},
    {{{"kubernetes.io/config.source", "http"}}, {}},
    {{{"kubernetes.io/config.source", ""}}, {}},
    {{{"kubernetes.io/config.source", "file"}, {"kubernetes.io/config.hash", "h1"}}, {}},
    {{{"kubernetes.io/config.mirror", "h1"}}, {}},
    {{{"kubernetes.io/config.mirror", ""}}, {}},
    {{{"evictd.io/priority", "2000000000"}}, {}},
    {{{"evictd.io/priority", "2147483647"}}, {}},
    {{{"evictd.io/priority-class", "system-node-critical"}}, {}},
    {{{"evictd.io/priority-class", "system-cluster-critical"}}, {}},
    {{}, {{"evictd.io/priority-class", "system-node-critical"}}},
    {{{"evictd.io/pod-spec", critical_spec}}, {}},
    {{{"evictd.io/pod-spec", critical_class}}, {}},
};

core::PodPtr listed(const std::string& name_space, const Texts& annotations, const Texts& labels = {},
                    const std::string& uid = "u1") {
  auto sandbox = test::sandbox("s1", "hog", uid);
  sandbox.mutable_metadata()->set_namespace_(name_space);
  sandbox.mutable_annotations()->insert(annotations.begin(), annotations.end());
  sandbox.mutable_labels()->insert(labels.begin(), labels.end());
  std::vector<Error> warnings;
  return assemble(sandbox, {}, {}, capacity, by_default, warnings).pod;
}

core::PodPtr asked(const std::string& name_space, const Texts& annotations, const Texts& labels) {
  runtime::v1::PodSandboxConfig config;
  config.mutable_metadata()->set_name("hog");
  config.mutable_metadata()->set_namespace_(name_space);
  config.mutable_metadata()->set_uid("u1");
  config.mutable_annotations()->insert(annotations.begin(), annotations.end());
  config.mutable_labels()->insert(labels.begin(), labels.end());
  return std::make_shared<const core::Pod>(pod_of_sandbox(config, capacity, by_default));
}

/// A catalog with one source that knows this.
core::PodPtr completed(const core::PodPtr& given, SpecOrigin origin, const core::Pod& spec) {
  Catalog catalog{"node1", by_default};
  auto source = std::make_unique<FakeSource>(origin);
  source->say(fixture::pods({spec}));
  catalog.add(std::move(source));
  const auto list = catalog.complete(std::make_shared<const core::PodList>(core::PodList{given}));
  REQUIRE(list->size() == 1);
  return list->front();
}

core::Pod hog_spec(std::string uid = "u1") {
  auto spec = pod("hog");
  spec.name_space = "shop";
  spec.uid = std::move(uid);
  return spec;
}

}  // namespace

TEST_CASE("by its own word a pod is critical in a trusted namespace only, listed or asked for") {
  for (const auto& [annotations, labels] : claims) {
    CAPTURE(fmt::format("{} {}",
                        annotations.empty() ? "" : annotations.begin()->first + "=" + annotations.begin()->second,
                        labels.size()));
    for (const auto& make :
         {+[](const std::string& name_space, const Texts& a, const Texts& l) { return listed(name_space, a, l); },
          &asked}) {
      Catalog catalog{"node1", by_default};
      CHECK(core::is_critical(*make("kube-system", annotations, labels)));
      CHECK(core::is_critical(*catalog.complete(make("kube-system", annotations, labels))));
      CHECK(catalog.take_warnings().empty());
      CHECK_FALSE(core::is_critical(*catalog.complete(make("shop", annotations, labels))));
      CHECK_FALSE(core::is_critical(*catalog.without_spec(make("shop", annotations, labels))));
      CHECK_FALSE(core::is_critical(*catalog.complete(make("kube-system ", annotations, labels))));
      CHECK_FALSE(core::is_critical(*catalog.complete(make("*", annotations, labels))));
      CHECK_FALSE(core::is_critical(*catalog.complete(make("", annotations, labels))));
    }
  }
}

TEST_CASE("the trusted namespaces are those that are named, or all, or none") {
  CHECK(by_default.contains("kube-system"));
  CHECK_FALSE(by_default.contains("default"));
  CHECK(TrustedNamespaces{{"*"}}.contains("default"));
  CHECK_FALSE(TrustedNamespaces{{}}.contains("kube-system"));
  const TrustedNamespaces two{{"a", "b"}};
  CHECK(two.contains("b"));
  CHECK_FALSE(two.contains("ab"));
}

TEST_CASE("without the claim a pod keeps what a user may say of it") {
  const auto made = Catalog{"", by_default}.complete(
      listed("shop", {{"evictd.io/priority", "2000000000"}, {"evictd.io/priority-class", "high"}, {"kept", "1"}}));
  CHECK(made->priority == highest_user_priority);
  CHECK(made->priority_class_name == "high");
  CHECK(made->annotations.contains("kept"));
  const auto modest = listed("shop", {{"evictd.io/priority", "1000"}, {"kubernetes.io/config.source", "api"}});
  CHECK(Catalog{"", by_default}.complete(modest) == modest);
  // Nor does it go before all others by being almost critical.
  CHECK(Catalog{"", by_default}.complete(listed("shop", {{"evictd.io/priority", "1999999999"}}))->priority ==
        highest_user_priority);
}

TEST_CASE("a spec of somebody in charge is believed in any namespace") {
  const auto modest = listed("shop", {});
  for (const auto origin : {ApiServer, Kubelet})
    CHECK(core::is_critical(*completed(modest, origin, with_priority(hog_spec(), 2'000'000'000))));
  CHECK(core::is_critical(*completed(modest, Manifests, with_priority(hog_spec(""), 2'000'000'000))));

  const auto from_file =
      listed("shop", {{"kubernetes.io/config.source", "file"}, {"kubernetes.io/config.hash", "h1"}}, {}, "h1");
  SUBCASE("a static pod by its manifest") { CHECK(core::is_critical(*completed(from_file, Manifests, hog_spec("")))); }
  SUBCASE("a static pod by the kubelet's word") {
    const auto spec = with_annotation(hog_spec("h1"), "kubernetes.io/config.source", "file");
    CHECK(core::is_critical(*completed(from_file, Kubelet, spec)));
  }
  SUBCASE("a static pod by its mirror pod") {
    const auto mirror = with_annotation(hog_spec("u9"), "kubernetes.io/config.mirror", "h1");
    CHECK(core::is_critical(*completed(from_file, ApiServer, mirror)));
  }
}

TEST_CASE("what a user wrote into an authentic spec's annotations is the user's word still") {
  const auto plain = listed("shop", {});
  const auto said_static = with_annotation(hog_spec(), "kubernetes.io/config.source", "file");
  CHECK_FALSE(core::is_critical(*completed(plain, ApiServer, said_static)));
  CHECK_FALSE(
      core::is_critical(*completed(listed("shop", {{"kubernetes.io/config.source", "api"}}), ApiServer, said_static)));
  auto prioritised = with_annotation(hog_spec(), "evictd.io/priority", "2000000000");
  prioritised.annotations["evictd.io/pod-spec"] = critical_spec;
  for (const auto origin : {ApiServer, Kubelet}) CHECK_FALSE(core::is_critical(*completed(plain, origin, prioritised)));

  // As for a pod that has a cgroup but is not listed yet.
  Catalog catalog{"node1", by_default};
  auto source = std::make_unique<FakeSource>(ApiServer);
  source->say(fixture::pods({said_static}));
  catalog.add(std::move(source));
  static_cast<void>(catalog.complete(plain));
  const auto unlisted =
      std::make_shared<const core::Pod>(core::Pod{.name_space = "unlisted", .name = "u1", .uid = "u1"});
  const auto identified = catalog.identify(unlisted);
  CHECK(identified->key() == "shop/hog");
  CHECK_FALSE(core::is_critical(*identified));
}

TEST_CASE("an authentic spec that says nothing of importance leaves a false claim as false as it was") {
  for (const auto& [annotations, labels] : claims)
    for (const auto origin : {ApiServer, Kubelet})
      CHECK_FALSE(core::is_critical(*completed(listed("shop", annotations, labels), origin, hog_spec())));
}

TEST_CASE("who is not believed is told of once, with the key") {
  Catalog catalog{"node1", by_default};
  const auto list = [](core::PodList pods) { return std::make_shared<const core::PodList>(std::move(pods)); };
  const auto hog = listed("shop", {{"evictd.io/priority", "2000000000"}});
  static_cast<void>(catalog.complete(hog));  // asked for
  const auto first = catalog.take_warnings();
  REQUIRE(first.size() == 1);
  CHECK(first[0].message ==
        "pod shop/hog: says by its annotations or labels that it is critical, which is not believed; if whoever makes "
        "pods in this namespace may decide that, name it in podSources.trustedNamespaces");
  static_cast<void>(catalog.complete(list({hog})));  // and listed, twice
  static_cast<void>(
      catalog.complete(list({listed("shop", {{"evictd.io/priority", "2000000000"}}), listed("shop", {})})));
  CHECK(catalog.take_warnings().empty());
  static_cast<void>(catalog.complete(list({listed("shop", {{"kubernetes.io/config.mirror", "x"}}, {}, "u2")})));
  CHECK(catalog.take_warnings().size() == 1);
}

TEST_CASE("property: no annotations or labels make a pod of an untrusted namespace critical") {
  const std::vector<std::string> keys{"kubernetes.io/config.source",
                                      "kubernetes.io/config.hash",
                                      "kubernetes.io/config.mirror",
                                      "evictd.io/priority",
                                      "evictd.io/priority-class",
                                      "evictd.io/pod-spec",
                                      "io.kubernetes.pod.uid",
                                      "io.kubernetes.pod.namespace",
                                      "priority",
                                      "anything"};
  const std::vector<std::string> values{"",
                                        "file",
                                        "api",
                                        "http",
                                        "h1",
                                        "u1",
                                        "2000000000",
                                        "2147483647",
                                        "-1",
                                        critical_spec,
                                        critical_class,
                                        "system-node-critical",
                                        "system-cluster-critical",
                                        "kube-system",
                                        "\n",
                                        "\xff"};
  const auto one_of = [](fixture::Random& random, const auto& from) {
    return from[static_cast<std::size_t>(random.between(0, std::ssize(from) - 1))];
  };
  for (const auto seed : fixture::seeds(2000)) {
    CAPTURE(seed);
    fixture::Random random{seed};
    const auto texts = [&] {
      Texts result;
      for (auto i = random.between(0, 6); i > 0; --i) result[one_of(random, keys)] = one_of(random, values);
      return result;
    };
    const auto name_space = random.pick<std::string>({"shop", "default", "kube-system2", "", "KUBE-SYSTEM"});
    Catalog catalog{"node1", by_default};
    // What those in charge know is of modest importance; what users wrote into it is anything.
    for (const auto origin : {ApiServer, Kubelet}) {
      auto source = std::make_unique<FakeSource>(origin);
      auto spec = hog_spec(random.pick<std::string>({"u1", "h1", "u9"}));
      spec.name_space = random.chance(80) ? name_space : "other";
      if (random.chance(50)) spec.priority = static_cast<std::int32_t>(random.between(-5, 1000));
      for (const auto& [key, value] : texts())
        if (key != "kubernetes.io/config.mirror" && (origin == ApiServer || key != "kubernetes.io/config.source"))
          spec.annotations[key] = value;
      for (const auto& [key, value] : texts()) spec.labels[key] = value;
      if (random.chance(60)) source->say(fixture::pods({spec}));
      catalog.add(std::move(source));
    }
    const auto pod = listed(name_space, texts(), texts(), random.pick<std::string>({"u1", "h1"}));
    const auto made = catalog.complete(std::make_shared<const core::PodList>(core::PodList{pod}));
    CHECK_FALSE(core::is_critical(*made->front()));
    CHECK_FALSE(core::is_critical(*catalog.complete(asked(name_space, texts(), texts()))));
  }
}

}  // namespace evictd::pods::trust_test
