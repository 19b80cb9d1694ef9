// Clients that may only look, and do so as quickly as they can.
#include <doctest/doctest.h>
#include <evictd.grpc.pb.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "soon.hpp"
#include "testbed/agent.hpp"
#include "testbed/channel.hpp"

namespace integration::calls_test {

using namespace std::chrono_literals;
namespace v1 = evictd::v1;

namespace {

constexpr int pods_in_batch = 256;
constexpr int at_a_time = 2000;

v1::AdmitBatchRequest large_batch() {
  v1::AdmitBatchRequest request;
  for (int i = 0; i < pods_in_batch; ++i)
    request.add_pods("{kind: Pod, metadata: {name: p" + std::to_string(i) +
                     "}, spec: {containers: [{name: c, resources: {requests: {memory: 1Mi, cpu: 1m}}}]}}");
  return request;
}

/// Has so many calls under way at any time, of every kind that anyone may make who may look.
class Flood {
 public:
  explicit Flood(const std::string& address) : stub_{testbed::agent_stub(address)} {
    for (int i = 0; i < at_a_time; ++i) ask(i);
  }
  ~Flood() {
    stop();
    while (open_ > 0) std::this_thread::sleep_for(10ms);
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  /// Asks nothing more.
  void stop() { stopped_ = true; }
  [[nodiscard]] std::size_t answered() const { return answered_; }
  /// How calls ended otherwise.
  [[nodiscard]] std::set<grpc::StatusCode> failures() {
    const std::lock_guard lock{mutex_};
    return failures_;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::AdmitBatchResponse batch;
    v1::RankPodsRequest rank;
    v1::RankPodsResponse ranked;
    v1::GetNodeStatusRequest ask_status;
    v1::NodeStatus status;
  };

  void ask(int kind) {
    if (stopped_) return;
    ++open_;
    auto* call = new Call;
    call->context.set_deadline(std::chrono::system_clock::now() + 60s);
    const auto ended = [this, call, kind](const grpc::Status& status) {
      delete call;
      if (status.ok()) {
        ++answered_;
      } else {
        const std::lock_guard lock{mutex_};
        failures_.insert(status.error_code());
      }
      ask(kind);
      --open_;
    };
    if (kind % 16 == 0)
      stub_->async()->RankPods(&call->context, &call->rank, &call->ranked, ended);
    else if (kind % 16 == 1)
      stub_->async()->GetNodeStatus(&call->context, &call->ask_status, &call->status, ended);
    else
      stub_->async()->AdmitBatch(&call->context, &request_, &call->batch, ended);
  }

  const v1::AdmitBatchRequest request_ = large_batch();
  std::unique_ptr<v1::EvictionService::Stub> stub_;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> open_ = 0;
  std::atomic<std::size_t> answered_ = 0;
  std::mutex mutex_;
  std::set<grpc::StatusCode> failures_;
};

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("while clients ask as quickly as they can, the hog goes soon and nobody else does") {
    integration::FaultScene scene;
    {
      std::list<Flood> clients;
      for (int i = 0; i < 4; ++i) clients.emplace_back(scene.agent->address());
      testbed::wait_until("calls are answered", 30s, [&] { return clients.front().answered() >= 10; });
      integration::expect_hog_goes_soon(scene);
      for (auto& client : clients) client.stop();
      for (auto& client : clients)
        for (const auto code : client.failures()) CHECK(code == grpc::StatusCode::RESOURCE_EXHAUSTED);
    }
    scene.wait_until_cleaned();
    scene.check_victims();
  }
}

}  // namespace integration::calls_test
