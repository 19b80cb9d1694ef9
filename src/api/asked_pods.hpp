#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::v1 {
class AdmitRequest;
class AdmitBatchRequest;
class AdmitResponse;
}  // namespace evictd::v1

namespace evictd::api {

/// A pod of which it is asked whether it may run.
struct AskedPod {
  core::Pod pod;
  bool from_runtime = false;  ///< it is as a client of the runtime tells it: a better spec may be known
};

/// Pods of one request: the reactor answers all of them in one turn, in which nothing else is done. 256 beside 110
/// others take some 20 ms.
inline constexpr std::size_t most_asked_pods = 256;

/// The pods that a request asks about, at least one. An error is for the client, as INVALID_ARGUMENT. Big texts take
/// up to a second: not on the reactor. `memory_capacity`: the node's, in bytes, > 0.
[[nodiscard]] Result<std::vector<AskedPod>> read_asked_pods(const v1::AdmitRequest& request,
                                                            std::int64_t memory_capacity);
[[nodiscard]] Result<std::vector<AskedPod>> read_asked_pods(const v1::AdmitBatchRequest& request);

/// Who answers on the reactor, one for each pod; each beside those before it that were admitted. An error is
/// FAILED_PRECONDITION.
struct Admitter {
  std::int64_t memory_capacity = 0;  ///< the node's, in bytes, > 0
  std::function<Result<std::vector<v1::AdmitResponse>>(const std::vector<AskedPod>& pods, bool reserve)> admit;
};

}  // namespace evictd::api
