#include "api/standby_endpoint.hpp"

#include <utility>

#include "api/endpoint.hpp"

namespace evictd::api {
namespace {

/// For what a connection that is gone may have left behind.
constexpr std::chrono::milliseconds time_to_end{500};

}  // namespace

StandbyEndpoint::StandbyEndpoint(Make make, std::chrono::milliseconds rest) : make_(std::move(make)), rest_(rest) {}

StandbyEndpoint::~StandbyEndpoint() = default;

void StandbyEndpoint::take(os::FileDescriptor connection) {
  // Only this thread puts one there or takes it away, so it may be looked at; others see it once it serves.
  if (!endpoint_) {
    auto made = make_();
    const std::lock_guard lock(mutex_);
    made->set_serving(serving_);
    endpoint_ = std::move(made);
  }
  if (const auto open = OpenSocket::look(connection.get())) inside_.push_back(*open);
  last_in_ = std::chrono::steady_clock::now();
  endpoint_->take(std::move(connection));
}

bool StandbyEndpoint::look_after() {
  if (!endpoint_) return false;
  std::erase_if(inside_, [](const OpenSocket& socket) { return !socket.is_open(); });
  const auto now = std::chrono::steady_clock::now();
  if (!inside_.empty() || endpoint_->is_answering()) last_in_ = now;
  if (now - last_in_ < rest_) return true;
  std::unique_ptr<Endpoint> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::move(endpoint_);
  }
  ended->shutdown(std::chrono::system_clock::now() + time_to_end);
  return false;
}

void StandbyEndpoint::set_serving(bool serving) {
  const std::lock_guard lock(mutex_);
  serving_ = serving;
  if (endpoint_) endpoint_->set_serving(serving);
}

void StandbyEndpoint::shutdown(std::chrono::system_clock::time_point deadline) {
  if (const auto ended = std::exchange(endpoint_, nullptr)) ended->shutdown(deadline);
}

}  // namespace evictd::api
