#pragma once
#include <cstdint>
#include <expected>
#include <functional>
#include <string>

#include "api/admission_requests.hpp"

namespace evictd::v1 {
class Audit;
class NodeStatus;
class RankPodsRequest;
class RankPodsResponse;
class SuggestThresholdsResponse;
class ThresholdSet;
class UpdateThresholdsRequest;
class UpdateThresholdsResponse;
}  // namespace evictd::v1

namespace evictd::api {

/// Why a call was refused; the names are those of gRPC's status codes.
enum class RefusalCode : std::uint8_t { InvalidArgument, FailedPrecondition, Aborted, DeadlineExceeded, Internal };

struct Refusal {
  RefusalCode code = RefusalCode::Internal;
  std::string message;  ///< one line for the operator
};

template <class T>
using Answer = std::expected<T, Refusal>;

/// Who answers the calls: each is called on the reactor. A call whose handler is empty is UNIMPLEMENTED.
struct Handlers {
  std::function<v1::NodeStatus()> status;
  Admitter admitter{};
  std::function<v1::ThresholdSet()> thresholds{};
  /// Answers by calling `done` on the reactor, once: a drop-in is written before that.
  using UpdateDone = std::function<void(Answer<v1::UpdateThresholdsResponse>)>;
  std::function<void(const v1::UpdateThresholdsRequest&, UpdateDone done)> update_thresholds{};
  std::function<Answer<v1::SuggestThresholdsResponse>()> suggest_thresholds{};
  std::function<Answer<v1::RankPodsResponse>(const v1::RankPodsRequest&)> rank_pods{};
  /// Told of every call that asks for a change, once it is answered or refused.
  std::function<void(const v1::Audit&)> audit{};
};

}  // namespace evictd::api
