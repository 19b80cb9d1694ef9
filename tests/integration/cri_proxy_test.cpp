#include <doctest/doctest.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <set>
#include <thread>
#include <type_traits>

#include "fixture/deaf_client.hpp"
#include "notify_socket.hpp"
#include "proxy/raw_client.hpp"
#include "testbed/agent.hpp"
#include "testbed/containerd_config.hpp"
#include "testbed/cri_proxy.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::cri_proxy_test {

using namespace std::chrono_literals;
namespace cri = runtime::v1;
using evictd::core::QosClass;
using evictd::test::exchange;
using evictd::test::Exchanged;
using evictd::test::raw_channel;
using evictd::test::RawClientCall;
using evictd::v1::Event;
using testbed::Agent;
using testbed::CriProxy;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;
const auto gibi_node = Testbed::Options{.node = {.memory_limit = 1024 * mebi}};

const std::string runtime_service = "/runtime.v1.RuntimeService/";
const std::string image_service = "/runtime.v1.ImageService/";

testbed::PodSpec pod(std::string name, QosClass qos, std::string memory = "8Mi") {
  return {.name = std::move(name), .qos = qos, .containers = {{.args = {"hold", std::move(memory)}}}};
}

/// Both ways to one containerd.
struct Ways {
  Ways(Testbed& testbed, const CriProxy& proxy)
      : directly{raw_channel(testbed.containerd().socket())}, through{raw_channel(proxy.socket())} {}
  std::shared_ptr<grpc::Channel> directly;
  std::shared_ptr<grpc::Channel> through;
};

/// All that a client can tell one answer from another by.
std::string all_of(const Exchanged& answer) {
  std::string all = fmt::format("{} {} {}", static_cast<int>(answer.status.error_code()), answer.status.error_message(),
                                answer.status.error_details());
  for (const auto* headers : {&answer.initial, &answer.trailing})
    for (const auto& [key, value] : *headers) all += fmt::format("\n{}: {}", key, value);
  for (const auto& message : answer.messages) all += "\n" + message;
  return all;
}

/// The answer through the proxy is byte for byte one that containerd gives directly. Several are asked for: containerd
/// writes maps and lists in an order that changes, and times that go on.
void check_equal(const Ways& ways, const std::string& method, const std::string& request) {
  CAPTURE(method);
  std::set<std::string> direct;
  std::set<std::string> proxied;
  const bool equal = testbed::comes_true(60s, [&] {
    direct.insert(all_of(exchange(ways.directly, method, request)));
    proxied.insert(all_of(exchange(ways.through, method, request)));
    return std::ranges::any_of(proxied, [&](const std::string& answer) { return direct.contains(answer); });
  });
  CHECK(equal);
}

template <class Request>
  requires std::is_base_of_v<google::protobuf::Message, Request>
void check_equal(const Ways& ways, const std::string& service, const Request& request) {
  std::string method = Request::descriptor()->name();
  method.resize(method.size() - std::string_view("Request").size());
  check_equal(ways, service + method, request.SerializeAsString());
}

/// A field of bytes, for messages that this build does not know.
std::string field(int number, const std::string& bytes) {
  REQUIRE(bytes.size() < 128);
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
}

/// One more event of containerd's own, for all who subscribed.
void publish(const Ways& ways, const std::string& topic) {
  const auto published = exchange(ways.directly, "/containerd.services.events.v1.Events/Publish",
                                  field(1, topic) + field(2, field(1, "evictd.test/nothing")),
                                  {.metadata = {{"containerd-namespace", "evictd"}}});
  REQUIRE(published.status.error_message() == "");
}

