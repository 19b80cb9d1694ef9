#include "evict/node_reclaim.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "async/wait_all.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::evict::node_reclaim_test {

using namespace evictd;
using test::container;
using test::run;
using test::sandbox;
namespace asio = boost::asio;
namespace v1 = ::runtime::v1;
using namespace std::chrono_literals;

namespace {

using Done = std::vector<std::string>;

/// One running pod, one dead one; the images of both, of the sandboxes, a pinned one and one that nobody uses.
struct Fixture {
  std::chrono::milliseconds deadline;
  test::FakeRuntime runtime;
  asio::io_context reactor{1};
  cri::Client client{reactor.get_executor(), runtime.endpoint(), deadline};
  evict::NodeReclaimer reclaimer{client};

  explicit Fixture(std::chrono::milliseconds deadline = 20s) : deadline{deadline} {
    runtime.set_config(R"({"sandboxImage":"pause:3.6"})");
    runtime.put(sandbox("s-web", "web", "u-web"), "{}");
    put_container("c-web", "s-web", v1::CONTAINER_RUNNING, "i-web");
    auto dead = sandbox("s-job", "job", "u-job");
    dead.set_state(v1::SANDBOX_NOTREADY);
    runtime.put(dead, "{}");
    put_container("c-job", "s-job", v1::CONTAINER_EXITED, "i-job");
    put_image("i-web");
    put_image("i-job");
    put_image("i-pause", "pause:3.6");
    put_image("i-pinned", "tool:1", true);
    put_image("i-idle");
    runtime.start();
  }

