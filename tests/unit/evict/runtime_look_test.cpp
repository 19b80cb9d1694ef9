#include "evict/runtime_look.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "async/spawn.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::evict::runtime_look_test {
namespace {

namespace v1 = ::runtime::v1;

core::Instant now() { return std::chrono::steady_clock::now(); }

v1::PodSandbox sandbox(const std::string& id, v1::PodSandboxState state = v1::SANDBOX_READY) {
  v1::PodSandbox result;
  result.set_id(id);
  result.set_state(state);
  result.mutable_metadata()->set_uid("uid-" + id);
  return result;
}

struct Looking {
  Looking() { runtime.start(); }

  /// Asks as many at once, and returns when all have their answer.
  void ask(int count, core::Instant since = now()) {
    int answered = 0;
    const auto one = [&]() -> asio::awaitable<void> {
      answer = co_await look.since(since);
      ++answered;
    };
    for (int i = 0; i < count; ++i) async::spawn(reactor.get_executor(), one(), "asking");
    REQUIRE(test::run_until(reactor, [&] { return answered == count; }));
  }
  [[nodiscard]] int calls() const {
    CHECK(runtime.calls("ListContainers") == runtime.calls("ListPodSandbox"));
    return runtime.calls("ListPodSandbox");
  }

  test::FakeRuntime runtime;
  asio::io_context reactor{1};
  cri::Client client{reactor.get_executor(), runtime.endpoint(), test::patience};
  RuntimeLook look{reactor.get_executor(), client};
  RuntimeLook::Answer answer = fail("none");
};

}  // namespace

TEST_CASE("however many ask at once, the runtime is asked once") {
  Looking looking;
  looking.ask(100);
  CHECK(looking.answer);
  CHECK(looking.calls() == 1);
}

TEST_CASE("a look that began before the question does not answer it") {
  Looking looking;
  looking.ask(1);
  const auto earlier = now();
  looking.ask(1, now());
  CHECK(looking.calls() == 2);
  looking.ask(50, earlier);  // what is known already answers these
  CHECK(looking.calls() == 2);
}

TEST_CASE("those who ask while a look is under way share the next one") {
  Looking looking;
  int asked_meanwhile = 0;
  int answered = 0;
  const auto one = [&]() -> asio::awaitable<void> {
    static_cast<void>(co_await looking.look.since(now()));
    ++answered;
  };
  looking.runtime.meanwhile("ListPodSandbox", [&] {
    if (asked_meanwhile++ > 0) return;
    asio::post(looking.reactor, [&] {
      for (int i = 0; i < 20; ++i) async::spawn(looking.reactor.get_executor(), one(), "asking");
    });
  });
  looking.ask(1);
  REQUIRE(test::run_until(looking.reactor, [&] { return answered == 20; }));
  CHECK(looking.calls() == 2);
}

TEST_CASE("the view tells running containers, sandboxes and which of them are ready") {
  Looking looking;
  looking.runtime.put(sandbox("a"), "");
  looking.runtime.put(sandbox("b", v1::SANDBOX_NOTREADY), "");
  v1::Container container;
  container.set_id("c");
  container.set_pod_sandbox_id("a");
  container.mutable_metadata()->set_name("main");
  container.set_state(v1::CONTAINER_RUNNING);
  looking.runtime.put(container, "");
  container.set_id("d");
  container.set_pod_sandbox_id("b");
  container.set_state(v1::CONTAINER_EXITED);
  looking.runtime.put(container, "");
  looking.ask(1);
  REQUIRE(looking.answer);
  const auto& view = **looking.answer;
  CHECK(view.running == std::unordered_map<std::string, std::string>{{"a", "main"}});
  CHECK(view.sandboxes == std::unordered_set<std::string>{"a", "b"});
  CHECK(view.ready == std::unordered_set<std::string>{"a"});
  CHECK(view.by_pod_uid.at("uid-b") == std::vector<std::string>{"b"});
}

TEST_CASE("a look that fails tells everybody why, and the next one is made anew") {
  Looking looking;
  looking.runtime.fail("ListContainers", 13);
  looking.ask(3);
  REQUIRE_FALSE(looking.answer);
  CHECK(looking.answer.error().message.find("ListContainers") != std::string::npos);
  looking.runtime.recover("ListContainers");
  looking.ask(1);
  CHECK(looking.answer);
}

// The connection is refused within the call.
TEST_CASE("while no runtime is there, a look says so, and the next one finds the runtime") {
  Looking looking;
  looking.runtime.stop();
  looking.ask(3);
  REQUIRE_FALSE(looking.answer);
  CHECK(looking.answer.error().message.find("no container runtime answers") != std::string::npos);
  looking.runtime.start();
  looking.ask(1);
  CHECK(looking.answer);
}

}  // namespace evictd::evict::runtime_look_test