/// The containerd events that came on one stream, up to the one that ends the test.
class Subscriber {
 public:
  explicit Subscriber(const std::shared_ptr<grpc::Channel>& channel)
      : call_{channel,
              "/containerd.services.events.v1.Events/Subscribe",
              {.metadata = {{"containerd-namespace", "evictd"}}, .time = testbed::patient(2min)}} {
    call_.write("");
    call_.writes_done();
    thread_ = std::thread([this] {
      while (const auto event = call_.read()) {
        if (event->find("evictd.test/nothing") == std::string::npos) continue;
        events_.push_back(*event);
        count_ = events_.size();
        if (event->find("/evictd/last") != std::string::npos) return;
      }
    });
  }
  ~Subscriber() {
    call_.cancel();
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  const std::vector<std::string>& events() {
    thread_.join();
    return events_;
  }

 private:
  RawClientCall call_;
  std::vector<std::string> events_;
  std::atomic<std::size_t> count_ = 0;
  std::thread thread_;
};

bool has_pressure(const Agent& agent) {
  const auto status = agent.status();
  return std::ranges::any_of(status.conditions(), [](const auto& condition) {
    return condition.type() == "MemoryPressure" && condition.status();
  });
}

/// Why containerd, or the proxy before it, did not run the pod; empty where it did.
std::string refusal(CriProxy& proxy, const testbed::PodSpec& spec) {
  try {
    static_cast<void>(proxy.cri().run_pod(spec));
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("pods run, stop and go through the proxy, and every answer is containerd's own to the byte") {
  Testbed testbed{gibi_node};
  CriProxy proxy{testbed};
  const auto running = proxy.cri().run_pod(pod("web", QosClass::Burstable));
  CHECK(proxy.cri().is_running(running));
  CHECK(testbed.cri().is_running(running));
  const Ways ways{testbed, proxy};

  check_equal(ways, runtime_service, cri::VersionRequest{});
  cri::StatusRequest status;
  status.set_verbose(true);
  check_equal(ways, runtime_service, status);
  check_equal(ways, runtime_service, cri::ListPodSandboxRequest{});
  cri::PodSandboxStatusRequest sandbox;
  sandbox.set_pod_sandbox_id(running.sandbox);
  sandbox.set_verbose(true);
  check_equal(ways, runtime_service, sandbox);
  check_equal(ways, runtime_service, cri::ListContainersRequest{});
  cri::ContainerStatusRequest container;
  container.set_container_id(running.container());
  container.set_verbose(true);
  check_equal(ways, runtime_service, container);
  check_equal(ways, image_service, cri::ListImagesRequest{});
  check_equal(ways, image_service, cri::ImageFsInfoRequest{});

  // What fails does so in the same words, and what containerd has not it has not through the proxy either.
  container.set_container_id("nobody");
  check_equal(ways, runtime_service, container);
  // A stream; before containerd 1.7 there is none.
  if (testbed::containerd_version() < testbed::Version{1, 7})
    check_equal(ways, runtime_service + "GetContainerEvents", "");
  check_equal(ways, runtime_service + "NoSuchCall", "");
  check_equal(ways, "/no.such.Service/Call", "");
  check_equal(ways, runtime_service + "StartContainer", "\xff");  // no message at all
  check_equal(ways, "/runtime.v1alpha2.RuntimeService/Version", "");

  // Exec answers with an address to call, another one each time.
  const auto exec = exchange(ways.through, runtime_service + "Exec",
                             field(1, running.container()) + field(2, "true") + std::string("\x28\x01", 2));
  CHECK(exec.status.error_message() == "");
  REQUIRE(exec.messages.size() == 1);
  CHECK(exec.messages[0].find("http://") != std::string::npos);

  proxy.cri().stop(running, 0s);
  CHECK_FALSE(testbed.cri().is_running(running));
  proxy.cri().remove(running);
  CHECK(testbed.cri().sandboxes().empty());
}

TEST_CASE("a hundred clients call at once, each gets its own answers") {
  Testbed testbed{gibi_node};
  CriProxy proxy{testbed};
  const auto running = proxy.cri().run_pod(pod("web", QosClass::Burstable));
  const Ways ways{testbed, proxy};
  // The container's own answer, and one that says who asked: the error names the id.
  cri::ContainerStatusRequest known;
  known.set_container_id(running.container());
  std::set<std::string> direct;
  for (int i = 0; i < 50; ++i)
    direct.insert(all_of(exchange(ways.directly, runtime_service + "ContainerStatus", known.SerializeAsString())));
  std::vector<std::future<int>> clients;
  for (int client = 0; client < 100; ++client)
    clients.push_back(std::async(std::launch::async, [&, client] {
      int wrong = 0;
      for (int round = 0; round < 20; ++round) {
        const auto answer = exchange(ways.through, runtime_service + "ContainerStatus", known.SerializeAsString());
        wrong += answer.status.ok() && direct.contains(all_of(answer)) ? 0 : 1;
        cri::ContainerStatusRequest unknown;
        unknown.set_container_id(fmt::format("nobody-{}-{}", client, round));
        const auto refused = exchange(ways.through, runtime_service + "ContainerStatus", unknown.SerializeAsString());
        const bool own = refused.status.error_code() == grpc::StatusCode::NOT_FOUND &&
                         refused.status.error_message().find(unknown.container_id()) != std::string::npos;
        wrong += own ? 0 : 1;
      }
      return wrong;
    }));
  for (auto& client : clients) CHECK(client.get() == 0);
}

TEST_CASE("a hundred streams of containerd's events at once are whole, in order and the same to the byte") {
  Testbed testbed{gibi_node};
  CriProxy proxy{testbed};
  const Ways ways{testbed, proxy};
  int number = 0;
  const auto publish_until = [&](const std::function<bool()>& all_hear) {
    testbed::wait_until("everybody hears of events", 60s, [&] {
      publish(ways, fmt::format("/evictd/{}", ++number));
      return all_hear();
    });
  };
  Subscriber direct{ways.directly};
  publish_until([&] { return direct.count() > 0; });
  std::vector<std::unique_ptr<Subscriber>> subscribers;
  for (int i = 0; i < 100; ++i) subscribers.push_back(std::make_unique<Subscriber>(ways.through));
  publish_until([&] { return std::ranges::all_of(subscribers, [](const auto& one) { return one->count() > 0; }); });
  for (int i = 0; i < 200; ++i) publish(ways, fmt::format("/evictd/{}", ++number));
  publish(ways, "/evictd/last");

  const auto& expected = direct.events();
  for (const auto& subscriber : subscribers) {
    const auto& events = subscriber->events();
    REQUIRE(events.size() > 200);
    REQUIRE(events.size() <= expected.size());
    CHECK(std::equal(events.rbegin(), events.rend(), expected.rbegin()));
  }
}

TEST_SUITE_BEGIN("runtime events");

TEST_CASE("what containerd tells of its pods comes through the proxy") {
  Testbed testbed{gibi_node};
  CriProxy proxy{testbed};
  const Ways ways{testbed, proxy};
  RawClientCall events{ways.through, runtime_service + "GetContainerEvents", {.time = testbed::patient(1min)}};
  REQUIRE(events.write(""));
  REQUIRE(events.writes_done());
  // Whether containerd listens already, nobody can tell: it says nothing before there is something to say.
  std::atomic<bool> told = false;
  struct Reader {
    ~Reader() {
      call.cancel();
      thread.join();
    }
    RawClientCall& call;
    std::thread thread;
  };
  const Reader reader{events, std::thread{[&] { told = events.read().has_value(); }}};
  testbed::wait_until("containerd tells of a pod", 30s, [&] {
    proxy.cri().remove(proxy.cri().run_pod(pod("web", QosClass::Burstable)));
    return told.load();
  });
}

TEST_SUITE_END();

TEST_CASE("a pod that the agent rejects under memory pressure never reaches containerd; others do") {
  Testbed testbed{gibi_node};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 50Mi}\n"
                             "evictionSoft: {memory.available: 900Mi}\n"
                             "evictionSoftGracePeriod: {memory.available: 1h}\n"}};
  CriProxy proxy{testbed, {.undecided = "reject"}};  // so what runs was admitted
  const auto before = proxy.cri().run_pod(pod("before", QosClass::BestEffort, "200Mi"));
  testbed::wait_until("memory pressure", 60s, [&] { return has_pressure(agent); });

