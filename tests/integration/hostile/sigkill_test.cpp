#include <doctest/doctest.h>
#include <evictd.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fixture/random.hpp"
#include "history.hpp"
#include "soon.hpp"
#include "testbed/agent.hpp"
#include "testbed/channel.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::sigkill_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr int rounds = 50;
const auto half_gibi_node = Testbed::Options{.node = {.memory_limit = 512 * mebi}};

std::uint64_t seed() {
  const char* given = std::getenv("EVICTD_SIGKILL_SEED");
  return given != nullptr ? std::stoull(given) : std::random_device{}();
}

/// Follows the events over evictd's ends: each time it resumes after the number that it saw last.
class Reader {
 public:
  explicit Reader(const std::string& address) : stub_{testbed::agent_stub(address)}, thread_{[this] { read(); }} {}
  ~Reader() { stop(); }

  void stop() {
    {
      const std::lock_guard lock{mutex_};
      stopping_ = true;
      if (context_ != nullptr) context_->TryCancel();
    }
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::uint64_t last() const {
    const std::lock_guard lock{mutex_};
    return last_;
  }
  /// After stop(): what it was told by number, and how often it was told of a gap or of a number that does not rise.
  [[nodiscard]] const std::map<std::uint64_t, std::string>& told() const { return told_; }
  [[nodiscard]] int gaps() const { return gaps_; }
  [[nodiscard]] int falls() const { return falls_; }

 private:
  std::shared_ptr<grpc::ClientContext> next_context() {
    const std::lock_guard lock{mutex_};
    context_ = stopping_ ? nullptr : std::make_shared<grpc::ClientContext>();
    return context_;
  }
  void read() {
    while (const auto context = next_context()) {
      context->set_wait_for_ready(true);
      context->set_authority("localhost");
      evictd::v1::StreamEventsRequest request;
      request.set_after_sequence(last_);
      const auto reader = stub_->StreamEvents(context.get(), request);
      for (Event event; reader->Read(&event);) note(event);
      static_cast<void>(reader->Finish());
    }
  }
  void note(const Event& event) {
    const std::lock_guard lock{mutex_};
    if (event.kind() == Event::GAP)
      ++gaps_;
    else
      told_.emplace(event.sequence(), event.ShortDebugString());
    if (event.sequence() <= last_) ++falls_;
    last_ = event.sequence();
  }

  std::unique_ptr<evictd::v1::EvictionService::Stub> stub_;
  mutable std::mutex mutex_;
  std::shared_ptr<grpc::ClientContext> context_;  // of the stream under way
  bool stopping_ = false;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::string> told_;
  int gaps_ = 0;
  int falls_ = 0;
  std::thread thread_;
};

Agent::Options options() { return {.thresholds = "evictionHard: {memory.available: 150Mi}", .keep_history = true}; }

/// Where this looks too late, evictd has done its part already and the cgroup is gone.
bool has_taken(Testbed& testbed, const testbed::RunningPod& hog, std::int64_t bytes) {
  try {
    return testbed.node().memory_usage(hog.cgroup) >= bytes;
  } catch (const std::exception&) {
    if (has_processes(testbed, hog)) throw;
    return true;
  }
}

/// The hog takes what is left above the threshold, and evictd is killed so long after that.
void kill_in_the_middle(Testbed& testbed, Agent& agent, const Follower& hog, std::chrono::microseconds delay) {
  hog.hold(290 * mebi);
  const auto give_up = std::chrono::steady_clock::now() + 20s;
  while (!has_taken(testbed, hog.running, 240 * mebi) && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(200us);
  std::this_thread::sleep_for(delay);
  agent.process().kill();
}

/// The history was read after the client had stopped: what it was told is in there, and what is in there up to then it
/// was told.
void check_events(const std::vector<Event>& events, const Reader& reader) {
  std::uint64_t last = 0;
  std::size_t told = 0;
  for (const auto& event : events) {
    INFO(event.ShortDebugString());
    CHECK(event.kind() != Event::GAP);
    CHECK(event.sequence() == last + 1);
    last = event.sequence();
    if (last > reader.last()) continue;
    const auto known = reader.told().find(last);
    REQUIRE(known != reader.told().end());
    CHECK(known->second == event.ShortDebugString());
    ++told;
  }
  CHECK(reader.told().size() == told);
  CHECK(reader.gaps() == 0);
  CHECK(reader.falls() == 0);
}

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE(
      "evictd is killed 50 times while a pod has to go: that pod goes, and each event is told once by one number") {
    const auto first = seed();
    MESSAGE("EVICTD_SIGKILL_SEED=" << first);
    evictd::fixture::Random random{first};
    Testbed testbed{half_gibi_node};
    const auto chill = testbed.cri().run_pod(integration::pod("chill", QosClass::Burstable, {"hold", "30Mi"}));
    const auto vital =
        testbed.cri().run_pod(integration::pod("vital", QosClass::BestEffort, {"hold", "50Mi"}, 2'000'000'000));
    std::optional<Agent> agent;
    agent.emplace(testbed, options());
    Reader reader{agent->address()};
    const auto start_hog = [&testbed](int number) {  // while evictd starts, and cleans up after the one before
      return std::async(std::launch::async,
                        [&testbed, name = fmt::format("hog-{}", number)] { return Follower{testbed, name}; });
    };
    auto coming = start_hog(0);
    for (int round = 0; round < rounds; ++round) {
      CAPTURE(round);
      const auto hog = coming.get();
      agent->wait_for_pod(hog.running.uid);
      const std::chrono::microseconds delay{random.between(0, 150'000)};
      CAPTURE(delay.count());
      kill_in_the_middle(testbed, *agent, hog, delay);
      if (round + 1 < rounds) coming = start_hog(round + 1);
      agent.reset();
      agent.emplace(testbed, options());
      testbed::wait_until("the hog is gone", integration::soon, [&] { return !has_processes(testbed, hog.running); });
    }
    testbed::wait_until("nothing is under way", 60s, [&] { return agent->status().in_flight().empty(); });
    CHECK(testbed.cri().is_running(chill));
    CHECK(testbed.cri().is_running(vital));
    const auto events = history(*agent);
    for (int round = 0; round < rounds; ++round) {
      const auto hog = fmt::format("default/hog-{}", round);
      CAPTURE(hog);
      CHECK(count(events, Event::EVICTION_INTENDED, hog) == 1);
      CHECK(count(events, Event::CONTAINERS_KILLED, hog) == 1);
      CHECK(count(events, Event::MEMORY_RELEASED, hog) == 1);
      CHECK(count(events, Event::CLEANUP_DONE, hog) == 1);
    }
    for (const auto& event : events)
      if (event.eviction_id() != 0) CHECK(testbed::key(event.pod()).starts_with("default/hog-"));
    CHECK(testbed::comes_true(20s, [&] { return reader.last() >= events.back().sequence(); }));
    reader.stop();
    check_events(history(*agent), reader);
  }
}

}  // namespace integration::sigkill_test