  void put_container(const std::string& id, const std::string& sandbox_id, v1::ContainerState state,
                     const std::string& image) {
    auto added = container(id, sandbox_id, "app", state);
    added.set_image_ref(image);
    runtime.put(added, "{}");
  }
  void put_image(const std::string& id, const std::string& tag = "", bool pinned = false) {
    v1::Image image;
    image.set_id(id);
    image.add_repo_tags(tag.empty() ? "shop/" + id + ":1" : tag);
    image.set_pinned(pinned);
    runtime.put(std::move(image));
  }
  void observe() { REQUIRE(run(reactor, reclaimer.observe_images())); }
  evict::ReclaimResult reclaim(bool containers, bool images) { return run(reactor, reclaimer.run(containers, images)); }
};

/// How often images had been listed when the first one was removed.
int lists_before_removal(std::size_t reclaims) {
  Fixture f;
  std::atomic<int> lists = 0;
  f.runtime.meanwhile("RemoveImage", [&] {
    std::this_thread::sleep_for(100ms);  // a large image takes its time
    if (lists == 0) lists = f.runtime.calls("ListImages");
  });
  std::vector<asio::awaitable<evict::ReclaimResult>> runs;
  while (runs.size() < reclaims) runs.push_back(f.reclaimer.run(false, true));
  for (const auto& result : run(f.reactor, async::wait_all(std::move(runs)))) CHECK(result.errors.empty());
  CHECK(f.runtime.done() == Done{"RemoveImage i-idle"});
  CHECK(f.runtime.calls("ListImages") == static_cast<int>(reclaims) * lists);
  return lists;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("dead containers go first, then their sandboxes, then the images that nobody uses any more") {
  Fixture f;
  const auto result = f.reclaim(true, true);
  CHECK(f.runtime.done() == Done{"RemoveContainer c-job", "StopPodSandbox s-job", "RemovePodSandbox s-job",
                                 "RemoveImage i-idle", "RemoveImage i-job"});
  CHECK(result.containers_removed == 1);
  CHECK(result.sandboxes_removed == 1);
  CHECK(result.images_removed == 2);
  CHECK(result.errors.empty());
  CHECK(f.runtime.container_state("c-web") == v1::CONTAINER_RUNNING);
  CHECK(f.runtime.sandbox_state("s-web") == v1::SANDBOX_READY);
}

TEST_CASE("only what was asked for is removed") {
  Fixture f;
  SUBCASE("containers") {
    f.reclaim(true, false);
    CHECK(f.runtime.done() == Done{"RemoveContainer c-job", "StopPodSandbox s-job", "RemovePodSandbox s-job"});
    CHECK(f.runtime.calls("ListImages") == 0);
  }
  SUBCASE("images, where the one of an exited container is in use") {
    f.reclaim(false, true);
    CHECK(f.runtime.done() == Done{"RemoveImage i-idle"});
  }
  SUBCASE("nothing") {
    const auto result = f.reclaim(false, false);
    CHECK(f.runtime.done().empty());
    CHECK(result.errors.empty());
  }
}

TEST_CASE("the image whose use ended longest ago goes first, those never used before all, by when they were seen") {
  Fixture f;
  // Named against the order that is expected.
  f.put_image("i-9");
  f.put_container("c-8", "s-web", v1::CONTAINER_RUNNING, "i-8");
  f.put_image("i-8");
  f.observe();
  f.put_container("c-8", "s-web", v1::CONTAINER_RUNNING, "i-7");
  f.put_image("i-7");
  f.put_image("i-1");
  f.observe();
  f.runtime.remove_container("c-8");
  f.put_image("i-0");
  f.reclaim(false, true);
  CHECK(f.runtime.done() == Done{"RemoveImage i-9", "RemoveImage i-idle", "RemoveImage i-1", "RemoveImage i-0",
                                 "RemoveImage i-8", "RemoveImage i-7"});
}

TEST_CASE("a reclaim that is asked for while another is under way begins when that is over") {
  CHECK(lists_before_removal(3) == lists_before_removal(1));
}

TEST_CASE("an image that is too young stays, without a word") {
  Fixture f;
  evict::NodeReclaimer patient{f.client, {.minimum_image_age = 1h}};
  const auto result = run(f.reactor, patient.run(true, true));
  CHECK(f.runtime.done() == Done{"RemoveContainer c-job", "StopPodSandbox s-job", "RemovePodSandbox s-job"});
  CHECK(result.images_removed == 0);
  CHECK(result.errors.empty());
}

TEST_CASE("an image grows old from the first look at it on: the reclaim that sees it first leaves it") {
  Fixture f;
  evict::NodeReclaimer reclaimer{f.client, {.minimum_image_age = 1ns}};
  run(f.reactor, reclaimer.run(false, true));
  CHECK(f.runtime.done().empty());
  run(f.reactor, reclaimer.run(false, true));
  CHECK(f.runtime.done() == Done{"RemoveImage i-idle"});
}

TEST_CASE("an image that was in use when the reclaim began stays, though its container has gone since") {
  Fixture f;
  f.runtime.meanwhile("Status", [&] { f.runtime.remove_container("c-job"); });
  const auto result = f.reclaim(false, true);
  CHECK(f.runtime.done() == Done{"RemoveImage i-idle"});
  CHECK(result.images_removed == 1);
  CHECK(f.reclaim(false, true).images_removed == 1);
  CHECK(f.runtime.done().back() == "RemoveImage i-job");
}

TEST_CASE("an image that a container begins to use during the reclaim stays") {
  Fixture f;
  f.put_image("i-next");
  f.runtime.meanwhile("RemoveImage", [&] { f.put_container("c-new", "s-web", v1::CONTAINER_CREATED, "i-next"); });
  const auto result = f.reclaim(false, true);
  CHECK(f.runtime.done() == Done{"RemoveImage i-idle"});
  CHECK(result.images_removed == 1);
  CHECK(result.errors.empty());
}

TEST_CASE("an image that a container has mounted as a volume stays, as long as the container is there") {
  Fixture f;
  SUBCASE("of a container that runs, by the image's id") { f.runtime.mount_image("c-web", "i-idle"); }
  SUBCASE("of one that has exited, by a tag") { f.runtime.mount_image("c-job", "shop/i-idle:1"); }
  const auto result = f.reclaim(false, true);
  CHECK(f.runtime.done().empty());
  CHECK(result.errors.empty());
  f.runtime.remove_container("c-web");
  f.runtime.remove_container("c-job");
  CHECK(f.reclaim(false, true).images_removed == 3);
}

TEST_CASE("a container's status is asked for once, and only when images are about to go") {
  Fixture f;
  const auto asked = [&] { return f.runtime.calls("ContainerStatus"); };
  f.observe();
  f.reclaim(true, false);
  CHECK(asked() == 0);
  f.put_container("c-old", "s-web", v1::CONTAINER_EXITED, "i-web");
  f.put_image("i-other");
  f.reclaim(false, true);
  CHECK(f.runtime.calls("RemoveImage") == 3);
  CHECK(asked() == 2);
  f.reclaim(false, true);
  CHECK(asked() == 2);
  f.put_container("c-next", "s-web", v1::CONTAINER_RUNNING, "i-web");
  f.reclaim(false, true);
  CHECK(asked() == 3);
}

TEST_CASE("while the runtime does not tell what a container has mounted, all images stay") {
  Fixture f{2s};
  SUBCASE("it fails") { f.runtime.fail("ContainerStatus", 13); }
  SUBCASE("it does not answer: that costs the deadline of one call") { f.runtime.hang("ContainerStatus"); }
  const auto result = f.reclaim(false, true);
  CHECK(f.runtime.done().empty());
  CHECK(f.runtime.calls("ContainerStatus") == 1);
  REQUIRE(result.errors.size() == 1);
  CHECK(contains(result.errors[0].message, "images stay, for container c-job may have them mounted: unix://"));
  f.runtime.recover("ContainerStatus");
  CHECK(f.reclaim(false, true).images_removed == 1);
}

TEST_CASE("a container that has gone since it was listed has nothing mounted") {
  Fixture f;
  f.runtime.fail("ContainerStatus", 5);
  const auto result = f.reclaim(false, true);
  CHECK(f.runtime.done() == Done{"RemoveImage i-idle"});
  CHECK(result.errors.empty());
}

TEST_CASE("a container that comes during the reclaim is asked about before the next image goes") {
  Fixture f;
  f.put_image("i-next");
  bool told = true;
  SUBCASE("it has mounted it") { f.runtime.mount_image("c-new", "i-next"); }
  SUBCASE("it cannot be told whether it has") { told = false; }
  f.runtime.meanwhile("RemoveImage", [&] {
    if (!told) f.runtime.fail("ContainerStatus", 13);
    f.put_container("c-new", "s-web", v1::CONTAINER_CREATED, "i-web");
  });
  const auto result = f.reclaim(false, true);
  CHECK(f.runtime.done() == Done{"RemoveImage i-idle"});
  CHECK(result.errors.size() == (told ? 0 : 1));
}

TEST_CASE("a sandbox that becomes not ready after the containers were listed is not taken from its running container") {
  Fixture f;
  f.runtime.meanwhile("RemoveContainer", [&] {
    auto died = sandbox("s-new", "new", "u-new");
    died.set_state(v1::SANDBOX_NOTREADY);
    f.runtime.put(died, "{}");
    f.put_container("c-new", "s-new", v1::CONTAINER_RUNNING, "i-web");
  });
  f.reclaim(true, false);
  CHECK(f.runtime.done() == Done{"RemoveContainer c-job", "StopPodSandbox s-job", "RemovePodSandbox s-job"});
}

TEST_CASE("what cannot be removed is told in one line each and does not keep the rest") {
  Fixture f;
  SUBCASE("a container: its sandbox and its image stay with it") {
    f.runtime.fail("RemoveContainer", 13);
    const auto result = f.reclaim(true, true);
    CHECK(f.runtime.done() == Done{"RemoveImage i-idle"});
    REQUIRE(result.errors.size() == 1);
    CHECK(contains(result.errors[0].message, "cannot remove container app (c-job): unix://"));
  }
  SUBCASE("a sandbox that does not stop") {
    f.runtime.fail("StopPodSandbox", 13);
    const auto result = f.reclaim(true, true);
    CHECK(f.runtime.done() == Done{"RemoveContainer c-job", "RemoveImage i-idle", "RemoveImage i-job"});
    CHECK(result.sandboxes_removed == 0);
    REQUIRE(result.errors.size() == 1);
    CHECK(contains(result.errors[0].message, "cannot stop dead sandbox s-job: unix://"));
  }
  SUBCASE("an image, and the next one") {
    f.runtime.fail("RemoveImage", 13);
    const auto result = f.reclaim(true, true);
    CHECK(result.containers_removed == 1);
    CHECK(result.images_removed == 0);
    REQUIRE(result.errors.size() == 2);
    CHECK(contains(result.errors[0].message, "cannot remove image shop/i-idle:1: unix://"));
    CHECK(contains(result.errors[1].message, "cannot remove image shop/i-job:1: unix://"));
  }
}

TEST_CASE("what is already gone is neither removed by us nor an error") {
  Fixture f;
  f.runtime.fail("RemoveContainer", 5);
  const auto result = f.reclaim(true, false);
  CHECK(result.containers_removed == 0);
  CHECK(result.errors.empty());
}

TEST_CASE("while it is unknown which image is the sandboxes', all stay") {
  Fixture f;
  std::string_view why;
  SUBCASE("the runtime does not tell its configuration") {
    f.runtime.fail("Status", 13);
    why = "Status: ordered by the test";
  }
  SUBCASE("it cannot be read") {
    f.runtime.set_config("pause:3.6");
    why = "Status: verbose status is not JSON";
  }
  SUBCASE("it cannot be found among the images") {
    f.runtime.fail("ImageStatus", 13);
    why = "ImageStatus: ordered by the test";
  }
  const auto result = f.reclaim(false, true);
  CHECK(f.runtime.done().empty());
  REQUIRE(result.errors.size() == 1);
  CHECK(contains(result.errors[0].message, "no image is removed"));
  CHECK(contains(result.errors[0].message, why));
}

TEST_CASE("a runtime that names no image for the sandboxes, or one that it has not, has none to keep but the pinned") {
  Fixture f;
  f.put_image("i-pause", "pause:3.10", true);
  SUBCASE("it names none") { f.runtime.set_config("{}"); }
  SUBCASE("it has not pulled it") {}
  f.reclaim(false, true);
  CHECK(f.runtime.done() == Done{"RemoveImage i-idle"});
}

TEST_CASE("a runtime that does not answer costs each call's deadline, and reclaim ends") {
  Fixture f{2s};
  for (const auto* method : {"ListContainers", "ListImages"}) f.runtime.hang(method);
  const auto result = f.reclaim(true, true);
  CHECK(f.runtime.done().empty());
  REQUIRE(result.errors.size() == 3);  // containers, sandboxes, images
  CHECK(contains(result.errors[0].message, "cannot look for unused containers"));
  CHECK(contains(result.errors[1].message, "cannot look for dead sandboxes"));
  CHECK(contains(result.errors[2].message, "cannot look for unused images"));
}

TEST_CASE("without a runtime reclaim ends with one error, not one for each step") {
  Fixture f;
  f.runtime.stop();
  const auto result = f.reclaim(true, true);
  REQUIRE(result.errors.size() == 1);
  CHECK(contains(result.errors[0].message, "cannot look for unused containers: " + f.runtime.endpoint()));
}

TEST_CASE("after its time limit reclaim begins no further removal, and says so once") {
  Fixture f;
  evict::NodeReclaimer hurried{f.client, {.time_limit = 0s}};
  const auto result = run(f.reactor, hurried.run(true, true));
  CHECK(f.runtime.done().empty());
  REQUIRE(result.errors.size() == 1);
  CHECK(contains(result.errors[0].message, "not done after 0s"));
}

}  // namespace evictd::evict::node_reclaim_test
