#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "os/file_descriptor.hpp"
#include "os/unix_address.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/rejected_pods.hpp"
#include "testbed/wait.hpp"

namespace integration::streams_test {

using namespace std::chrono_literals;
using evictd::v1::Event;
using evictd::v1::StreamEventsRequest;
using testbed::Agent;
using testbed::RejectedPods;
using testbed::Testbed;

namespace {

Testbed::Options node() { return {.node = {.memory_limit = 1 << 30}}; }

Agent::Options options(bool keep_history = true) {
  // These tests are about other things than a busy machine's delays.
  return {.thresholds = "evictionHard: {memory.available: 100Mi}",
          .keep_history = keep_history,
          .sections = "api: {subscriberQueue: 4096}\n"};
}

/// One subscriber on a connection of its own.
class Follower {
 public:
  Follower(const Agent& agent, const StreamEventsRequest& request) {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = evictd::v1::EvictionService::NewStub(
        grpc::CreateCustomChannel(agent.address(), grpc::InsecureChannelCredentials(), arguments));
    context_.set_deadline(std::chrono::system_clock::now() + testbed::patient(120s));
    reader_ = stub_->StreamEvents(&context_, request);
    reader_->WaitForInitialMetadata();
  }
  ~Follower() {
    context_.TryCancel();
    if (!finished_) static_cast<void>(finish());
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  [[nodiscard]] bool read(Event& event) { return reader_->Read(&event); }
  Event read() {
    Event event;
    REQUIRE(read(event));
    return event;
  }
  grpc::Status finish() {
    for (Event event; read(event);) {
    }
    finished_ = true;
    return reader_->Finish();
  }

 private:
  std::unique_ptr<evictd::v1::EvictionService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<Event>> reader_;
  bool finished_ = false;
};

StreamEventsRequest after(std::uint64_t number, bool follow = true) {
  StreamEventsRequest request;
  request.set_after_sequence(number);
  request.set_follow(follow);
  return request;
}

/// What a client knows that resumes by number from one agent to the next: each number is an event or in a gap, once.
class Diary {
 public:
  /// False where the stream is over.
  bool read(Follower& follower) {
    Event event;
    if (!follower.read(event)) return false;
    const bool is_gap = event.kind() == Event::GAP;
    CHECK((is_gap ? event.gap().from() : event.sequence()) == last_ + 1);
    last_ = event.sequence();
    if (is_gap)
      gaps_ += 1;
    else
      CHECK(events_.emplace(last_, event.SerializeAsString()).second);
    return true;
  }

  /// Whoever reads anew is told the same, or that it is lost.
  void check_against(Follower& follower) {
    for (Event event; follower.read(event);) {
      const auto known = events_.find(event.sequence());
      if (event.kind() != Event::GAP && known != events_.end()) CHECK(known->second == event.SerializeAsString());
    }
  }

