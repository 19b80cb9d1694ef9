#pragma once
#include <string>
#include <utility>
#include <vector>

#include "kube/model_server.hpp"
#include "kube/pod_reports.hpp"

namespace evictd::kube {

constexpr core::Instant at(core::Duration time) { return core::Instant{time}; }

inline Eviction eviction(const std::string& name) {
  return {.name_space = "default", .name = name, .uid = name + "-uid", .message = {"why. ", {}}, .time = WallTime{}};
}

/// A queue about pods and what it told, driven by hand.
struct Reports {
  ReportOptions options;
  std::vector<std::string> told;
  PodReports queue;

  explicit Reports(ReportOptions chosen = {})
      : options{std::move(chosen)},
        queue{options, [this](os::LogLevel, const std::string& line) { told.push_back(line); }} {
    options.node = "node-1";
  }

  /// "METHOD target" of what is due; "nothing".
  std::string next(core::Duration time) {
    const auto request = queue.next(at(time));
    return request ? request->method + " " + request->target : "nothing";
  }
  void answer(const Response& response, core::Duration time) {
    queue.answered(judge(response), response.body, at(time));
  }
  /// Sends all that is due, as far as the server lets it.
  void send(fixture::ModelServer& server, core::Duration time) {
    while (const auto request = queue.next(at(time))) {
      const auto response = server.handle(*request);
      queue.answered(judge(response), response.body, at(time));
    }
  }
};

inline const Response ok{.status = 200, .body = "{}"};
inline const Response not_found = fixture::refusal(404, "NotFound", "gone");
inline const Response forbidden = fixture::refusal(403, "Forbidden", "User \"evictd\" cannot do that");

}  // namespace evictd::kube
