#pragma once
#include <evictd.grpc.pb.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "testbed/testbed.hpp"

namespace integration {

using evictd::v1::Event;

/// All events of one subscriber, gathered by a thread of its own.
class EventStream {
 public:
  explicit EventStream(const std::shared_ptr<grpc::Channel>& channel);
  ~EventStream();

  [[nodiscard]] std::vector<Event> all() const;
  /// The first event so far or to come that fits; fails with what did come when the deadline passes.
  Event wait_for(std::string_view what, std::chrono::milliseconds deadline,
                 const std::function<bool(const Event&)>& fits);
  Event wait_for(Event::Kind kind, std::string_view pod, std::chrono::milliseconds deadline);
  [[nodiscard]] bool has(Event::Kind kind, std::string_view pod) const;

 private:
  void read();

  std::unique_ptr<evictd::v1::EvictionService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<Event>> reader_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Event> events_;
  std::thread thread_;
};

/// The real evictd guarding a testbed's node, with its configuration in the testbed's directory.
class AgentUnderTest {
 public:
  struct Options {
    std::string thresholds;  ///< the eviction fields of a KubeletConfiguration, YAML
    std::string notifier{};  ///< fields of `notifier`, YAML flow: "memcg: false, fallbackInterval: 1s"
    std::string eviction{};  ///< fields of `eviction`
    std::vector<std::string> arguments{};
    bool wait_until_ready = true;  ///< until the API answers and the runtime's pods are known
  };

  AgentUnderTest(testbed::Testbed& testbed, const Options& options);

  [[nodiscard]] evictd::v1::NodeStatus status() const;
  [[nodiscard]] EventStream& events() { return *events_; }
  [[nodiscard]] testbed::Process& process() { return process_; }
  [[nodiscard]] std::string address() const;
  /// Until the agent knows as many pods: what it does not know it cannot evict.
  void wait_for_pods(std::size_t count) const;
  [[nodiscard]] std::size_t open_files() const;

 private:
  [[nodiscard]] testbed::Process start(testbed::Testbed& testbed, const Options& options) const;

  std::string socket_;
  testbed::Process process_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<evictd::v1::EvictionService::Stub> stub_;
  std::unique_ptr<EventStream> events_;
};

/// "default/bloat"
[[nodiscard]] std::string key(const evictd::v1::PodReference& pod);

}  // namespace integration
