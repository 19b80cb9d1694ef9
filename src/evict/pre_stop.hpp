#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <string>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pre_stop.hpp"
#include "cri/client.hpp"

namespace evictd::evict {

/// Where a hook belongs.
struct HookPlace {
  std::string container_id;
  std::string sandbox_id{};
  bool host_network = false;
};

/// Runs a container's hook: a command by ExecSync, a GET to the pod's address as its sandbox's status tells it, or a
/// sleep. A pod on the node's own network is asked at 127.0.0.1, where a kubelet 1.36 knows no address and gives up.
/// What the hook answers is dropped. Error: it could not be run, or its command failed; nothing is thrown. The runtime
/// is told to kill a command by `end`, and so it goes even if evictd is killed. Cancelling this breaks off the call or
/// the connection. (kubelet 1.36: lifecycle/handlers.go)
[[nodiscard]] boost::asio::awaitable<Result<void>> run_pre_stop(boost::asio::any_io_executor reactor,
                                                                cri::Client& runtime, core::PreStop hook,
                                                                HookPlace place, core::Instant end);

}  // namespace evictd::evict