  const auto why = refusal(proxy, pod("after", QosClass::BestEffort));
  CHECK(why.find("Evicted: The node had condition: [MemoryPressure]. ") != std::string::npos);
  CHECK(testbed.cri().sandboxes().size() == 1);

  cri::RunPodSandboxRequest request;
  request.mutable_config()->mutable_metadata()->set_name("raw");
  request.mutable_config()->mutable_metadata()->set_namespace_("default");
  request.mutable_config()->mutable_metadata()->set_uid("raw");
  request.mutable_config()->mutable_linux()->set_cgroup_parent(testbed.node().pod_cgroup(QosClass::BestEffort, "raw"));
  const auto answer =
      exchange(raw_channel(proxy.socket()), runtime_service + "RunPodSandbox", request.SerializeAsString());
  CHECK(answer.status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(answer.status.error_message() == "Evicted: The node had condition: [MemoryPressure]. ");

  const auto burstable = proxy.cri().run_pod(pod("burstable", QosClass::Burstable));
  CHECK(testbed.cri().is_running(burstable));
  CHECK(testbed.cri().is_running(before));
  CHECK(testbed.cri().sandboxes().size() == 2);
}

TEST_CASE("a critical pod runs once those that make room for it are gone; others start meanwhile") {
  Testbed testbed{gibi_node};
  auto large = pod("large", QosClass::Burstable);
  large.termination_grace_period = 20s;
  large.containers[0].args.insert(large.containers[0].args.begin(), "--ignore-term");
  large.containers[0].memory_request = 600 * mebi;
  const auto victim = testbed.cri().run_pod(large);
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}\n"}};
  CriProxy proxy{testbed, {.undecided = "reject"}};  // so what runs was admitted
  agent.wait_for_pods(1);

