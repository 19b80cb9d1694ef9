#include "proxy/gate.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "api/temporary_directory.hpp"
#include "proxy/proxied.hpp"

// The agent is a stand-in here: what is tested is what the proxy makes of its word, and of its silence.

namespace evictd::proxy::gate_test {
namespace {

using namespace std::chrono_literals;
namespace cri_v1 = ::runtime::v1;
using test::Exchanged;
using test::Proxied;
using test::RawClientCall;
using test::RawServerCall;

const std::string run_sandbox = "/runtime.v1.RuntimeService/RunPodSandbox";
const std::string create_container = "/runtime.v1.RuntimeService/CreateContainer";
const std::string update_resources = "/runtime.v1.RuntimeService/UpdateContainerResources";

/// A field that the CRI of this build does not know: number 9000, a string.
const std::string unknown_field{"\xc2\xb2\x04\x03new", 7};

cri_v1::PodSandboxConfig sandbox_config() {
  cri_v1::PodSandboxConfig config;
  config.mutable_metadata()->set_name("web");
  config.mutable_metadata()->set_namespace_("default");
  config.mutable_metadata()->set_uid("0123");
  (*config.mutable_annotations())["a"] = "b";
  config.MergeFromString(unknown_field);
  return config;
}

std::string sandbox_request() {
  cri_v1::RunPodSandboxRequest request;
  *request.mutable_config() = sandbox_config();
  return request.SerializeAsString() + unknown_field;
}

std::string container_request() {
  cri_v1::CreateContainerRequest request;
  request.set_pod_sandbox_id("s1");
  *request.mutable_sandbox_config() = sandbox_config();
  request.mutable_config()->mutable_metadata()->set_name("main");
  return request.SerializeAsString();
}

std::string update_request(void (*give)(cri_v1::LinuxContainerResources&)) {
  cri_v1::UpdateContainerResourcesRequest request;
  request.set_container_id("c1");
  give(*request.mutable_linux());
  return request.SerializeAsString() + unknown_field;
}

/// The runtime tells what it got.
grpc::Status tell(RawServerCall& call) {
  const auto request = call.read();
  call.write(call.method() + " " + request.value_or("nothing"));
  return grpc::Status::OK;
}

/// The call went through, and the runtime got the very bytes.
constexpr auto pressure_socket = "/run/evictd/pressure/pressure.sock";

/// A container of a pod that asks for the memory pressure socket.
std::string pressed_request() {
  cri_v1::CreateContainerRequest request;
  REQUIRE(request.ParseFromString(container_request()));
  (*request.mutable_sandbox_config()->mutable_annotations())["evictd.io/memory-pressure"] = "true";
  return request.SerializeAsString();
}

/// What the runtime was asked.
cri_v1::CreateContainerRequest created(const Exchanged& answer) {
  REQUIRE(answer.messages.size() == 1);
  cri_v1::CreateContainerRequest request;
  REQUIRE(request.ParseFromString(answer.messages[0].substr(create_container.size() + 1)));
  return request;
}

void check_passed(const Exchanged& answer, const std::string& method, const std::string& request) {
  CHECK(answer.status.error_message() == "");
  CHECK(answer.messages == std::vector<std::string>{method + " " + request});
}

TEST_CASE("a sandbox that the agent admits is run, and the agent was told all of its configuration") {
  Proxied proxied{tell, {.agent = test::admit}};
  for (const std::string& method : {run_sandbox, std::string("/runtime.v1alpha2.RuntimeService/RunPodSandbox")})
    check_passed(proxied.exchange(method, sandbox_request()), method, sandbox_request());
  const auto asked = proxied.agent().asked();
  REQUIRE(asked.size() == 2);
  for (const auto& request : asked) {
    CHECK(request.reserve());
    CHECK(request.runtime().sandbox_config() == sandbox_config().SerializeAsString());
    CHECK(request.runtime().container_config().empty());
  }
  CHECK(proxied.warnings().empty());
}

TEST_CASE("of a container the agent is told its own configuration and its sandbox's") {
  Proxied proxied{tell, {.agent = test::admit}};
  check_passed(proxied.exchange(create_container, container_request()), create_container, container_request());
  const auto asked = proxied.agent().asked();
  REQUIRE(asked.size() == 1);
  const auto& subject = asked[0].runtime();
  CHECK(subject.sandbox_config() == sandbox_config().SerializeAsString());
  cri_v1::ContainerConfig config;
  REQUIRE(config.ParseFromString(subject.container_config()));
  CHECK(config.metadata().name() == "main");
}

TEST_CASE("a container is given what the agent says of its devices, before what the client asks for") {
  const auto with_devices = [](const v1::AdmitRequest&, v1::AdmitResponse& response) {
    response.set_admitted(true);
    auto& given = *response.add_allocations();
    given.set_container("main");
    given.mutable_edits()->add_cdi_devices("v/c=0");
    response.add_allocations()->mutable_edits()->add_cdi_devices("v/c=1");  // of a container without a name
    return grpc::Status::OK;
  };
  Proxied proxied{tell, {.agent = with_devices}};
  const auto answer = proxied.exchange(create_container, container_request());
  CHECK(answer.status.error_message() == "");
  const auto request = created(answer);
  CHECK(answer.messages[0].ends_with(container_request()));
  REQUIRE(request.config().cdi_devices_size() == 1);
  CHECK(request.config().cdi_devices(0).name() == "v/c=0");
  CHECK(request.config().metadata().name() == "main");
  // A sandbox has no devices, and a container that is there has its own.
  check_passed(proxied.exchange(run_sandbox, sandbox_request()), run_sandbox, sandbox_request());
  const auto update = update_request([](auto& linux) { linux.set_cpu_shares(512); });
  check_passed(proxied.exchange(update_resources, update), update_resources, update);
}

TEST_CASE("a container of a pod that asks for it is given the memory pressure socket, beside its devices") {
  const auto with_devices = [](const v1::AdmitRequest&, v1::AdmitResponse& response) {
    response.set_admitted(true);
    auto& given = *response.add_allocations();
    given.set_container("main");
    (*given.mutable_edits()->mutable_environment())["GPU"] = "0";
    return grpc::Status::OK;
  };
  Proxied proxied{tell, {.agent = with_devices, .pressure_socket = pressure_socket}};
  const auto asks = pressed_request();
  const auto request = created(proxied.exchange(create_container, asks));
  REQUIRE(request.config().envs_size() == 2);
  CHECK(request.config().envs(0).key() == "GPU");
  CHECK(request.config().envs(1).key() == "MEMORY_PRESSURE_WATCH");
  REQUIRE(request.config().mounts_size() == 1);
  CHECK(request.config().mounts(0).host_path() == "/run/evictd/pressure");
  // The config that the agent is told is the client's own.
  cri_v1::CreateContainerRequest given;
  REQUIRE(given.ParseFromString(asks));
  CHECK(proxied.agent().asked()[0].runtime().container_config() == given.config().SerializeAsString());

  CHECK(created(proxied.exchange(create_container, container_request())).config().mounts_size() == 0);
}

TEST_CASE(
    "what the agent rejects gets FAILED_PRECONDITION with reason and message, and the runtime never hears of it") {
  Proxied proxied{tell, {.agent = test::reject("NodeShutdown", "Pod was rejected as the node is shutting down.")}};
  for (const auto& [method, request] :
       {std::pair(run_sandbox, sandbox_request()), {create_container, container_request()}}) {
    const auto answer = proxied.exchange(method, request);
    CHECK(answer.status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
    CHECK(answer.status.error_message() == "NodeShutdown: Pod was rejected as the node is shutting down.");
    CHECK(answer.messages.empty());
  }
  CHECK(proxied.agent().asked().size() == 2);
  CHECK(proxied.runtime().calls() == 0);
}

TEST_CASE("before a container is given more the agent is asked, and told which container and all that it is given") {
  const auto updates = {update_request([](auto& linux) { linux.set_cpu_shares(512); }),
                        update_request([](auto& linux) { linux.set_cpu_quota(100'000); }),
                        update_request([](auto& linux) {
                          linux.set_memory_limit_in_bytes(1 << 30);
                          linux.set_cpuset_cpus("0-1");
                        })};
  {
    Proxied proxied{tell, {.agent = test::admit}};
    for (const auto& update : updates)
      check_passed(proxied.exchange(update_resources, update), update_resources, update);
    const auto asked = proxied.agent().asked();
    REQUIRE(asked.size() == 3);
    for (const auto& request : asked) {
      CHECK(request.operation() == v1::AdmitRequest::RESIZE);
      CHECK(request.reserve());
      CHECK(request.runtime().container_id() == "c1");
      CHECK(request.runtime().sandbox_config().empty());
    }
    cri_v1::LinuxContainerResources given;
    REQUIRE(given.ParseFromString(asked[2].runtime().linux_resources()));
    CHECK(given.memory_limit_in_bytes() == 1 << 30);
    CHECK(given.cpuset_cpus() == "0-1");
  }
  Proxied proxied{tell, {.agent = test::reject("Deferred", "Node didn't have enough resource: cpu")}};
  for (const auto& update : updates) {
    const auto refused = proxied.exchange(update_resources, update);
    CHECK(refused.status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
    CHECK(refused.status.error_message() == "Deferred: Node didn't have enough resource: cpu");
  }
  CHECK(proxied.runtime().calls() == 0);
}

TEST_CASE("what the runtime refuses of an admitted update the agent hears of before the client") {
  const auto update = update_request([](auto& linux) { linux.set_cpu_shares(512); });
  const auto operations_after = [&](grpc::StatusCode code, const std::string& method, const std::string& request) {
    const auto answer = [code](RawServerCall& call) {
      call.read();
      return grpc::Status(code, "so it is");
    };
    Proxied proxied{answer, {.agent = test::admit}};
    const auto ended = proxied.exchange(method, request);
    CHECK(ended.status.error_code() == code);
    CHECK(ended.status.error_message() == "so it is");
    std::vector<v1::AdmitRequest::Operation> operations;
    for (const auto& asked : proxied.agent().asked()) {
      operations.push_back(asked.operation());
      CHECK(asked.reserve());
      CHECK(asked.runtime().SerializeAsString() == proxied.agent().asked().front().runtime().SerializeAsString());
    }
    return operations;
  };
  using Operations = std::vector<v1::AdmitRequest::Operation>;
  CHECK(operations_after(grpc::StatusCode::UNKNOWN, update_resources, update) ==
        Operations{v1::AdmitRequest::RESIZE, v1::AdmitRequest::RESIZE_REFUSED});
  // It may still be carried out.
  CHECK(operations_after(grpc::StatusCode::UNAVAILABLE, update_resources, update) ==
        Operations{v1::AdmitRequest::RESIZE});
  CHECK(operations_after(grpc::StatusCode::UNKNOWN, run_sandbox, sandbox_request()) ==
        Operations{v1::AdmitRequest::ADD});
}

TEST_CASE("an agent that cannot be told of a refusal keeps the client from it no longer than criProxy.timeout") {
  std::promise<void> go_on;
  auto held = go_on.get_future().share();
  const auto agent = [held](const v1::AdmitRequest& request, v1::AdmitResponse& response) {
    if (request.operation() == v1::AdmitRequest::RESIZE_REFUSED) held.wait();
    return test::admit(request, response);
  };
  const auto refuse = [](RawServerCall& call) {
    call.read();
    return grpc::Status(grpc::StatusCode::UNKNOWN, "no");
  };
  Proxied proxied{refuse, {.agent = agent, .timeout = 500ms}};
  const auto update = update_request([](auto& linux) { linux.set_cpu_shares(512); });
  CHECK(proxied.exchange(update_resources, update).status.error_message() == "no");
  go_on.set_value();
}

// Whoever lets go of the last connection ends gRPC's threads and awaits them. Where that is one of them, gRPC 1.51
// frees what it still runs on.
TEST_CASE("a gate that goes awaits whom it tells of a refusal, and leaves nothing to be freed there") {
  const test::TemporaryDirectory directory;
  auto gate = std::make_unique<Gate>(GateOptions{.agent_socket = directory / "nobody.sock"});
  const auto told = std::make_shared<std::promise<void>>();
  const auto returns = std::make_shared<std::atomic<bool>>(false);
  gate->refused({}, [told, returns] {
    told->set_value();
    std::this_thread::sleep_for(300ms);
    *returns = true;
  });
  told->get_future().wait();
  gate.reset();
  CHECK(*returns);
}

TEST_CASE("a container's cpuset, and whatever else cannot make it grow, is changed without a question") {
  Proxied proxied{tell, {.agent = test::reject("No", "never"), .undecided = Undecided::Reject}};
  for (const auto& update :
       {update_request([](auto& linux) { linux.set_cpuset_cpus("2-3"); }),
        update_request([](auto& linux) { linux.set_cpuset_mems("0"); }),
        update_request([](auto& linux) { linux.set_cpu_quota(-1); }), update_request([](auto&) {})})
    check_passed(proxied.exchange(update_resources, update), update_resources, update);
  CHECK(proxied.agent().asked().empty());
  CHECK(proxied.exchange(update_resources, "\xff\xff\xff").status.error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("the agent is asked about nothing else") {
  Proxied proxied{tell, {.agent = test::reject("No", "never")}};
  for (const std::string method :
       {"/runtime.v1.RuntimeService/StartContainer", "/runtime.v1.RuntimeService/StopPodSandbox",
        "/runtime.v1.RuntimeService/ListPodSandbox", "/runtime.v1.ImageService/PullImage",
        "/other.v1.RuntimeService/RunPodSandbox"})
    check_passed(proxied.exchange(method, sandbox_request()), method, sandbox_request());
  CHECK(proxied.agent().asked().empty());
}

TEST_CASE("without an agent pods start, or do not, as configured; that is said once") {
  for (const auto undecided : {Undecided::Admit, Undecided::Reject}) {
    Proxied proxied{tell, {.undecided = undecided}};
    for (int i = 0; i < 3; ++i) {
      const auto answer = proxied.exchange(run_sandbox, sandbox_request());
      if (undecided == Undecided::Admit) {
        check_passed(answer, run_sandbox, sandbox_request());
      } else {
        CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
        CHECK(answer.status.error_message().starts_with(
            "the evictd agent does not decide on this, and criProxy.undecided is reject ("));
        CHECK(answer.status.error_message().find(proxied.agent_socket) != std::string::npos);
      }
    }
    CHECK(proxied.runtime().calls() == (undecided == Undecided::Admit ? 3 : 0));
    REQUIRE(proxied.warnings().size() == 1);
    CHECK(proxied.warnings()[0].starts_with("the agent does not decide on pods (" + proxied.agent_socket));
    CHECK(proxied.warnings()[0].ends_with(undecided == Undecided::Admit ? "pods start without its leave until it does"
                                                                        : "no pod starts until it does"));

    // It is found again once it is there.
    proxied.start_agent(test::reject("No", "never"));
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (proxied.agent().asked().empty() && std::chrono::steady_clock::now() < end) {
      proxied.exchange(run_sandbox, sandbox_request());
      std::this_thread::sleep_for(5ms);
    }
    CHECK(proxied.exchange(run_sandbox, sandbox_request()).status.error_message() == "No: never");
    REQUIRE(proxied.warnings().size() == 2);
    CHECK(proxied.warnings()[1].starts_with("the agent decides on pods again; it did not on "));
  }
}

TEST_CASE("an agent that does not know the question, or fails, has not decided") {
  for (const auto code :
       {grpc::StatusCode::UNIMPLEMENTED, grpc::StatusCode::INTERNAL, grpc::StatusCode::INVALID_ARGUMENT}) {
    const auto answer = [code](const auto&, auto&) { return grpc::Status(code, "by order of the test"); };
    {
      Proxied proxied{tell, {.agent = answer}};
      check_passed(proxied.exchange(run_sandbox, sandbox_request()), run_sandbox, sandbox_request());
      CHECK(proxied.agent().asked().size() == 1);
    }
    Proxied proxied{tell, {.agent = answer, .undecided = Undecided::Reject}};
    const auto refused = proxied.exchange(run_sandbox, sandbox_request());
    CHECK(refused.status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK(refused.status.error_message().find("by order of the test") != std::string::npos);
  }
}

TEST_CASE("an agent that is silent for longer than criProxy.timeout has not decided") {
  for (const auto undecided : {Undecided::Admit, Undecided::Reject}) {
    std::promise<void> end;
    const auto ended = end.get_future().share();
    const auto silence = [&](const auto&, auto&) {
      ended.wait();
      return grpc::Status::OK;
    };
    Proxied proxied{tell, {.agent = silence, .undecided = undecided, .timeout = 50ms}};
    const auto answer = proxied.exchange(run_sandbox, sandbox_request());
    if (undecided == Undecided::Admit)
      check_passed(answer, run_sandbox, sandbox_request());
    else
      CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
    end.set_value();
  }
}

/// Says at once that room has to be made for the pod, and answers once that is so, or the question is withdrawn.
struct SlowAgent {
  test::RawServer::Handler handler() {
    return [this](RawServerCall& call) {
      static_cast<void>(call.read());
      call.send_initial_metadata();
      waits.set_value();
      made.get_future().wait();
      v1::AdmitResponse response;
      response.set_admitted(true);
      call.write(response.SerializeAsString());
      return grpc::Status::OK;
    };
  }

  std::promise<void> waits;
  std::promise<void> made;
};

TEST_CASE("an agent that makes room is waited for beyond criProxy.timeout, and other calls pass meanwhile") {
  SlowAgent agent;
  Proxied proxied{tell, {.raw_agent = agent.handler(), .undecided = Undecided::Reject, .timeout = 4s}};
  auto answer = std::async(std::launch::async, [&] { return proxied.exchange(run_sandbox, sandbox_request()); });
  agent.waits.get_future().wait();
  const std::string list = "/runtime.v1.RuntimeService/ListPodSandbox";
  check_passed(proxied.exchange(list, "x"), list, "x");
  CHECK(answer.wait_for(4500ms) == std::future_status::timeout);
  agent.made.set_value();
  check_passed(answer.get(), run_sandbox, sandbox_request());
  CHECK(proxied.warnings().empty());
}

TEST_CASE("a client that does not wait until room is made takes its question back, and the runtime never hears of it") {
  std::promise<void> waits;
  std::promise<bool> withdrawn;
  const auto agent = [&](RawServerCall& call) {
    static_cast<void>(call.read());
    call.send_initial_metadata();
    waits.set_value();
    withdrawn.set_value(call.wait_until_cancelled());
    return grpc::Status::CANCELLED;
  };
  Proxied proxied{tell, {.raw_agent = agent}};
  RawClientCall call{proxied.channel, run_sandbox};
  call.write(sandbox_request());
  waits.get_future().wait();
  call.cancel();
  CHECK(call.finish().error_code() == grpc::StatusCode::CANCELLED);
  CHECK(withdrawn.get_future().get());
  CHECK(proxied.runtime().calls() == 0);
  CHECK(proxied.warnings().empty());
}

TEST_CASE("an agent that ends while it makes room has not decided") {
  const auto agent = [](RawServerCall& call) {
    static_cast<void>(call.read());
    call.send_initial_metadata();
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "evictd shuts down");
  };
  Proxied proxied{tell, {.raw_agent = agent, .undecided = Undecided::Reject}};
  const auto refused = proxied.exchange(run_sandbox, sandbox_request());
  CHECK(refused.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(refused.status.error_message().find("evictd shuts down") != std::string::npos);
}

TEST_CASE("a container that passes undecided has the memory pressure socket all the same") {
  Proxied proxied{tell, {.pressure_socket = pressure_socket}};  // and no agent
  const auto request = created(proxied.exchange(create_container, pressed_request()));
  REQUIRE(request.config().mounts_size() == 1);
  CHECK(request.config().mounts(0).host_path() == "/run/evictd/pressure");
}

TEST_CASE("a request that cannot be read is undecided: failing closed has no way around it") {
  const std::string unreadable = "\xff\xff\xff";
  {
    Proxied proxied{tell, {.agent = test::admit}};
    check_passed(proxied.exchange(run_sandbox, unreadable), run_sandbox, unreadable);
    CHECK(proxied.agent().asked().empty());
  }
  Proxied proxied{tell, {.agent = test::admit, .undecided = Undecided::Reject}};
  CHECK(proxied.exchange(run_sandbox, unreadable).status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(proxied.runtime().calls() == 0);
}

TEST_CASE("a client that gives up while the agent thinks ends the question; the runtime never hears of it") {
  std::promise<void> asked;
  std::promise<void> end;
  Proxied proxied{tell, {.agent = [&](const auto&, v1::AdmitResponse& response) {
                    asked.set_value();
                    end.get_future().wait();
                    response.set_admitted(true);
                    return grpc::Status::OK;
                  }}};
  {
    RawClientCall call{proxied.channel, run_sandbox};
    call.write(sandbox_request());
    asked.get_future().wait();
    call.cancel();
    CHECK(call.finish().error_code() == grpc::StatusCode::CANCELLED);
  }
  proxied.server().shutdown(60s);  // returns once the call has ended here as well
  end.set_value();
  CHECK(proxied.runtime().calls() == 0);
  CHECK(proxied.warnings().empty());  // that was no fault of the agent
}

TEST_CASE("a gated call without a message is the runtime's to judge") {
  Proxied proxied{tell, {.undecided = Undecided::Reject}};
  RawClientCall call{proxied.channel, run_sandbox};
  call.writes_done();
  CHECK(call.read() == run_sandbox + " nothing");
  CHECK(call.finish().ok());
}

TEST_CASE("a hundred pods at once are each decided for themselves") {
  const auto even_ones = [](const v1::AdmitRequest& request, v1::AdmitResponse& response) {
    cri_v1::PodSandboxConfig config;
    if (!config.ParseFromString(request.runtime().sandbox_config())) return grpc::Status::CANCELLED;
    response.set_admitted(config.metadata().attempt() % 2 == 0);
    response.set_reason("Odd");
    response.set_message(std::to_string(config.metadata().attempt()));
    return grpc::Status::OK;
  };
  Proxied proxied{tell, {.agent = even_ones}};
  std::vector<std::future<Exchanged>> answers;
  for (std::uint32_t i = 0; i < 100; ++i)
    answers.push_back(std::async(std::launch::async, [&, i] {
      cri_v1::RunPodSandboxRequest request;
      *request.mutable_config() = sandbox_config();
      request.mutable_config()->mutable_metadata()->set_attempt(i);
      return proxied.exchange(run_sandbox, request.SerializeAsString());
    }));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto answer = answers[i].get();
    CHECK(answer.status.error_message() == (i % 2 == 0 ? "" : "Odd: " + std::to_string(i)));
  }
  CHECK(proxied.runtime().calls() == 50);
}

}  // namespace
}  // namespace evictd::proxy::gate_test
