#pragma once
#include <cstdint>
#include <expected>

#include "core/error.hpp"

namespace evictd::cri {

/// Why a call has no answer: what callers tell apart.
enum class Failure : std::uint8_t {
  NotFound,  ///< the runtime does not know the pod, container or image: for a stop or a removal that is as good as done
  Unavailable,       ///< the endpoint does not answer, or the connection broke before the answer, or the runtime starts
  DeadlineExceeded,  ///< the runtime took the call and has not answered in time; it may still carry it out
  Cancelled,         ///< by us: the coroutine was cancelled or the client destroyed
  Unimplemented,     ///< the runtime has no such call: it is older than the call
  Refused,           ///< the runtime answered with any other error
};

struct CallError {
  Failure failure;
  Error error;             ///< names call and endpoint; one line
  bool too_large = false;  ///< of Refused: the answer is larger than the runtime sends, or than we read
};

template <class T>
using Reply = std::expected<T, CallError>;

}  // namespace evictd::cri