  auto vital = pod("vital", QosClass::Burstable);
  vital.priority = 2'000'000'000;
  vital.containers[0].memory_request = 600 * mebi;
  auto started = std::async(std::launch::async, [&] { return proxy.cri().run_pod(vital); });
  static_cast<void>(agent.events().wait_for(Event::EVICTION_INTENDED, "default/large", 60s));
  const auto beside = proxy.cri().run_pod(pod("beside", QosClass::BestEffort));
  const auto runs = started.get();
  CHECK_FALSE(testbed.cri().is_running(victim));
  CHECK(testbed.cri().is_running(runs));
  CHECK(testbed.cri().is_running(beside));
}

TEST_CASE("a container is given more only where the agent says so, and other CPUs without a question") {
  Testbed testbed{gibi_node};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 50Mi}"}};
  CriProxy proxy{testbed, {.undecided = "reject"}};
  const auto grower = proxy.cri().run_pod(pod("grower", QosClass::Burstable));
  agent.wait_for_pods(1);
  const auto channel = raw_channel(proxy.socket());
  const auto update = [&](const auto& give) {
    cri::UpdateContainerResourcesRequest request;
    request.set_container_id(grower.container());
    give(*request.mutable_linux());
    return exchange(channel, runtime_service + "UpdateContainerResources", request.SerializeAsString()).status;
  };
  const auto with_shares = [&](std::int64_t shares) {
    return update([shares](auto& linux) { linux.set_cpu_shares(shares); });
  };
  // A container that the agent does not know yet passes.
  testbed::wait_until("the agent knows the container", 60s, [&] { return !with_shares(262'144).ok(); });
  const auto refused = with_shares(262'144);  // of 256 CPUs
  CHECK(refused.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(refused.error_message().starts_with(
      "Infeasible: Node didn't have enough capacity: cpu, requested: 256000, capacity: "));
  CHECK(with_shares(102).error_message() == "");
  agent.process().kill();
  CHECK(with_shares(204).error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(update([](auto& linux) { linux.set_cpuset_cpus("0"); }).error_message() == "");
  CHECK(testbed.cri().is_running(grower));
}

TEST_CASE("while the agent is away pods start, or do not, as configured, and all else goes on") {
  Testbed testbed{gibi_node};
  std::optional<Agent> agent{std::in_place, testbed,
                             Agent::Options{.thresholds = "evictionHard: {memory.available: 50Mi}"}};
  int pods = 0;
  for (const std::string undecided : {"admit", "reject"}) {
    CriProxy proxy{testbed, {.undecided = undecided}};
    CHECK(refusal(proxy, pod("with-" + undecided, QosClass::Burstable)) == "");
    agent->process().kill();

    const auto why = refusal(proxy, pod("without-" + undecided, QosClass::Burstable));
    if (undecided == "admit")
      CHECK(why == "");
    else
      CHECK(why.find("the evictd agent does not decide on this") != std::string::npos);
    CHECK(proxy.cri().ready_pods() == testbed.cri().ready_pods());
    static_cast<void>(refusal(proxy, pod("again-" + undecided, QosClass::Burstable)));
    const std::string line = "the agent does not decide on pods";
    proxy.process().wait_until_says(line);

    agent.emplace(testbed, Agent::Options{.thresholds = "evictionHard: {memory.available: 50Mi}"});
    testbed::wait_until("the agent is asked again", 60s, [&] {
      return refusal(proxy, pod(fmt::format("back-{}-{}", undecided, ++pods), QosClass::Burstable)).empty() &&
             proxy.process().errors().contains("the agent decides on pods again");
    });
    const auto said = proxy.process().errors();
    CHECK(said.find(line) == said.rfind(line));
  }
}

TEST_CASE("containerd may go and come back behind the proxy") {
  Testbed testbed{gibi_node};
  CriProxy proxy{testbed};
  const auto running = proxy.cri().run_pod(pod("web", QosClass::Burstable));
  testbed.containerd().kill9();
  const auto away = exchange(raw_channel(proxy.socket()), runtime_service + "Version", "");
  CHECK(away.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  testbed.containerd().start();
  testbed::wait_until("the pod is seen through the proxy", 60s, [&] {
    return exchange(raw_channel(proxy.socket()), runtime_service + "Version", "").status.ok();
  });
  CHECK(proxy.cri().is_running(running));
}

TEST_CASE("the proxy tells systemd how it is, and ends on SIGTERM without a trace") {
  Testbed testbed{gibi_node};
  NotifySocket systemd{testbed.directory() / "notify"};
  CriProxy proxy{testbed, {.environment = {"NOTIFY_SOCKET=" + (testbed.directory() / "notify").native()}}};
  testbed::wait_until("READY=1", 30s, [&] { return systemd.count("READY=1") == 1; });

  // A second one does not take its place.
  auto second =
      testbed.spawn({testbed::evictd_program(), "cri-proxy", "--config", testbed.directory() / "cri-proxy.yaml",
                     "--kubelet-config", testbed.directory() / "cri-proxy-kubelet.yaml"});
  CHECK(second.wait(30s) == 1);
  CHECK(second.errors().find("runtimeDirectory: " + proxy.socket().native() + ": somebody answers on it already") !=
        std::string::npos);

  // A stream without end does not keep it.
  Subscriber endless{raw_channel(proxy.socket())};
  proxy.process().signal(SIGTERM);
  CHECK(proxy.process().wait(30s) == 0);
  CHECK(systemd.count("STOPPING=1") == 1);
  CHECK_FALSE(std::filesystem::exists(proxy.socket()));
}

TEST_CASE("a client that does not read what it asked for does not keep the proxy from ending") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}, .containerd = {}, .start_containerd = false}};
  CriProxy proxy{testbed};
  evictd::fixture::DeafClient client{proxy.socket()};
  client.fill(runtime_service + "Version");
  proxy.process().signal(SIGTERM);
  CHECK(proxy.process().wait(30s).has_value());
}

}  // namespace integration::cri_proxy_test
