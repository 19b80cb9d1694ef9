#include "evict/pre_stop.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "fixture/result.hpp"
#include "kube/api_server.hpp"
#include "os/now.hpp"

namespace evictd::evict::pre_stop_test {
namespace {

using namespace std::chrono_literals;
using fixture::error_of;
using test::ApiServer;

struct Fixture {
  test::FakeRuntime runtime;
  boost::asio::io_context reactor{1};
  cri::Client client{reactor.get_executor(), runtime.endpoint(), test::patience};

  Fixture() {
    runtime.start();
    runtime::v1::PodSandbox sandbox;
    sandbox.set_id("s1");
    runtime.put(sandbox, "{}");
    runtime::v1::Container container;
    container.set_id("c1");
    container.set_pod_sandbox_id("s1");
    runtime.put(container, "{}");
  }
  Result<void> run(core::PreStop hook, bool host_network = false, core::Duration time = test::patience) {
    const HookPlace place{.container_id = "c1", .sandbox_id = "s1", .host_network = host_network};
    return test::run(reactor, run_pre_stop(reactor.get_executor(), client, std::move(hook), place, os::now() + time));
  }
};

}  // namespace

TEST_CASE("a command runs in the container, and its exit code says whether it failed") {
  Fixture f;
  CHECK(f.run(core::ExecHook{{"/bin/bye", "now"}}));
  CHECK(f.runtime.commands() == std::vector<std::string>{"c1 /bin/bye now"});
  f.runtime.exit_with(3);
  CHECK(error_of(f.run(core::ExecHook{{"/bin/bye"}})) == "its command ended with code 3");
  f.runtime.exit_with(0);
  f.runtime.write_bytes(1'000'000);
  CHECK_FALSE(f.run(core::ExecHook{{"/bin/bye"}}));
  CHECK(f.runtime.commands().size() == 3);  // it has run, and runs no other time
  f.runtime.fail("ExecSync", 13);
  CHECK(error_of(f.run(core::ExecHook{{"/bin/bye"}})).find("ordered by the test") != std::string::npos);
}

TEST_CASE("a GET goes to the pod's address as the runtime tells it, or to the host that the hook names") {
  Fixture f;
  ApiServer server;
  server.otherwise(test::answers(200, "bye"));
  const auto port = std::to_string(server.port());
  CHECK(error_of(f.run(core::HttpGetHook{.port = port})) == "the runtime knows no address of the pod");
  f.runtime.set_address("s1", "127.0.0.1");
  CHECK(f.run(core::HttpGetHook{.port = port, .path = "/pod"}));
  f.runtime.set_address("s1", "192.0.2.1");  // nobody's
  CHECK(f.run(core::HttpGetHook{.host = "127.0.0.1", .port = port, .path = "/host"}));
  CHECK(f.run(core::HttpGetHook{.port = port, .path = "/node"}, true));
  CHECK(server.lines() == std::vector<std::string>{"GET /pod", "GET /host", "GET /node"});
  CHECK(error_of(f.run(core::HttpGetHook{.host = "127.0.0.1", .port = "web"})) == "its port \"web\" is none");
  CHECK_FALSE(f.run(core::HttpGetHook{.host = "127.0.0.1", .port = port, .path = "/\r\nX: 1"}));
}

TEST_CASE("a sleep takes its time, or what the pod has of it") {
  Fixture f;
  const auto begin = os::now();
  CHECK(f.run(core::SleepHook{1s}));
  CHECK(os::now() - begin >= 1s);
  CHECK(f.run(core::SleepHook{1'000'000'000s}, false, 1s));
}

}  // namespace evictd::evict::pre_stop_test
