#include "agent_under_test.hpp"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <filesystem>

#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

using namespace std::chrono_literals;
namespace v1 = evictd::v1;

namespace integration {

std::string key(const v1::PodReference& pod) { return pod.namespace_() + "/" + pod.name(); }

EventStream::EventStream(const std::shared_ptr<grpc::Channel>& channel) : stub_{v1::EvictionService::NewStub(channel)} {
  context_.set_wait_for_ready(true);
  v1::StreamEventsRequest request;
  request.set_after_sequence(0);
  reader_ = stub_->StreamEvents(&context_, request);
  thread_ = std::thread([this] { read(); });
}

EventStream::~EventStream() {
  context_.TryCancel();
  thread_.join();
}

void EventStream::read() {
  for (Event event; reader_->Read(&event);) {
    const std::lock_guard lock{mutex_};
    events_.push_back(event);
    arrived_.notify_all();
  }
}

std::vector<Event> EventStream::all() const {
  const std::lock_guard lock{mutex_};
  return events_;
}

Event EventStream::wait_for(std::string_view what, std::chrono::milliseconds deadline,
                            const std::function<bool(const Event&)>& fits) {
  std::unique_lock lock{mutex_};
  auto found = events_.end();
  const bool came = arrived_.wait_for(lock, deadline, [&] {
    found = std::ranges::find_if(events_, fits);
    return found != events_.end();
  });
  if (came) return *found;
  std::string seen;
  for (const auto& event : events_) seen += "\n  " + event.ShortDebugString();
  testbed::fail(fmt::format("after {} ms there was no event: {}; there were:{}", deadline.count(), what, seen));
}

Event EventStream::wait_for(Event::Kind kind, std::string_view pod, std::chrono::milliseconds deadline) {
  return wait_for(fmt::format("{} of {}", Event::Kind_Name(kind), pod), deadline,
                  [&](const Event& event) { return event.kind() == kind && (pod.empty() || key(event.pod()) == pod); });
}

bool EventStream::has(Event::Kind kind, std::string_view pod) const {
  return std::ranges::any_of(all(),
                             [&](const Event& event) { return event.kind() == kind && key(event.pod()) == pod; });
}

AgentUnderTest::AgentUnderTest(testbed::Testbed& testbed, const Options& options)
    : socket_{testbed.directory() / "evictd.sock"}, process_{start(testbed, options)} {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  for (const auto* backoff :
       {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS})
    arguments.SetInt(backoff, 100);
  channel_ = grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments);
  stub_ = v1::EvictionService::NewStub(channel_);
  if (!channel_->WaitForConnected(std::chrono::system_clock::now() + 60s))
    testbed::fail("evictd does not serve its API; it said: " + process_.errors());
  events_ = std::make_unique<EventStream>(channel_);
  if (options.wait_until_ready)
    testbed::wait_until("evictd knows the runtime", 60s, [&] { return status().runtime().connected(); });
}

testbed::Process AgentUnderTest::start(testbed::Testbed& testbed, const Options& options) const {
  const auto agent_file = testbed.directory() / "agent.yaml";
  const auto kubelet_file = testbed.directory() / "kubelet.yaml";
  testbed::replace_file(agent_file, fmt::format(R"(apiVersion: evictd.io/v1alpha1
kind: AgentConfiguration
node: {{cgroupRoot: {}}}
cri: {{endpoint: "{}"}}
notifier: {{{}}}
eviction: {{{}}}
api: {{socket: {}}}
)",
                                                testbed.node().cgroup(), testbed.containerd().address(),
                                                options.notifier, options.eviction, socket_));
  testbed::replace_file(kubelet_file,
                        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + options.thresholds);
  std::vector<std::string> command{testbed::evictd_program(), "run",       "--config", agent_file,
                                   "--kubelet-config",        kubelet_file};
  command.insert(command.end(), options.arguments.begin(), options.arguments.end());
  return testbed.spawn(command);
}

std::string AgentUnderTest::address() const { return "unix:" + socket_; }

v1::NodeStatus AgentUnderTest::status() const {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + 20s);
  v1::NodeStatus status;
  const auto result = stub_->GetNodeStatus(&context, {}, &status);
  if (!result.ok()) testbed::fail("GetNodeStatus: " + result.error_message());
  return status;
}

void AgentUnderTest::wait_for_pods(std::size_t count) const {
  testbed::wait_until(fmt::format("evictd knows {} pods", count), 60s, [&] { return status().pods() == count; });
}

std::size_t AgentUnderTest::open_files() const {
  const auto directory = std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process_.pid()));
  return static_cast<std::size_t>(std::distance(begin(directory), end(directory)));
}

}  // namespace integration
