#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace evictd::proxy {

/// What becomes of a pod where it is not known whether it may run.
enum class Undecided : std::uint8_t { Admit, Reject };

struct GateOptions {
  std::string agent_socket;  ///< admin.sock
  Undecided undecided = Undecided::Admit;
  std::chrono::milliseconds timeout{2000};  ///< how long the agent may be silent
  std::string pressure_socket{};            ///< on which the agent says that memory is short; "": it does not
  /// Given a line for the log when the agent stops to decide, and when it does so again. On a thread of gRPC.
  std::function<void(const std::string&)> warn{};
};

struct ServerOptions {
  std::string socket;   ///< cri.sock: at most 107 bytes; its directory must exist
  std::string runtime;  ///< "unix:///PATH" of the container runtime
  GateOptions gate;
};

}  // namespace evictd::proxy
