#pragma once
#include <grpcpp/support/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/admission_requests.hpp"
#include "api/caller.hpp"

namespace evictd::v1 {
class Audit;
class ThresholdSet;
class UpdateThresholdsRequest;
class UpdateThresholdsResponse;
}  // namespace evictd::v1

namespace evictd::api {

// What is told of a call that asks for a change. Before is what was so; after is what is so since, or, where the call
// was refused, what was asked for. Both are bounded, whatever a client sends: they are kept with the events.

/// `response`: null where the call was refused; then `now` says what is in force, if anybody knows (null: nobody).
[[nodiscard]] v1::Audit audit_thresholds(const Caller& caller, const grpc::Status& outcome,
                                         const v1::UpdateThresholdsRequest& request,
                                         const v1::UpdateThresholdsResponse* response, const v1::ThresholdSet* now);

/// `pods`: none where the caller may not ask. `answers`: one for each pod, or none where the call was refused.
[[nodiscard]] v1::Audit audit_admission(const Caller& caller, std::string_view call, const grpc::Status& outcome,
                                        const std::vector<AdmissionRequest>& pods,
                                        const std::vector<v1::AdmitResponse>& answers);

/// `name`: as the caller calls itself; "" where it was refused.
[[nodiscard]] v1::Audit audit_pre_kill(const Caller& caller, const grpc::Status& outcome, const std::string& name);

}  // namespace evictd::api
