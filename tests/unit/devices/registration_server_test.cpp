#include "devices/registration_server.hpp"

#include <doctest/doctest.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <future>
#include <optional>

#include "api/temporary_directory.hpp"
#include "cri/run.hpp"
#include "devices/fake_plugin.hpp"
#include "devices/plugin_directory.hpp"
#include "fixture/result.hpp"

namespace evictd::devices::registration_server_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct Scene {
  explicit Scene(std::chrono::milliseconds longest_idle = 10min) {
    auto handle = [this](Registration registration) { return take(std::move(registration)); };
    server.emplace(reactor.get_executor(), fixture::value_of(open_registration_socket(directory.path().native())),
                   handle, longest_idle);
  }

  asio::awaitable<Result<void>> take(Registration registration) {
    taken.push_back(registration);
    if (registration.endpoint == "bad.sock") co_return fail("it is bad");
    asio::steady_timer forever{reactor, 24h};
    if (registration.endpoint == "slow.sock") co_await forever.async_wait(asio::use_awaitable);
    co_return Result<void>{};
  }

  /// Registers from another thread, while the reactor runs.
  std::future<grpc::Status> begin(const std::string& resource, const std::string& endpoint,
                                  const std::string& version = "v1beta1") {
    return std::async(std::launch::async, [socket = directory / "kubelet.sock", resource, endpoint, version] {
      return test::register_plugin(socket, resource, endpoint, version);
    });
  }
  grpc::Status answer(std::future<grpc::Status> status) {
    REQUIRE(test::run_until(reactor, [&] { return status.wait_for(0s) == std::future_status::ready; }));
    return status.get();
  }

  test::TemporaryDirectory directory;
  asio::io_context reactor;
  std::vector<Registration> taken;
  std::optional<RegistrationServer> server;
};

}  // namespace

TEST_CASE("a plugin is answered once it was taken up, or why it was not") {
  Scene scene;
  CHECK(scene.answer(scene.begin("example.com/gpu", "gpu.sock")).ok());
  const auto bad = scene.answer(scene.begin("example.com/gpu", "bad.sock"));
  CHECK(bad.error_code() == grpc::StatusCode::UNKNOWN);
  CHECK(bad.error_message() == "it is bad");
  CHECK(scene.taken == std::vector<Registration>{{.resource = "example.com/gpu", .endpoint = "gpu.sock"},
                                                 {.resource = "example.com/gpu", .endpoint = "bad.sock"}});
}

TEST_CASE("what is wrong in itself never comes to the reactor") {
  Scene scene;
  CHECK(scene.answer(scene.begin("cpu", "gpu.sock")).error_message() == "the ResourceName \"cpu\" is invalid");
  CHECK(scene.answer(scene.begin("example.com/gpu", "../gpu.sock")).error_code() == grpc::StatusCode::UNKNOWN);
  CHECK(scene.answer(scene.begin("example.com/gpu", "gpu.sock", "v1")).error_code() == grpc::StatusCode::UNKNOWN);
  CHECK(scene.taken.empty());
}

TEST_CASE("registrations beyond a limit are refused while others wait, and it ends with some under way") {
  Scene scene;
  std::vector<std::future<grpc::Status>> waiting;
  for (int i = 0; i < 64; ++i) waiting.push_back(scene.begin("example.com/gpu", "slow.sock"));
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.taken.size() == 64; }));
  CHECK(scene.answer(scene.begin("example.com/gpu", "gpu.sock")).error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  scene.server.reset();
  for (auto& status : waiting) CHECK(scene.answer(std::move(status)).error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("a socket that takes the place of its own while it ends is not removed, though it may have the same inode") {
  Scene scene;
  auto waiting = scene.begin("example.com/gpu", "slow.sock");
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.taken.size() == 1; }));
  const auto path = scene.directory / "kubelet.sock";
  std::filesystem::remove(path);
  auto others = std::async(std::launch::async, [&] {
    waiting.wait();  // until the server ends what is under way: it listens no more
    return os::ListeningSocket::open(path);
  });
  scene.server.reset();
  const auto other = fixture::value_of(others.get());
  CHECK(std::filesystem::is_socket(path));
}

TEST_CASE("who connects and registers nothing is not kept for ever") {
  const Scene scene{1s};
  const auto channel =
      grpc::CreateChannel("unix:" + (scene.directory / "kubelet.sock"), grpc::InsecureChannelCredentials());
  REQUIRE(channel->WaitForConnected(std::chrono::system_clock::now() + test::patience));
  CHECK(channel->WaitForStateChange(GRPC_CHANNEL_READY, std::chrono::system_clock::now() + test::patience));
}

}  // namespace evictd::devices::registration_server_test
