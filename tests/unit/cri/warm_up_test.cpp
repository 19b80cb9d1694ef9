#include "cri/warm_up.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>

#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"

namespace evictd::cri::warm_up_test {

namespace asio = boost::asio;
namespace cri = evictd::cri;

namespace {

struct Fixture {
  evictd::test::FakeRuntime runtime;
  asio::io_context reactor{1};
  cri::Client client{reactor.get_executor(), runtime.endpoint(), test::patience};

  bool warm_up() {
    bool ended = false;
    asio::co_spawn(reactor, cri::warm_up(client), [&](const std::exception_ptr& exception) { ended = !exception; });
    return evictd::test::run_until(reactor, [&] { return ended; });
  }
};

}  // namespace

TEST_CASE("warming up takes the way of a stop, and stops nobody") {
  Fixture f;
  f.runtime.start();
  runtime::v1::Container container;
  container.set_id("c1");
  container.set_state(runtime::v1::CONTAINER_RUNNING);
  f.runtime.put(container, "");
  CHECK(f.warm_up());
  CHECK(f.runtime.calls("StopContainer") == 1);
  CHECK(f.runtime.container_state("c1") == runtime::v1::CONTAINER_RUNNING);
}

TEST_CASE("a runtime that is gone again costs nothing but the attempt") {
  Fixture f;
  CHECK(f.warm_up());
}

}  // namespace evictd::cri::warm_up_test