  [[nodiscard]] std::uint64_t last() const { return last_; }
  [[nodiscard]] std::size_t events() const { return events_.size(); }
  [[nodiscard]] int gaps() const { return gaps_; }

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::string> events_;
  int gaps_ = 0;
};

/// Events without end, from a thread of its own, as long as the agent lives.
std::jthread keep_rejecting(const Testbed& testbed, const Agent& agent) {
  auto pods = std::make_shared<RejectedPods>(testbed, agent);
  pods->make_events(1);
  return std::jthread([pods](const std::stop_token& stop) {
    while (!stop.stop_requested() && pods->reject(5, "default", "nobody").ok()) std::this_thread::sleep_for(1ms);
  });
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a subscriber with a filter gets what fits of what a real agent tells") {
  Testbed testbed{node()};
  Agent agent{testbed, options(false)};
  RejectedPods pods{testbed, agent};
  pods.make_events(1);
  StreamEventsRequest request;
  request.mutable_filter()->add_kinds(Event::ADMISSION_REJECTED);
  request.mutable_filter()->add_namespaces("shop");
  Follower follower{agent, request};
  for (int i = 0; i < 8; ++i) pods.make_events(250, "mail", "web");
  pods.make_events(1, "shop", "web");
  const auto event = follower.read();
  CHECK(event.kind() == Event::ADMISSION_REJECTED);
  CHECK(testbed::key(event.pod()) == "shop/web");
  CHECK(event.admission_rejected().reason() == "SysctlForbidden");
}

TEST_CASE("a snapshot is followed by every event after it, while events happen") {
  Testbed testbed{node()};
  Agent agent{testbed, options(false)};
  const auto busy = keep_rejecting(testbed, agent);
  StreamEventsRequest request;
  request.set_snapshot(true);
  for (int i = 0; i < 20; ++i) {
    Follower follower{agent, request};
    const auto snapshot = follower.read();
    CHECK(snapshot.kind() == Event::SNAPSHOT);
    CHECK(snapshot.snapshot().last_event_sequence() == snapshot.sequence());
    CHECK_FALSE(snapshot.snapshot().version().empty());
    CHECK(snapshot.snapshot().runtime().connected());
    for (std::uint64_t next = 1; next <= 10; ++next) CHECK(follower.read().sequence() == snapshot.sequence() + next);
  }
}

TEST_CASE("agents are killed in the midst of events, and a client that resumes gets each event once, without a gap") {
  Testbed testbed{node()};
  Diary diary;
  for (int life = 0; life < 4; ++life) {
    Agent agent{testbed, options()};
    CHECK(agent.status().last_event_sequence() >= diary.last());
    Follower follower{agent, after(diary.last())};
    const auto busy = keep_rejecting(testbed, agent);
    const auto enough = diary.events() + 300;
    while (diary.events() < enough && diary.read(follower)) {
    }
    CHECK(diary.events() == enough);
    agent.process().signal(SIGKILL);
    agent.process().wait(30s);
    while (diary.read(follower)) {  // what was under way
    }
  }
  Agent agent{testbed, options()};
  Follower rest{agent, after(diary.last(), false)};
  while (diary.read(rest)) {
  }
  CHECK(rest.finish().ok());
  CHECK(diary.gaps() == 0);
  Follower anew{agent, after(0, false)};
  diary.check_against(anew);
}

TEST_CASE("an agent that ends in order is followed by one that goes on with the next number, without a gap") {
  Testbed testbed{node()};
  Diary diary;
  for (int life = 0; life < 3; ++life) {
    Agent agent{testbed, options()};
    RejectedPods(testbed, agent).make_events(100);
    Follower follower{agent, after(diary.last(), false)};
    while (diary.read(follower)) {
    }
    CHECK(follower.finish().ok());
    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(30s) == 0);
  }
  CHECK(diary.gaps() == 0);
  CHECK(diary.events() == diary.last());
  CHECK(diary.events() >= 300);
  Agent agent{testbed, options()};
  Follower anew{agent, after(0, false)};
  CHECK(anew.read().sequence() == 1);
  diary.check_against(anew);
}

TEST_CASE("a history that cannot be kept is said once, and the agent guards on") {
  Testbed testbed{node()};
  testbed::replace_file(testbed.directory() / "events", "in the way");
  Agent agent{testbed, options()};
  RejectedPods(testbed, agent).make_events(3);
  Follower follower{agent, after(0, false)};
  CHECK(follower.read().sequence() == 1);
  agent.process().wait_until_says("events are kept in memory only");
  CHECK(count(agent.process().errors(), "stateDirectory") == 1);
}

TEST_CASE("a subscriber to whom nothing happens hears heartbeats") {
  Testbed testbed{node()};
  Agent agent{testbed, options(false)};
  RejectedPods(testbed, agent).make_events(1);
  StreamEventsRequest request;
  request.mutable_filter()->add_kinds(Event::AUDIT);
  request.mutable_filter()->add_namespaces("nowhere");
  request.mutable_heartbeat()->set_nanos(100'000'000);
  Follower follower{agent, request};
  for (int i = 0; i < 3; ++i) {
    const auto event = follower.read();
    CHECK(event.kind() == Event::HEARTBEAT);
    CHECK(event.sequence() >= 1);
  }
}

TEST_CASE("hundreds of subscribers that come and go, and connections that say nothing, leave no file open") {
  Testbed testbed{node()};
  Agent agent{testbed, options(false)};
  const auto busy = keep_rejecting(testbed, agent);
  const auto before = agent.open_files();
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Follower>> followers;
    StreamEventsRequest with_snapshot;
    with_snapshot.set_snapshot(true);
    for (int i = 0; i < 100; ++i)
      followers.push_back(std::make_unique<Follower>(agent, i % 2 == 0 ? after(0) : with_snapshot));
    for (const auto& follower : followers) static_cast<void>(follower->read());
    CHECK(agent.open_files() >= before + 100);
  }
  std::vector<evictd::os::FileDescriptor> silent;
  for (int i = 0; i < 300; ++i) {
    silent.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(evictd::os::connect_to(silent.back().get(), agent.address().substr(std::strlen("unix:"))) == 0);
    if (i % 2 == 0) REQUIRE(::write(silent.back().get(), "GET / HTTP/1.1\r\n\r\n", 18) == 18);
  }
  CHECK(agent.status().passes() >= 1);
  silent.clear();
  testbed::wait_until("the connections are closed on the agent's side too", 60s,
                      [&] { return agent.open_files() <= before + 5; });
}

}  // namespace integration::streams_test
