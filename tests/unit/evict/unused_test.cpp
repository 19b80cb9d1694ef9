#include "evict/unused.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include "pods/pod_builder.hpp"

namespace evictd::evict::unused_test {

using namespace evictd;
using evict::is_used;
using test::container;
using test::sandbox;
namespace v1 = ::runtime::v1;

namespace {

using Ids = std::vector<std::string>;

struct Node {
  v1::ListPodSandboxResponse sandboxes;
  v1::ListContainersResponse containers;

  void add(v1::PodSandbox sandbox, bool ready = true) {
    sandbox.set_state(ready ? v1::SANDBOX_READY : v1::SANDBOX_NOTREADY);
    *sandboxes.add_items() = std::move(sandbox);
  }
  void add(v1::Container container) { *containers.add_containers() = std::move(container); }

  [[nodiscard]] Ids unused_containers() const {
    Ids ids;
    for (const auto& unused : evict::unused_containers(containers, sandboxes)) ids.push_back(unused.id());
    return ids;
  }
  [[nodiscard]] Ids unused_sandboxes() const { return evict::unused_sandboxes(sandboxes, containers); }
};

v1::Image image(const std::string& id, const std::string& tag = "", const std::string& digest = "") {
  v1::Image image;
  image.set_id(id);
  if (!tag.empty()) image.add_repo_tags(tag);
  if (!digest.empty()) image.add_repo_digests(digest);
  return image;
}

v1::ListContainersResponse one_using(const std::string& ref, const std::string& spec,
                                     v1::ContainerState state = v1::CONTAINER_RUNNING) {
  v1::ListContainersResponse containers;
  auto& added = *containers.add_containers() = container("c", "s", "app", state);
  added.set_image_ref(ref);
  added.mutable_image()->set_image(spec);
  return containers;
}

}  // namespace

TEST_CASE("nothing is unused on an empty node") {
  const Node node;
  CHECK(node.unused_containers().empty());
  CHECK(node.unused_sandboxes().empty());
}

TEST_CASE("a running pod keeps what runs, what is about to start, and the last end of each container") {
  Node node;
  node.add(sandbox("s", "web", "u"));
  node.add(container("init", "s", "init", v1::CONTAINER_EXITED, 1));
  node.add(container("app", "s", "app", v1::CONTAINER_RUNNING, 2));
  node.add(container("next", "s", "next", v1::CONTAINER_CREATED, 3));
  node.add(container("odd", "s", "odd", v1::CONTAINER_UNKNOWN, 4));
  CHECK(node.unused_containers().empty());
  CHECK(node.unused_sandboxes().empty());
}

TEST_CASE("of a running pod's ends of one container all but the latest are unused, in whatever order they are listed") {
  Node node;
  node.add(sandbox("s", "web", "u"));
  node.add(container("second", "s", "app", v1::CONTAINER_EXITED, 20));
  node.add(container("third", "s", "app", v1::CONTAINER_EXITED, 30));
  node.add(container("first", "s", "app", v1::CONTAINER_EXITED, 10));
  node.add(container("other", "s", "sidecar", v1::CONTAINER_EXITED, 5));
  SUBCASE("while it is down") {}
  SUBCASE("and when it runs again") { node.add(container("fourth", "s", "app", v1::CONTAINER_RUNNING, 40)); }
  CHECK(node.unused_containers() == Ids{"first", "second"});
}

TEST_CASE("a pod lives on in a newer sandbox: the old one stays as long as it has the latest end of a container") {
  Node node;
  node.add(sandbox("old", "web", "u", 1), false);
  node.add(sandbox("new", "web", "u", 2));
  node.add(container("before", "old", "app", v1::CONTAINER_EXITED, 1));
  SUBCASE("which it has") {
    node.add(container("now", "new", "app", v1::CONTAINER_RUNNING, 2));
    CHECK(node.unused_containers().empty());
    CHECK(node.unused_sandboxes().empty());
  }
  SUBCASE("which it has not any more") {
    node.add(container("since", "new", "app", v1::CONTAINER_EXITED, 2));
    CHECK(node.unused_containers() == Ids{"before"});
    node.containers.mutable_containers()->DeleteSubrange(0, 1);
    CHECK(node.unused_sandboxes() == Ids{"old"});
  }
}

TEST_CASE("a dead pod keeps nothing, the oldest container goes first") {
  Node node;
  node.add(sandbox("s", "web", "u"), false);
  node.add(container("late", "s", "app", v1::CONTAINER_EXITED, 2));
  node.add(container("early", "s", "init", v1::CONTAINER_EXITED, 1));
  node.add(container("never", "s", "next", v1::CONTAINER_CREATED, 3));
  CHECK(node.unused_containers() == Ids{"early", "late", "never"});
  CHECK(node.unused_sandboxes().empty());  // not before its containers are gone
  node.containers.clear_containers();
  CHECK(node.unused_sandboxes() == Ids{"s"});
}

TEST_CASE("a pod whose sandbox died lives while a container runs, or may run") {
  for (const auto state : {v1::CONTAINER_RUNNING, v1::CONTAINER_UNKNOWN}) {
    CAPTURE(state);
    Node node;
    node.add(sandbox("s", "web", "u"), false);
    node.add(container("app", "s", "app", state));
    node.add(container("init", "s", "init", v1::CONTAINER_EXITED));
    CHECK(node.unused_containers().empty());
    CHECK(node.unused_sandboxes().empty());
  }
}

TEST_CASE("pods without a uid are told apart by their sandboxes") {
  Node node;
  node.add(sandbox("alive", "web", ""));
  node.add(sandbox("dead", "web", ""), false);
  node.add(container("a", "alive", "app", v1::CONTAINER_EXITED));
  node.add(container("d", "dead", "app", v1::CONTAINER_EXITED));
  CHECK(node.unused_containers() == Ids{"d"});
}

TEST_CASE("a container that has lost its sandbox is unused unless it runs") {
  Node node;
  node.add(container("left", "gone", "app", v1::CONTAINER_EXITED));
  node.add(container("runs", "lost", "app", v1::CONTAINER_RUNNING));
  CHECK(node.unused_containers() == Ids{"left"});
}

TEST_CASE("a container uses its image by id, tag or digest, also when it has exited") {
  const auto some = image("sha256:1", "shop/web:1", "shop/web@sha256:2");
  for (const auto* ref : {"sha256:1", "shop/web:1", "shop/web@sha256:2"}) {
    CAPTURE(ref);
    CHECK(is_used(some, one_using(ref, ""), {}));
    CHECK(is_used(some, one_using(ref, "", v1::CONTAINER_EXITED), {}));
    CHECK(is_used(some, one_using("", ref), {}));  // a runtime that tells no more than was asked for
    CHECK_FALSE(is_used(image("sha256:3", "shop/web:2", "shop/web@sha256:4"), one_using(ref, ""), {}));
  }
  CHECK_FALSE(is_used(some, {}, {}));
}

TEST_CASE("an image that is mounted is used, by whatever name it was mounted") {
  const auto some = image("sha256:1", "shop/web:1", "shop/web@sha256:2");
  const auto containers = one_using("sha256:9", "shop/other:1");
  for (const auto* reference : {"sha256:1", "shop/web:1", "shop/web@sha256:2"}) {
    CAPTURE(reference);
    CHECK(is_used(some, containers, {"sha256:8", reference}));
    CHECK_FALSE(is_used(image("sha256:3", "shop/web:2", "shop/web@sha256:4"), containers, {reference}));
  }
}

TEST_CASE("a tag that has moved to another image does not make that one used") {
  const auto containers = one_using("sha256:old", "shop/web:latest");
  CHECK(is_used(image("sha256:old"), containers, {}));
  CHECK_FALSE(is_used(image("sha256:new", "shop/web:latest"), containers, {}));
}

}  // namespace evictd::evict::unused_test
