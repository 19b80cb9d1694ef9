#include "agent/runtime_events.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <optional>

#include "agent/fake_clock.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/presence.hpp"
#include "cri/run.hpp"

namespace evictd::agent::runtime_events_test {
namespace {

using namespace std::chrono_literals;
constexpr int unimplemented = 12;
constexpr int unavailable = 14;

/// A runtime, and who listens to it. It is on trial for a second of the real clock.
struct Scene final : private RuntimeEventListener, private cri::PresenceListener {
  explicit Scene(bool kubelet_listens = false) : events{reactor.get_executor(), client, clock, kubelet_listens} {
    client.watch(*this);
    events.start(*this);
  }
  ~Scene() { events.stop(); }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void on_runtime_event() override { ++told; }
  void presence_changed(const cri::Presence& presence) override {
    ++changes;
    if (presence.present) events.appeared(name.value_or(presence.detail));
  }
  template <class Done>
  bool until(Done done) {
    return test::run_until(reactor, done);
  }
  [[nodiscard]] int streams() const { return runtime.calls("GetContainerEvents"); }
  void start() {
    runtime.start();
    REQUIRE(until([this] { return runtime.listeners() == 1; }));
  }

  boost::asio::io_context reactor{1};
  FakeClock clock{reactor};
  test::FakeRuntime runtime;
  cri::Client client{reactor.get_executor(), runtime.endpoint(), test::patience};
  RuntimeEvents events;
  std::optional<std::string> name;  // in place of the runtime's own
  int told = 0;
  int changes = 0;
};

}  // namespace

TEST_CASE("every event is told") {
  Scene scene;
  scene.start();
  scene.runtime.tell();
  REQUIRE(scene.until([&] { return scene.told == 1; }));
  CHECK(scene.events.heard());
  scene.runtime.tell(2);
  CHECK(scene.until([&] { return scene.told == 3; }));
}

TEST_CASE("a runtime that says nothing counts as heard after a while, and what was before that is asked for") {
  Scene scene;
  scene.start();
  CHECK_FALSE(scene.events.heard());
  CHECK(scene.until([&] { return scene.events.heard(); }));
  CHECK(scene.told == 1);
}

TEST_CASE("a runtime that has no events is asked once each time that it appears") {
  Scene scene;
  scene.runtime.fail("GetContainerEvents", unimplemented);
  scene.runtime.start();
  REQUIRE(scene.until([&] { return scene.streams() == 1; }));
  const auto later = std::chrono::steady_clock::now() + 500ms;
  static_cast<void>(scene.until([&] { return std::chrono::steady_clock::now() >= later; }));
  CHECK(scene.streams() == 1);
  CHECK_FALSE(scene.events.heard());

  scene.runtime.stop();
  REQUIRE(scene.until([&] { return scene.changes == 2; }));
  scene.runtime.recover("GetContainerEvents");  // it was updated
  scene.runtime.start();
  CHECK(scene.until([&] { return scene.events.heard(); }));
  CHECK(scene.streams() == 2);
}

TEST_CASE("a stream that breaks has pods listed, and is opened anew") {
  Scene scene;
  scene.start();
  scene.runtime.tell();
  REQUIRE(scene.until([&] { return scene.told == 1; }));
  SUBCASE("by an error") { scene.runtime.end_streams(unavailable); }
  SUBCASE("in order") { scene.runtime.end_streams(0); }
  SUBCASE("by bytes that are no event") { scene.runtime.tell_garbage(); }
  REQUIRE(scene.until([&] { return scene.told == 2; }));
  CHECK_FALSE(scene.events.heard());
  REQUIRE(scene.until([&] { return scene.streams() == 2 && scene.runtime.listeners() == 1; }));
  scene.runtime.tell();
  CHECK(scene.until([&] { return scene.told == 3; }));
  CHECK(scene.events.heard());
}

TEST_CASE("a stream that breaks again and again is tried less and less often") {
  Scene scene;
  scene.runtime.fail("GetContainerEvents", unavailable);
  scene.runtime.start();
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(scene.until([&] { return scene.streams() == 4; }));
  CHECK(std::chrono::steady_clock::now() - begin >= 600ms);  // 100, 200 and 400 ms between them
  CHECK(scene.told == 0);
}

TEST_CASE("after a restart the runtime is listened to at once") {
  Scene scene;
  scene.start();
  scene.runtime.stop();
  REQUIRE(scene.until([&] { return scene.changes == 2; }));
  scene.runtime.start();
  REQUIRE(scene.until([&] { return scene.runtime.listeners() == 1; }));
  const auto before = scene.told;
  scene.runtime.tell();
  CHECK(scene.until([&] { return scene.told > before; }));
}

TEST_CASE("a stream that is not believed any more is opened anew") {
  Scene scene;
  scene.start();
  scene.events.reconnect();  // it has not been believed yet
  CHECK(scene.streams() == 1);
  REQUIRE(scene.until([&] { return scene.events.heard(); }));
  scene.events.reconnect();
  CHECK_FALSE(scene.events.heard());
  CHECK(scene.until([&] { return scene.streams() == 2 && scene.events.heard(); }));
}

TEST_CASE("containerd 1.7, which tells each event once, is left to a kubelet that listens to it") {
  Scene scene{true};
  SUBCASE("containerd 1.7") {
    scene.name = "containerd 1.7.24";
    scene.runtime.start();
    REQUIRE(scene.until([&] { return scene.changes == 1; }));
    const auto later = std::chrono::steady_clock::now() + 300ms;
    static_cast<void>(scene.until([&] { return std::chrono::steady_clock::now() >= later; }));
    CHECK(scene.streams() == 0);
  }
  SUBCASE("containerd 2.1 tells everyone") {
    scene.name = "containerd 2.1.9";
    scene.start();
    CHECK(scene.streams() == 1);
  }
}

}  // namespace evictd::agent::runtime_events_test
