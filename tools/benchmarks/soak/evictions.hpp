#pragma once
#include <evictd.pb.h>

#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/soak/findings.hpp"

namespace bench::soak {

/// One eviction, as the events tell it.
struct Eviction {
  std::string pod;  ///< "default/hog-1"
  std::string uid;
  int intended = 0;  ///< how often the event came, as all that follows
  int killed = 0;
  int released = 0;
  int cleaned = 0;
  int failed_steps = 0;  ///< the runtime did not answer, say, and the eviction went on without it
  bool timed_out = false;
  std::optional<double> kill_ms{};  ///< from the wake-up on
  std::string story{};              ///< what was told, for people
};

/// What a stream of all events says of evictions. From any thread.
class Evictions {
 public:
  void read(const evictd::v1::Event& event);

  /// Of the pod with this uid, the latest.
  [[nodiscard]] std::optional<Eviction> of(const std::string& uid) const;
  [[nodiscard]] std::vector<Eviction> all() const;
  /// How often a source was told to be degraded: "cri", "memcg", "turns", …
  [[nodiscard]] std::map<std::string, int> degraded() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Eviction> evictions_;  // by the number of the intent
  std::map<std::string, int> degraded_;
};

/// What is wrong with an eviction that is over: each of its events is told once, and nothing of the pod is left in
/// time. Empty: nothing.
[[nodiscard]] std::string flaw(const Eviction& eviction);

/// Whether a pod of this key is one that grew beyond the threshold, by its name.
[[nodiscard]] bool may_go(const std::string& pod);

/// Whether each was told once, hit whom it may and was over in time; how many there were, by what became of them.
boost::json::object judge_evictions(const std::vector<Eviction>& evictions, Findings& findings);

}  // namespace bench::soak
