#pragma once
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <string>

#include "api/admission_requests.hpp"
#include "events/status_source.hpp"

namespace evictd::v1 {
class Audit;
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

/// Of one UpdateThresholds: to each of 16 signals' hard and soft threshold two.
inline constexpr std::size_t most_threshold_changes = 64;

/// Answers GetThresholds, UpdateThresholds and SuggestThresholds.
class ThresholdHandler {
 public:
  [[nodiscard]] virtual v1::ThresholdSet thresholds() = 0;
  /// Answers by calling `done` on the reactor, once: a drop-in is written before that.
  using UpdateDone = std::move_only_function<void(Answer<v1::UpdateThresholdsResponse>)>;
  virtual void update_thresholds(const v1::UpdateThresholdsRequest& request, UpdateDone done) = 0;
  [[nodiscard]] virtual Answer<v1::SuggestThresholdsResponse> suggest_thresholds() = 0;

 protected:
  ~ThresholdHandler() = default;
};

/// Answers RankPods.
class RankHandler {
 public:
  [[nodiscard]] virtual Answer<v1::RankPodsResponse> rank_pods(const v1::RankPodsRequest& request) = 0;

 protected:
  ~RankHandler() = default;
};

/// Told of every call that asks for a change, once it is answered or refused, but for those that EvictionService
/// refuses before the reactor has them.
class Auditor {
 public:
  virtual void audit(const v1::Audit& audit) = 0;

 protected:
  ~Auditor() = default;
};

class PreKillAgents;

/// Who answers the calls, each on the reactor; all outlive the server. A call whose handler is null is UNIMPLEMENTED,
/// but for PreKill, which is FAILED_PRECONDITION.
struct Handlers {
  events::StatusSource& status;
  Admitter* admitter = nullptr;
  ThresholdHandler* thresholds = nullptr;
  RankHandler* ranking = nullptr;
  Auditor* auditor = nullptr;
  PreKillAgents* pre_kill = nullptr;
};

}  // namespace evictd::api
