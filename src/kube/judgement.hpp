#pragma once
#include <cstdint>
#include <string>

#include "kube/message.hpp"

namespace evictd::kube {

/// What an answer means for a report.
enum class Verdict : std::uint8_t {
  Done,
  NotFound,    ///< the object, or the namespace it should be made in, is gone
  AnotherPod,  ///< another pod has that name now
  Exists,      ///< what should be made is there: an earlier try, of which the answer was lost, made it
  Conflict,    ///< the object changed in between: read it again
  Unauthorized,
  Forbidden,
  Rejected,  ///< the request is wrong, and would be the next time
  Busy,      ///< the server cannot just now
};

struct Judgement {
  Verdict verdict = Verdict::Done;
  std::string message{};  ///< the server's words, where it does not say "done"
};

/// By the status code and, where that is not enough, by what the Status object in the body says:
/// - 409 AlreadyExists is Exists; any other 409 about a uid is AnotherPod (registry: "Precondition failed: UID in
///   precondition: …"); the rest are Conflict.
/// - 422 about metadata.uid alone is AnotherPod: that is how the API server refuses a patch that carries another uid
///   (ValidateObjectMetaUpdate: "field is immutable").
/// - 403 in a namespace that is being deleted is NotFound (cause NamespaceTerminating).
/// - 408, 429 and 5xx are Busy, and so is what would end a report without a Status in the body: a proxy in between said
///   it, which knows nothing of the object.
[[nodiscard]] Judgement judge(const Response& response);

}  // namespace evictd::kube
