#include "kube/judgement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <string_view>
#include <vector>

namespace evictd::kube {
namespace {

namespace json = boost::json;

struct Cause {
  std::string reason;
  std::string field;
};

/// metav1.Status, as far as it decides.
struct Status {
  std::string reason;
  std::string message;
  std::vector<Cause> causes;
};

std::string text_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  const auto* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

/// A proxy in between answers with anything: what is no Status has nothing in it.
Status parse_status(std::string_view body) {
  boost::system::error_code error;
  const auto value = json::parse(body, error);
  const auto* object = error ? nullptr : value.if_object();
  Status status;
  if (object == nullptr || text_of(*object, "kind") != "Status") return status;
  status.reason = text_of(*object, "reason");
  status.message = text_of(*object, "message");
  const auto* details = object->if_contains("details");
  if (details == nullptr || !details->is_object()) return status;
  const auto* causes = details->get_object().if_contains("causes");
  if (causes == nullptr || !causes->is_array()) return status;
  for (const auto& cause : causes->get_array())
    if (const auto* known = cause.if_object())
      status.causes.push_back({text_of(*known, "reason"), text_of(*known, "field")});
  return status;
}

bool is_about_uid(std::string_view message) {
  constexpr std::array<std::string_view, 2> phrases{"UID in precondition", "uid mismatch"};
  return std::ranges::any_of(phrases, [&](std::string_view phrase) { return message.contains(phrase); });
}

Verdict verdict_of(int code, const Status& status) {
  if (code >= 200 && code < 300) return Verdict::Done;
  switch (code) {
    case 401: return Verdict::Unauthorized;
    case 403: {
      const bool ending =
          std::ranges::any_of(status.causes, [](const Cause& cause) { return cause.reason == "NamespaceTerminating"; });
      return ending ? Verdict::NotFound : Verdict::Forbidden;
    }
    case 404:
    case 410: return Verdict::NotFound;
    case 409:
      if (status.reason == "AlreadyExists") return Verdict::Exists;
      return is_about_uid(status.message) ? Verdict::AnotherPod : Verdict::Conflict;
    case 422: {
      const bool other = !status.causes.empty() && std::ranges::all_of(status.causes, [](const Cause& cause) {
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
  const auto status = parse_status(response.body);
  const auto verdict = verdict_of(response.status, status);
  auto message = status.message.empty() ? fmt::format("status {}", response.status)
                                        : fmt::format("{} ({})", status.message, response.status);
  return {verdict, std::move(message)};
}

}  // namespace evictd::kube
