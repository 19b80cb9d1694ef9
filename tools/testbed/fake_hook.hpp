#pragma once
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "os/file_descriptor.hpp"
#include "os/unix_address.hpp"

namespace testbed {

/// Listens at a unix socket on a thread of its own, as a hook of systemd-oomd does, and does with each call what it
/// was made for. One connection at a time.
class FakeHook {
 public:
  /// On the hook's thread, while the connection is open; `call` is without its end.
  using Does = std::function<void(FakeHook& hook, int connection, const std::string& call)>;

  FakeHook(const std::filesystem::path& path, Does does) : does_{std::move(does)} {
    if (evictd::os::bind_to(listener_.get(), path.native()) != 0 || ::listen(listener_.get(), 16) != 0)
      throw std::runtime_error("cannot listen at " + path.native());
    thread_ = std::thread([this] { serve(); });
  }
  FakeHook(const FakeHook&) = delete;
  FakeHook& operator=(const FakeHook&) = delete;
  ~FakeHook() {
    stopping_ = true;
    thread_.join();
  }

  /// What it was called with so far.
  [[nodiscard]] std::vector<std::string> calls() const {
    const std::lock_guard lock{mutex_};
    return calls_;
  }

  /// False: the other side is gone.
  static bool send(int connection, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// An answer, with its end.
  static bool answer(int connection, std::string message) { return send(connection, message + '\0'); }

  /// Until the other side is gone, or the hook is to end; what it sends is dropped.
  void hold(int connection) const {
    char dropped[256];
    while (wait_for(connection))
      if (::recv(connection, dropped, sizeof dropped, 0) <= 0) return;
  }
  /// Sends a byte at a time for as long as somebody is there.
  void trickle(int connection) const {
    while (!stopping_ && send(connection, "x")) std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  /// Sends without end for as long as somebody is there.
  void pour(int connection) const {
    const std::string much(std::size_t{16} << 10, 'x');
    pollfd writable{.fd = connection, .events = POLLOUT, .revents = 0};
    while (!stopping_) {
      if (::poll(&writable, 1, 10) == 0) continue;
      if (::send(connection, much.data(), much.size(), MSG_NOSIGNAL | MSG_DONTWAIT) <= 0) return;
    }
  }

 private:
  /// False: it is to end.
  bool wait_for(int descriptor) const {
    pollfd readable{.fd = descriptor, .events = POLLIN, .revents = 0};
    while (!stopping_)
      if (::poll(&readable, 1, 10) > 0) return true;
    return false;
  }
  void serve() {
    while (wait_for(listener_.get())) {
      const evictd::os::FileDescriptor connection{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
      if (connection) serve(connection.get());
    }
  }
  /// Calls come one after the other.
  void serve(int connection) {
    std::string received;
    char byte = 0;
    while (wait_for(connection) && ::recv(connection, &byte, 1, 0) == 1) {
      if (byte != '\0') {
        received += byte;
        continue;
      }
      {
        const std::lock_guard lock{mutex_};
        calls_.push_back(received);
      }
      does_(*this, connection, std::exchange(received, ""));
    }
  }

  Does does_;
  evictd::os::FileDescriptor listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
  std::thread thread_;
};

/// What hooks may do.
namespace hook_does {

inline void done(FakeHook& /*hook*/, int connection, const std::string& /*call*/) {
  FakeHook::answer(connection, R"({"parameters":{}})");
}
inline void hang(FakeHook& hook, int connection, const std::string& /*call*/) { hook.hold(connection); }
inline void leave(FakeHook& /*hook*/, int connection, const std::string& /*call*/) {
  ::shutdown(connection, SHUT_RDWR);
}

}  // namespace hook_does

}  // namespace testbed
