#include "rpc/server/grpc_end.hpp"

#include <grpcpp/server.h>

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

namespace evictd::rpc {
namespace {

std::jthread cut_off(const OpenSockets& clients, std::chrono::system_clock::time_point time) {
  const auto wait = [&clients, time](const std::stop_token& over) {
    std::mutex mutex;
    std::unique_lock lock{mutex};
    std::condition_variable_any sleep;
    sleep.wait_until(lock, over, time, [] { return false; });
    if (!over.stop_requested()) clients.cut_off();
  };
  try {
    return std::jthread{wait};
  } catch (const std::system_error&) {
    return {};  // there are no threads: it takes what it takes
  }
}

}  // namespace

void shut_down(grpc::Server& server, const OpenSockets& clients, std::chrono::system_clock::time_point deadline) {
  constexpr std::chrono::milliseconds time_to_read{100};
  const auto cutting_off = cut_off(clients, deadline + time_to_read);
  server.Shutdown(deadline);
  server.Wait();
}

}  // namespace evictd::rpc
