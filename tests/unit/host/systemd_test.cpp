#include "host/systemd.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "fixture/tree.hpp"

using namespace std::chrono_literals;

namespace evictd::host::systemd_test {
namespace {

/// systemd's end of the socket, at a path or at an abstract name ("@…"). It reads when it is asked to.
class Listener {
 public:
  explicit Listener(const std::string& address) : socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)} {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    address.copy(name.sun_path, sizeof name.sun_path - 1);
    if (address.starts_with('@')) name.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
    REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&name), size) == 0);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() {
    ::close(socket_);
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  /// The next message, where there is one.
  std::optional<std::string> read() {
    std::array<char, 4096> text{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{.iov_base = text.data(), .iov_len = text.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const auto size = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0) return std::nullopt;
    if (const auto* header = CMSG_FIRSTHDR(&message); header != nullptr)
      std::memcpy(&descriptor_, CMSG_DATA(header), sizeof descriptor_);
    return std::string(text.data(), static_cast<std::size_t>(size));
  }
  std::vector<std::string> read_all() {
    std::vector<std::string> messages;
    while (auto message = read()) messages.push_back(*std::move(message));
    return messages;
  }
  /// The last descriptor that came.
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int socket_;
  int descriptor_ = -1;
};

struct Scene {
  fixture::Tree tree;
  std::string address = (tree.path() / "notify").native();
  Listener systemd{address};
  Notifications notifications{*NotifySocket::open(address)};
  core::Instant now{1h};

  std::optional<core::Instant> flush_after(core::Duration time) { return notifications.flush(now += time); }

  /// All that other services have sent, and systemd has not read.
  void fill_queue() {
    const auto others = *NotifySocket::open(address);
    while (others.send("STATUS=of somebody else") == NotifySocket::Sent::Yes) {
    }
  }
};

using Messages = std::vector<std::string>;

}  // namespace

TEST_CASE("systemd is told at a path and at an abstract name; an address of another kind is refused with a word") {
  const auto abstract = fmt::format("@evictd-test-{}", ::getpid());
  Listener systemd{abstract};
  CHECK(NotifySocket::open(abstract)->send("READY=1") == NotifySocket::Sent::Yes);
  CHECK(systemd.read() == "READY=1");
  CHECK(NotifySocket::open("vsock:2:1234").error().message ==
        "\"vsock:2:1234\" is neither a path nor an abstract socket: systemd is told nothing");
  CHECK_FALSE(NotifySocket::open("/" + std::string(200, 'x')).has_value());
  CHECK(NotifySocket::open("/nowhere/notify")->send("READY=1") == NotifySocket::Sent::No);
}

TEST_CASE("a status goes at once, the next ones a second later, and of those the newest only") {
  Scene scene;
  scene.notifications.status("one");
  CHECK_FALSE(scene.flush_after(0s).has_value());
  CHECK(scene.systemd.read_all() == Messages{"STATUS=one"});
  scene.notifications.status("two");
  auto again = scene.flush_after(100ms);
  CHECK(again == scene.now + 900ms);
  scene.notifications.status("three");
  again = scene.flush_after(100ms);
  CHECK(again == scene.now + 800ms);
  CHECK(scene.systemd.read_all().empty());
  CHECK_FALSE(scene.flush_after(800ms).has_value());
  CHECK(scene.systemd.read_all() == Messages{"STATUS=three"});
}

TEST_CASE("a systemd that does not read gets one status, and room is left for what matters") {
  Scene scene;
  for (int i = 0; i < 100; ++i) {
    scene.notifications.status(fmt::format("{}", i));
    scene.flush_after(1s);
  }
  scene.notifications.tell("READY=1");
  scene.notifications.watchdog();
  CHECK(scene.flush_after(0s).has_value());  // the newest status waits
  CHECK(scene.systemd.read_all() == Messages{"STATUS=0", "WATCHDOG=1", "READY=1"});
  CHECK_FALSE(scene.flush_after(1s).has_value());
  CHECK(scene.systemd.read_all() == Messages{"STATUS=99"});
}

