#include "api/pressure_socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <list>
#include <string_view>
#include <system_error>
#include <utility>

#include "os/file_descriptor.hpp"
#include "os/unix_socket.hpp"
#include "pods/cgroup_name.hpp"

namespace asio = boost::asio;

namespace evictd::api {
namespace {

using namespace std::chrono_literals;
using PressureDescriptor = asio::posix::stream_descriptor;

/// Taking one costs some 50 µs in all, so one who connects again and again costs less than a hundredth of a processor.
constexpr int taken_at_once = 16;
constexpr auto between_takes = 100ms;
/// A program says once what it has in $MEMORY_PRESSURE_WRITE, some bytes.
constexpr int most_reads = 8;

int pid_of_peer(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

/// The uid of the first part of the path that is a pod's cgroup: what a pod makes below has names of its own choice.
std::string pod_in_path(std::string_view path) {
  while (!path.empty()) {
    const auto slash = path.find('/');
    if (auto uid = pods::uid_in_cgroup_name(path.substr(0, slash))) return *std::move(uid);
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return {};
}

/// So that a stream descriptor owns it; nothing where epoll has no room.
bool give_to(PressureDescriptor& target, os::FileDescriptor& descriptor) {
  boost::system::error_code error;
  target.assign(descriptor.get(), error);
  if (!error) descriptor.release();
  return !error;
}

}  // namespace

std::string peer_of(const std::string& proc, int pid) {
  if (pid <= 0) return {};
  std::ifstream file(fmt::format("{}/{}/cgroup", proc, pid));
  std::string own;
  constexpr int most_lines = 32;  // v1 has one for each controller
  std::string line;
  for (int count = 0; count < most_lines && std::getline(file, line); ++count) {
    const auto colon = line.find(':', line.find(':') + 1);
    if (line.find(':') == std::string::npos || colon == std::string::npos) continue;
    const auto path = line.substr(colon + 1);
    if (auto pod = pod_in_path(path); !pod.empty()) return pod;
    own = std::max(own, path.substr(0, 256));
  }
  return own;
}

struct PressureSocket::State : std::enable_shared_from_this<State> {
  struct Connection {
    explicit Connection(const asio::any_io_executor& reactor) : socket{reactor} {}
    PressureDescriptor socket;
    std::string peer;
    int reads_left = most_reads;
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

  State(const asio::any_io_executor& executor, async::Worker& side, Options given, os::ListeningSocket at)
      : reactor{executor},
        worker{side},
        options{std::move(given)},
        place{std::move(at)},
        listener{executor},
        pause{executor} {}

  void listen() {
    listener.async_wait(PressureDescriptor::wait_read, [weak = weak_from_this()](boost::system::error_code error) {
      if (const auto self = weak.lock(); self && !error) self->take();
    });
  }

  /// Some of those that wait, and then none for a while: also where no descriptor is left for them.
  void take() {
    for (int count = 0; count < taken_at_once; ++count) {
      os::FileDescriptor connection{
          ::accept4(listener.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
      if (!connection) break;
      look_at(std::move(connection));
    }
    pause.expires_after(between_takes);
    pause.async_wait([weak = weak_from_this()](boost::system::error_code error) {
      if (const auto self = weak.lock(); self && !error) self->listen();
    });
  }

  void look_at(os::FileDescriptor connection) {
    if (connections.size() + looked_at >= options.connections) return;
    const auto peer = std::make_shared<std::string>();
    ++looked_at;
    worker.run([peer, proc = options.proc, pid = pid_of_peer(connection.get())] { *peer = peer_of(proc, pid); },
               [peer, weak = weak_from_this(), connection = std::move(connection)]() mutable {
                 if (const auto self = weak.lock()) self->admit(std::move(connection), *std::move(peer));
               });
  }

  void admit(os::FileDescriptor descriptor, std::string peer) {
    --looked_at;
    const auto of_peer =
        std::ranges::count_if(connections, [&](const ConnectionPtr& connection) { return connection->peer == peer; });
    if (static_cast<std::size_t>(of_peer) >= options.of_one_pod) return;
    const auto connection = std::make_shared<Connection>(reactor);
    if (!give_to(connection->socket, descriptor)) return;
    connection->peer = std::move(peer);
    connections.push_back(connection);
    hear(connection);
  }

  void hear(const ConnectionPtr& connection) {
    connection->socket.async_wait(
        PressureDescriptor::wait_read,
        [weak = weak_from_this(), heard = std::weak_ptr(connection)](boost::system::error_code error) {
          const auto self = weak.lock();
          const auto there = heard.lock();
          if (self && there && !error) self->forget_what_came(there);
        });
  }

  void forget_what_came(const ConnectionPtr& connection) {
    std::array<char, 4096> said;
    const auto size = ::recv(connection->socket.native_handle(), said.data(), said.size(), MSG_DONTWAIT);
    const bool goes_on = size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
    if (goes_on && --connection->reads_left > 0) return hear(connection);
    connections.remove(connection);
  }

  std::size_t tell() {
    std::size_t told = 0;
    for (auto each = connections.begin(); each != connections.end();) {
      constexpr char word = '\n';
      const bool sent = ::send((*each)->socket.native_handle(), &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
      told += sent ? 1 : 0;
      each = sent ? std::next(each) : connections.erase(each);
    }
    return told;
  }

  asio::any_io_executor reactor;
  async::Worker& worker;
  Options options;
  os::ListeningSocket place;
  PressureDescriptor listener;
  asio::steady_timer pause;
  std::list<ConnectionPtr> connections;
  std::size_t looked_at = 0;  // not among the connections yet
};

Result<std::unique_ptr<PressureSocket>> PressureSocket::open(const asio::any_io_executor& reactor,
                                                             async::Worker& worker, Options options) {
  if (auto made = os::make_directory_of(options.path); !made) return std::unexpected(made.error());
  const auto directory = std::filesystem::path(options.path).parent_path();
  std::error_code error;
  std::filesystem::permissions(directory, std::filesystem::perms{0755}, error);
  if (error) return fail(fmt::format("{}: cannot set its mode: {}", directory.native(), error.message()));
  auto place = os::ListeningSocket::open(options.path);
  if (!place) return std::unexpected(place.error());
  auto socket = place->take();
  if (auto open = os::admit_to_socket(options.path, "", 0666); !open) return std::unexpected(open.error());
  auto state = std::make_shared<State>(reactor, worker, std::move(options), *std::move(place));
  if (!give_to(state->listener, socket)) return fail("the memory pressure socket: no room for it in epoll");
  state->listen();
  return std::unique_ptr<PressureSocket>(new PressureSocket(std::move(state)));
}

PressureSocket::PressureSocket(std::shared_ptr<State> state) : state_{std::move(state)} {}
PressureSocket::~PressureSocket() = default;

std::size_t PressureSocket::tell() { return state_->tell(); }
std::size_t PressureSocket::connected() const { return state_->connections.size(); }

}  // namespace evictd::api
