#include "kube/judgement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "kube/status_object.hpp"

namespace evictd::kube {
namespace {

bool is_about_uid(std::string_view message) {
  constexpr std::array<std::string_view, 2> phrases{"UID in precondition", "uid mismatch"};
  return std::ranges::any_of(phrases, [&](std::string_view phrase) { return message.contains(phrase); });
}

Verdict verdict_of(int code, const StatusObject& status) {
  if (code >= 200 && code < 300) return Verdict::Done;
  switch (code) {
    case 401: return Verdict::Unauthorized;
    case 403: {
      const bool ending = std::ranges::any_of(
          status.causes, [](const StatusCause& cause) { return cause.reason == "NamespaceTerminating"; });
      return ending ? Verdict::NotFound : Verdict::Forbidden;
    }
    case 404:
    case 410: return Verdict::NotFound;
    case 409:
      if (status.reason == "AlreadyExists") return Verdict::Exists;
      return is_about_uid(status.message) ? Verdict::AnotherPod : Verdict::Conflict;
    case 422: {
      const bool other = !status.causes.empty() && std::ranges::all_of(status.causes, [](const StatusCause& cause) {
        return cause.field == "metadata.uid";
      });
      return other ? Verdict::AnotherPod : Verdict::Rejected;
    }
    case 408:
    case 429: return Verdict::Busy;
    default: return code >= 500 ? Verdict::Busy : Verdict::Rejected;
  }
}

}  // namespace

Judgement judge(const Response& response) {
  if (response.is_success()) return {};
  const auto given = parse_status(response.body);
  const auto status = given.value_or(StatusObject{});
  auto verdict = verdict_of(response.status, status);
  if (!given && (verdict == Verdict::NotFound || verdict == Verdict::Rejected)) verdict = Verdict::Busy;
  auto message = status.message.empty() ? fmt::format("status {}", response.status)
                                        : fmt::format("{} ({})", status.message, response.status);
  return {verdict, std::move(message)};
}

}  // namespace evictd::kube
