#pragma once
#include <evictd.pb.h>
#include <fmt/format.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "api/caller.hpp"
#include "core/duration.hpp"

namespace evictd::api {

/// Which refusals are told: one who may change nothing could otherwise fill the log and the history of events with
/// them, until nothing else is left there. On the reactor.
class Refusals {
 public:
  /// Whether the call is to be told of. What was done always is; that somebody may not do it is told once a minute for
  /// each account and call, and `audit` says then how many were not told since the last time.
  [[nodiscard]] bool is_told(const Caller& caller, const grpc::Status& outcome, core::Instant now, v1::Audit& audit) {
    if (outcome.error_code() != grpc::StatusCode::PERMISSION_DENIED) return true;
    auto key = std::pair(caller.account, audit.call());
    if (told_.size() >= most && !told_.contains(key)) {
      std::erase_if(told_, [&](const auto& entry) { return is_over(entry.second, now); });
      if (told_.size() >= most) key = {};  // of very many within a minute the rest count as one
    }
    const auto [found, is_new] = told_.try_emplace(std::move(key), Told{.at = now});
    auto& [at, untold] = found->second;
    if (!is_new && !is_over(found->second, now)) return ++untold, false;
    if (untold > 0) audit.set_outcome(fmt::format("{}, and {} more", audit.outcome(), untold));
    at = now;
    untold = 0;
    return true;
  }

 private:
  struct Told {
    core::Instant at;
    std::size_t untold = 0;  // since then
  };
  static constexpr std::size_t most = 256;

  static bool is_over(const Told& told, core::Instant now) { return now >= told.at + std::chrono::minutes(1); }

  std::map<std::pair<std::string, std::string>, Told> told_;  // by account and call
};

}  // namespace evictd::api
