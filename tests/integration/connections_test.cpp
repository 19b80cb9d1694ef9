#include <doctest/doctest.h>
#include <evictd.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

#include "evictctl.hpp"
#include "os/file_descriptor.hpp"
#include "os/unix_address.hpp"
#include "testbed/agent.hpp"
#include "testbed/wait.hpp"

namespace integration::connections_test {

using namespace std::chrono_literals;
using testbed::Agent;
using testbed::Testbed;

namespace {

const auto without_runtime =
    Testbed::Options{.node = {.memory_limit = 1 << 30}, .containerd = {}, .start_containerd = false};

const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct Footprint {
  std::size_t files = 0;
  std::size_t threads = 0;
  friend bool operator==(const Footprint&, const Footprint&) = default;
};

Footprint footprint(Agent& agent) {
  const auto tasks = std::filesystem::directory_iterator(fmt::format("/proc/{}/task", agent.process().pid()));
  return {.files = agent.open_files(), .threads = static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)))};
}

/// A connection that speaks no gRPC of its own.
class Peer {
 public:
  explicit Peer(const std::filesystem::path& socket) : fd_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    connected_ = evictd::os::connect_to(fd_.get(), socket.native()) == 0;
  }
  [[nodiscard]] bool connected() const { return connected_; }
  void say(const std::string& text) const {
    static_cast<void>(::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  [[nodiscard]] bool is_closed() const {
    pollfd look{.fd = fd_.get(), .events = POLLIN | POLLRDHUP, .revents = 0};
    return ::poll(&look, 1, 0) == 1 && (look.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
  }

 private:
  evictd::os::FileDescriptor fd_;
  bool connected_ = false;
};

using Peers = std::vector<std::unique_ptr<Peer>>;

std::size_t open_ones(const Peers& peers) {
  return static_cast<std::size_t>(std::ranges::count_if(peers, [](const auto& peer) { return !peer->is_closed(); }));
}

/// Many descriptors for this process, while it lasts.
class ManyFiles {
 public:
  ManyFiles() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    auto raised = before_;
    raised.rlim_cur = raised.rlim_max;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &raised) == 0);
    REQUIRE(raised.rlim_cur >= 4096);
  }
  ~ManyFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  ManyFiles(const ManyFiles&) = delete;
  ManyFiles& operator=(const ManyFiles&) = delete;

 private:
  rlimit before_{};
};

/// evictd with room for 16 subscribers, which makes 80 connections on a socket.
struct Guarded {
  explicit Guarded(const std::string& api = "subscribers: 16")
      : agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 100Mi}",
               .sections = fmt::format("api: {{{}}}\n", api),
               .wait_until_ready = false}} {}

  [[nodiscard]] std::filesystem::path socket() const { return testbed.directory() / "evictd.sock"; }
  /// A client of its own, as anybody would call.
  [[nodiscard]] bool answers() const {
    return integration::run_evictctl(testbed, {"--address", agent.address(), "status"}).code == 0;
  }

  Testbed testbed{without_runtime};
  Agent agent;
};

/// Calls, one after another, until it is told to stop.
class Calling {
 public:
  explicit Calling(const Agent& agent)
      : thread_([this, &agent] {
          while (!ended_) try {
              static_cast<void>(agent.status());
              ++answered_;
            } catch (const std::exception&) {
              ++failed_;
            }
        }) {}
  ~Calling() { end(); }
  void end() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] int answered() const { return answered_; }
  [[nodiscard]] int failed() const { return failed_; }

 private:
  std::atomic<bool> ended_ = false;
  std::atomic<int> answered_ = 0;
  std::atomic<int> failed_ = 0;
  std::thread thread_;
};

/// Once nothing changes any more.
Footprint at_rest(Guarded& guarded) {
  auto last = footprint(guarded.agent);
  testbed::wait_until("evictd is at rest", 60s, [&] {
    std::this_thread::sleep_for(300ms);
    const auto now = footprint(guarded.agent);
    return std::exchange(last, now) == now;
  });
  return last;
}

constexpr std::size_t room = 80;
constexpr std::size_t silent_room = 128;

}  // namespace