TEST_CASE("a watchdog message that was not read yet is not sent again, and after it was, the next one is") {
  Scene scene;
  for (int i = 0; i < 100; ++i) {
    scene.notifications.watchdog();
    CHECK_FALSE(scene.flush_after(1s).has_value());
  }
  CHECK(scene.systemd.read_all() == Messages{"WATCHDOG=1"});
  scene.notifications.watchdog();
  scene.flush_after(1s);
  CHECK(scene.systemd.read_all() == Messages{"WATCHDOG=1"});
}

TEST_CASE("a queue that others have filled delays what matters, loses none of it, and lets the watchdog go first") {
  Scene scene;
  scene.fill_queue();
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  struct stat stored{};
  REQUIRE(::fstat(file, &stored) == 0);
  scene.notifications.status("now");
  scene.notifications.tell("READY=1");
  scene.notifications.store("state", file);
  scene.notifications.store("state", file);  // takes the place of the first
  ::close(file);
  auto again = scene.flush_after(0s);
  CHECK(again == scene.now + Notifications::retry_interval);
  scene.notifications.watchdog();
  again = scene.flush_after(0s);
  CHECK(again == scene.now + Notifications::retry_interval);
  REQUIRE(scene.systemd.read().has_value());
  CHECK(scene.flush_after(100ms).has_value());  // room for one
  auto messages = scene.systemd.read_all();
  CHECK(messages.back() == "WATCHDOG=1");
  scene.flush_after(100ms);
  CHECK(scene.systemd.read_all() == Messages{"READY=1", "FDSTOREREMOVE=1\nFDNAME=state", "FDSTORE=1\nFDNAME=state"});
  struct stat received{};
  REQUIRE(::fstat(scene.systemd.descriptor(), &received) == 0);
  CHECK(received.st_rdev == stored.st_rdev);
  scene.flush_after(1s);
  CHECK(scene.systemd.read_all() == Messages{"STATUS=now"});
}

TEST_CASE("a descriptor that is taken back before systemd heard of it is not sent") {
  Scene scene;
  scene.fill_queue();
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  scene.notifications.store("lock", file);
  ::close(file);
  scene.flush_after(0s);
  scene.notifications.forget("lock");
  scene.systemd.read_all();
  scene.flush_after(0s);
  CHECK(scene.systemd.read_all() == Messages{"FDSTOREREMOVE=1\nFDNAME=lock"});
}

TEST_CASE("without a systemd nothing waits to be sent, and no copy of a descriptor is made") {
  Notifications notifications{std::nullopt};
  notifications.status("fine");
  notifications.tell("READY=1");
  notifications.watchdog();
  notifications.forget("lock");
  CHECK_FALSE(notifications.flush(core::Instant{}).has_value());

  std::array<int, 2> pipe{};
  REQUIRE(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) == 0);
  notifications.store("lock", pipe[1]);
  ::close(pipe[1]);
  char byte = 0;
  CHECK(::read(pipe[0], &byte, 1) == 0);  // the end: nobody has the other side any more
  ::close(pipe[0]);
}

TEST_CASE("the reactor goes on while systemd does not read, and tells it the newest state once it does") {
  Scene scene;
  scene.fill_queue();
  boost::asio::io_context reactor{1};
  ServiceManager service{reactor.get_executor(), scene.notifications};
  service.ready();
  for (int i = 0; i < 1000; ++i) service.status(fmt::format("pass {}", i));
  reactor.run_for(50ms);
  scene.systemd.read_all();
  Messages messages;
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (messages.size() < 2 && std::chrono::steady_clock::now() < end) {
    reactor.run_for(10ms);
    std::ranges::move(scene.systemd.read_all(), std::back_inserter(messages));
  }
  CHECK(messages == Messages{"READY=1", "STATUS=pass 999"});
}

}  // namespace evictd::host::systemd_test
