#include "api/standby_endpoint.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <latch>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "api/endpoint.hpp"
#include "api/grpc_end.hpp"

namespace evictd::api {
namespace {

/// For what a connection that is gone may have left behind.
constexpr std::chrono::milliseconds time_to_end{500};

/// gRPC ends the process where it cannot have one of the eight threads of a server, or one of its descriptors (1.51:
/// thread_manager.cc, statusor.cc), and a node may be short of either. So there must be some more than it takes. Throws
/// std::system_error where there are not.
void find_room_for_a_server() {
  constexpr std::size_t wanted = 24;
  std::vector<os::FileDescriptor> descriptors(wanted);
  for (auto& descriptor : descriptors) {
    descriptor.reset(::eventfd(0, EFD_CLOEXEC));
    if (!descriptor) throw std::system_error(errno, std::generic_category(), "no descriptors for a server");
  }
  std::latch all_there{1};
  std::vector<std::jthread> threads;  // joined once the latch is open
  threads.reserve(wanted);
  try {
    while (threads.size() < wanted) threads.emplace_back([&all_there] { all_there.wait(); });
  } catch (...) {
    all_there.count_down();
    throw;
  }
  all_there.count_down();
}

/// Cuts off who is inside still a moment after the deadline. By then every call has ended, but gRPC goes on waiting
/// for a client that does not read the last of what it asked for (server_cc.cc, Server::ShutdownInternal).
std::jthread cut_off_late(const std::vector<OpenSocket>& inside, std::chrono::system_clock::time_point deadline) {
  constexpr std::chrono::milliseconds time_to_read{100};
  const auto wait = [&inside, late = deadline + time_to_read](const std::stop_token& over) {
    std::mutex mutex;
    std::unique_lock lock{mutex};
    std::condition_variable_any sleep;
    sleep.wait_until(lock, over, late, [] { return false; });
    if (over.stop_requested()) return;
    for (const auto& socket : inside) socket.cut_off();
  };
  try {
    return std::jthread{wait};
  } catch (const std::system_error&) {
    return {};  // there are no threads: it takes what it takes
  }
}

}  // namespace

StandbyEndpoint::StandbyEndpoint(Make make, std::chrono::milliseconds rest) : make_(std::move(make)), rest_(rest) {}

StandbyEndpoint::~StandbyEndpoint() = default;

void StandbyEndpoint::take(os::FileDescriptor connection) {
  // Only this thread puts one there or takes it away, so it may be looked at; others see it once it serves.
  if (!endpoint_) {
    find_room_for_a_server();
    auto made = make_();
    const std::lock_guard lock(mutex_);
    made->set_serving(serving_);
    endpoint_ = std::move(made);
  }
  if (inside_.size() >= most_unseen_) forget_who_left();
  if (const auto open = OpenSocket::look(connection.get())) inside_.push_back(*open);
  last_in_ = std::chrono::steady_clock::now();
  endpoint_->take(std::move(connection));
}

bool StandbyEndpoint::look_after() {
  if (!endpoint_) return false;
  forget_who_left();
  const auto now = std::chrono::steady_clock::now();
  if (!inside_.empty() || endpoint_->is_answering()) last_in_ = now;
  if (now - last_in_ < rest_) return true;
  std::unique_ptr<Endpoint> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::move(endpoint_);
  }
  ended->shutdown(std::chrono::system_clock::now() + time_to_end);
  inside_ = {};
  return false;
}

void StandbyEndpoint::forget_who_left() {
  std::erase_if(inside_, [](const OpenSocket& socket) { return !socket.is_open(); });
  most_unseen_ = std::max(most_unseen_at_first, 2 * inside_.size());
}

void StandbyEndpoint::set_serving(bool serving) {
  const std::lock_guard lock(mutex_);
  serving_ = serving;
  if (endpoint_) endpoint_->set_serving(serving);
}

void StandbyEndpoint::shutdown(std::chrono::system_clock::time_point deadline) {
  if (endpoint_ == nullptr) return;
  {
    const auto cutting_off = cut_off_late(inside_, deadline);
    endpoint_->shutdown(deadline);
  }
  end_grpc(std::move(endpoint_));
}

}  // namespace evictd::api
