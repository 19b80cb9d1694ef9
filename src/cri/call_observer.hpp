#pragma once
#include <string_view>

#include "core/duration.hpp"

namespace evictd::cri {

/// A call that was answered, or was given up.
struct ObservedCall {
  std::string_view method;  ///< "StopContainer"; as all that is text here, it stays for good
  std::string_view code;    ///< gRPC's name of the status: "OK", "DEADLINE_EXCEEDED", …
  core::Duration time{};    ///< from the call until the reactor had its answer
};

/// Told of every call. On the reactor, before the caller goes on: a kill may wait for it, so it must be quick.
class CallObserver {
 public:
  virtual void called(const ObservedCall& call) = 0;

 protected:
  ~CallObserver() = default;
};

}  // namespace evictd::cri
