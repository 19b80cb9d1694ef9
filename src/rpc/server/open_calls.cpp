#include "rpc/server/open_calls.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "core/printable.hpp"
#include "os/log.hpp"

namespace evictd::rpc {

bool OpenCalls::add(const std::shared_ptr<OpenCall>& call) {
  const std::lock_guard lock(mutex_);
  calls_.emplace(call.get(), call);
  return !closed_;
}

void OpenCalls::remove(const OpenCall* call) {
  std::shared_ptr<OpenCall> last_owner;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  last_owner = std::move(found->second);
  calls_.erase(found);
}

void OpenCalls::abort_all(const grpc::Status& status) {
  std::vector<std::shared_ptr<OpenCall>> open;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [key, call] : calls_) open.push_back(call);
  }
  for (const auto& call : open) call->abort(status);  // without the lock: finishing a call may end in `remove`
}

grpc::Status shutting_down() { return {grpc::StatusCode::UNAVAILABLE, "evictd shuts down"}; }

grpc::Status presentable(const grpc::Status& status) {
  constexpr std::size_t longest = 1024;
  return {status.error_code(), core::excerpt(status.error_message(), longest)};
}

grpc::Status given_up(const std::string& reason) {
  static core::Instant next{};
  const auto now = std::chrono::steady_clock::now();
  if (now >= next) {
    next = now + std::chrono::minutes(1);
    os::log_warning("api: a call was given up: {}", reason);
  }
  return {grpc::StatusCode::INTERNAL, "evictd could not answer this: its log says why"};
}

}  // namespace evictd::rpc