TEST_CASE("a message that is too large is refused, and the agent goes on") {
  Guarded guarded;
  const auto stub = evictd::v1::EvictionService::NewStub(
      grpc::CreateChannel("unix:" + guarded.socket().native(), grpc::InsecureChannelCredentials()));
  const auto ask = [&](std::size_t size) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + testbed::patient(60s));
    evictd::v1::AdmitRequest request;
    request.set_pod(std::string(size, 'x'));
    evictd::v1::AdmitResponse response;
    return stub->Admit(&context, request, &response);
  };
  const auto refused = ask(18 << 20);
  CHECK(refused.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(refused.error_message().find("larger than max") != std::string::npos);
  CHECK(ask(100).error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(guarded.answers());
}

TEST_CASE("thousands that connect and say nothing are dropped, and others are answered meanwhile") {
  const ManyFiles many_files;
  Guarded guarded;
  CHECK(guarded.answers());
  const auto before = at_rest(guarded).files;
  Peers peers;
  for (int i = 0; i < 3000; ++i) {
    peers.push_back(std::make_unique<Peer>(guarded.socket()));
    CHECK(peers.back()->connected());
    if (i % 1000 == 0) CHECK(guarded.answers());
  }
  testbed::wait_until("all but the last of them are dropped", 30s, [&] { return open_ones(peers) <= silent_room; });
  CHECK(guarded.agent.open_files() <= before + silent_room + 8);
  CHECK(guarded.answers());
  testbed::wait_until("the last of them are dropped", 60s, [&] { return open_ones(peers) == 0; });
  testbed::wait_until("nothing is left of them", 60s, [&] { return guarded.agent.open_files() <= before; });
}

TEST_CASE("what is no HTTP/2 is dropped") {
  Guarded guarded;
  CHECK(guarded.answers());
  const auto before = at_rest(guarded).files;
  Peers peers;
  for (const auto& text :
       {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string(100'000, '\0'), std::string("\x16\x03\x01\x02"),
        preface + "and then nonsense, which is no frame at all", preface + std::string(4096, '\xff')}) {
    peers.push_back(std::make_unique<Peer>(guarded.socket()));
    peers.back()->say(text);
  }
  testbed::wait_until("all are dropped", 60s, [&] { return open_ones(peers) == 0; });
  testbed::wait_until("nothing is left of them", 60s, [&] { return guarded.agent.open_files() <= before; });
  CHECK(guarded.answers());
}

TEST_CASE("who greets and then does nothing has a place only while there is room, and only for a while") {
  Guarded guarded;
  CHECK(guarded.answers());
  const auto before = at_rest(guarded).files;
  Peers peers;
  for (std::size_t i = 0; i < 3 * room; ++i) {
    peers.push_back(std::make_unique<Peer>(guarded.socket()));
    peers.back()->say(preface);
  }
  testbed::wait_until("no more than there is room for are let in", 30s, [&] { return open_ones(peers) <= room; });
  CHECK(guarded.agent.open_files() <= before + room);
  const auto refused = fmt::format("evictd.sock: {} connections are open: no more are taken", room);
  guarded.agent.process().wait_until_says(refused);
  // The administrators' socket has places of its own.
  const auto admin = (guarded.testbed.directory() / "admin.sock").native();
  CHECK(integration::run_evictctl(guarded.testbed, {"--address", admin, "status"}).code == 0);
  CHECK(guarded.agent.status().passes() > 0);  // who was inside before stays

  // A ping goes unanswered: half a minute, and ten seconds to answer.
  testbed::wait_until("they are dropped", 2min, [&] { return open_ones(peers) == 0; });
  testbed::wait_until("there is room again", 30s, [&] { return guarded.answers(); });
  testbed::wait_until("nothing is left of them", 60s, [&] { return guarded.agent.open_files() <= before; });
}

TEST_CASE("thousands of connects and disconnects leave nothing, and others are answered meanwhile") {
  Guarded guarded{"subscribers: 1024"};
  const auto come_and_go = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const Peer peer(guarded.socket());
      CHECK(peer.connected());
      switch (i % 4) {
        case 0: break;
        case 1: peer.say(preface); break;
        case 2: peer.say(preface + std::string("\0\0\0\x04\0\0\0\0\0", 9)); break;  // an empty SETTINGS frame
        case 3: peer.say("nonsense"); break;
        default: break;
      }
    }
  };
  // gRPC has more threads the busier it was, up to a bound. What leaks grows with every round.
  constexpr int rounds = 8;
  bool equal = false;
  for (int round = 0; round < rounds && !equal; ++round) {
    const auto before = at_rest(guarded);
    {
      const Calling calling(guarded.agent);
      come_and_go(2000);
      testbed::wait_until("others are answered meanwhile", 30s, [&] { return calling.answered() > 0; });
      CHECK(calling.failed() == 0);
    }
    CHECK(guarded.answers());
    equal = testbed::comes_true(20s, [&] { return footprint(guarded.agent) == before; });
    const auto after = footprint(guarded.agent);
    MESSAGE("files ", before.files, " and ", after.files, ", threads ", before.threads, " and ", after.threads);
  }
  CHECK(equal);
}

TEST_CASE("SIGTERM ends evictd at once, whoever is stuck in a connection") {
  Guarded guarded;
  Peers peers;
  for (int i = 0; i < 20; ++i) {
    peers.push_back(std::make_unique<Peer>(guarded.socket()));
    if (i % 2 == 0) peers.back()->say(preface);
    if (i % 4 == 1) peers.back()->say(preface.substr(0, 7));
  }
  // One that follows the events and takes none of them, since it stands still.
  auto follower =
      guarded.testbed.spawn({testbed::evictctl_program(), "--address", guarded.agent.address(), "events", "--follow"});
  testbed::wait_until("it follows", 30s, [&] { return guarded.agent.open_files() > 0 && follower.running(); });
  follower.signal(SIGSTOP);
  guarded.agent.process().signal(SIGTERM);
  CHECK(guarded.agent.process().wait(20s) == 0);
  testbed::wait_until("the connections are closed", 10s, [&] { return open_ones(peers) == 0; });
  CHECK_FALSE(std::filesystem::exists(guarded.socket()));
}

}  // namespace integration::connections_test
