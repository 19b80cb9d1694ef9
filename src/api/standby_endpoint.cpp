#include "api/standby_endpoint.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <latch>
#include <system_error>
#include <thread>
#include <utility>

#include "api/endpoint.hpp"
#include "rpc/server/grpc_end.hpp"

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
  inside_.add(connection.get());
  last_in_ = std::chrono::steady_clock::now();
  endpoint_->take(std::move(connection));
}

bool StandbyEndpoint::look_after() {
  if (!endpoint_) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!inside_.open().empty() || endpoint_->is_answering()) last_in_ = now;
  if (now - last_in_ < rest_) return true;
  std::unique_ptr<Endpoint> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::move(endpoint_);
  }
  ended->shutdown(std::chrono::system_clock::now() + time_to_end, inside_);
  return false;
}

void StandbyEndpoint::set_serving(bool serving) {
  const std::lock_guard lock(mutex_);
  serving_ = serving;
  if (endpoint_) endpoint_->set_serving(serving);
}

void StandbyEndpoint::shutdown(std::chrono::system_clock::time_point deadline) {
  if (endpoint_ == nullptr) return;
  endpoint_->shutdown(deadline, inside_);
  rpc::end_grpc(std::move(endpoint_));
}

}  // namespace evictd::api
