#include <doctest/doctest.h>
#include <evictd.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "callers.hpp"
#include "testbed/agent.hpp"
#include "testbed/fake_hook.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::kill_hooks_test {

// Those that are asked before a kill: who may be, and that they hear of it before it.

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using evictd::v1::PreKillAnswer;
using evictd::v1::PreKillIntent;
using testbed::Agent;
using testbed::FakeHook;
using testbed::Testbed;

namespace {

const auto without_runtime =
    Testbed::Options{.node = {.memory_limit = 1024 * mebi}, .containerd = {}, .start_containerd = false};
constexpr auto thresholds = "evictionHard: {memory.available: 300Mi}";

/// It meets the threshold and stays above the floor, below which nobody is asked, however late it is held.
testbed::PodSpec bloat_spec() { return pod("bloat", QosClass::BestEffort, {"grow", "16Mi", "100Mi/s", "780Mi"}); }

/// Beside the testbed's own sockets.
std::filesystem::path make_hooks_directory(Testbed& testbed) {
  const auto directory = testbed.directory() / "hooks";
  std::filesystem::create_directory(directory);
  return directory;
}

std::string asked_for(const std::string& time, const std::filesystem::path& directory) {
  return fmt::format("hooks: {{time: {}, directory: {}}}", time, directory.native());
}

/// A call of PreKill.
class Asked {
 public:
  Asked(const std::filesystem::path& socket, const std::string& name) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = evictd::v1::EvictionService::NewStub(
        grpc::CreateCustomChannel("unix:" + socket.native(), grpc::InsecureChannelCredentials(), arguments));
    context_.set_deadline(std::chrono::system_clock::now() + testbed::patient(120s));
    stream_ = stub_->PreKill(&context_);
    PreKillAnswer first;
    first.set_name(name);
    stream_->Write(first);
    stream_->WaitForInitialMetadata();
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  ~Asked() {
    if (finished_) return;
    context_.TryCancel();
    static_cast<void>(finish());
  }

  bool hear(PreKillIntent& intent) { return stream_->Read(&intent); }
  void answer(std::uint64_t eviction) {
    PreKillAnswer answer;
    answer.mutable_done()->set_eviction_id(eviction);
    stream_->Write(answer);
  }
  /// Whoever waits in hear() hears nothing more.
  void hang_up() { context_.TryCancel(); }
  grpc::Status finish() {
    for (PreKillIntent rest; stream_->Read(&rest);) {
    }
    finished_ = true;
    return stream_->Finish();
  }

 private:
  std::unique_ptr<evictd::v1::EvictionService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<PreKillAnswer, PreKillIntent>> stream_;
  bool finished_ = false;
};

/// Of a call of Notify.
std::string cgroup_in(const std::string& call) {
  constexpr std::string_view before = R"("cgroup":")";
  const auto begin = call.find(before);
  if (begin == std::string::npos) return {};
  const auto rest = call.substr(begin + before.size());
  return rest.substr(0, rest.find('"'));
}

}  // namespace

TEST_CASE("who is asked before a kill registers by the administrators' socket alone, and that is told") {
  Testbed testbed{without_runtime};
  Agent agent{testbed,
              {.thresholds = thresholds,
               .eviction = asked_for("2s", make_hooks_directory(testbed)),
               .wait_until_ready = false}};
  Asked spy{testbed.directory() / "evictd.sock", "spy"};
  const auto refused = spy.finish();
  CHECK(refused.error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(refused.error_message() == fmt::format("PreKill is for administrators: use admin.sock ({})",
                                               (testbed.directory() / "admin.sock").native()));
  const auto attempt = wait_for_audit(agent, "evictd.sock").audit();
  CHECK(attempt.call() == "PreKill");
  CHECK(attempt.outcome() == "PERMISSION_DENIED: " + refused.error_message());

  const Asked dumper{testbed.directory() / "admin.sock", "dumper"};
  const auto registered = wait_for_audit(agent, "admin.sock").audit();
  CHECK(registered.call() == "PreKill");
  CHECK(registered.outcome() == "done");
  REQUIRE(registered.after_size() == 1);
  CHECK(registered.after(0) == "dumper: asked before kills");
}

TEST_CASE("nobody is asked unless that is configured, and whoever registers is told the key") {
  Testbed testbed{without_runtime};
  Agent agent{testbed, {.thresholds = thresholds, .wait_until_ready = false}};
  Asked dumper{testbed.directory() / "admin.sock", "dumper"};
  const auto refused = dumper.finish();
  CHECK(refused.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(refused.error_message().find("eviction.hooks.time") != std::string::npos);
}

TEST_CASE("a hook of systemd-oomd and an agent hear of a pod before it is killed") {
  Testbed testbed{gibi_node};
  const auto directory = make_hooks_directory(testbed);
  std::atomic<bool> is_alive = false;
  const FakeHook hook{directory / "hook", [&](FakeHook& self, int connection, const std::string& call) {
                        is_alive = !testbed.node().processes(cgroup_in(call)).empty();
                        testbed::hook_does::done(self, connection, call);
                      }};
  Agent agent{testbed, {.thresholds = thresholds, .eviction = asked_for("10s", directory)}};
  Asked dumper{testbed.directory() / "admin.sock", "dumper"};
  PreKillIntent intent;
  bool heard = false;
  std::jthread listener{[&] {
    heard = dumper.hear(intent);
    if (heard) dumper.answer(intent.eviction_id());
  }};
  const auto bloat = testbed.cri().run_pod(bloat_spec());
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/bloat", 60s);
  static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, "default/bloat", 60s));
  dumper.hang_up();
  listener.join();

  REQUIRE(hook.calls().size() == 1);
  CHECK(cgroup_in(hook.calls().front()) == bloat.cgroup);
  CHECK(is_alive);
  REQUIRE(heard);
  CHECK(intent.eviction_id() == intended.sequence());
  CHECK(testbed::key(intent.pod()) == "default/bloat");
  CHECK(intent.cgroup() == bloat.cgroup);
  CHECK_FALSE(intent.message().empty());
  CHECK(nothing_left(testbed, bloat));
}

// The same.
TEST_CASE("hooks that hang and an agent that says nothing do not save a pod") {
  Testbed testbed{gibi_node};
  const auto directory = make_hooks_directory(testbed);
  const FakeHook hook{directory / "hook", testbed::hook_does::hang};
  Agent agent{testbed, {.thresholds = thresholds, .eviction = asked_for("1s", directory)}};
  const Asked silent{testbed.directory() / "admin.sock", "silent"};
  const auto bloat = testbed.cri().run_pod(bloat_spec());
  static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, "default/bloat", 60s));
  CHECK(hook.calls().size() == 1);
  CHECK(nothing_left(testbed, bloat));
}

}  // namespace integration::kill_hooks_test
