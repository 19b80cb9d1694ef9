#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "agent/pod_admission.hpp"
#include "api/asked_pods.hpp"
#include "commands/configuration.hpp"
#include "commands/node_facts.hpp"
#include "commands/pod_sources.hpp"

namespace evictd::commands {

/// Admission, put together: the chain and what pods were given before are read first, for they may be wrong; the agent
/// joins later.
class Admission {
 public:
  /// Error: the configuration asks for what cannot be, or the state file does not fit it.
  [[nodiscard]] static Result<std::unique_ptr<Admission>> prepare(const Configuration& configuration,
                                                                  std::int64_t memory_capacity);

  struct Parts {
    agent::Agent& agent;
    agent::Recorder& recorder;
    PodSources& sources;
    std::function<bool()> shutting_down;
  };
  /// All of the parts must outlive this.
  void begin(const Parts& parts);

  /// For the API, once it has begun.
  [[nodiscard]] api::Admitter admitter();

 private:
  Admission(const Configuration& configuration, std::int64_t memory_capacity, admission::Chain chain)
      : configuration_{configuration}, memory_capacity_{memory_capacity}, chain_{std::move(chain)} {}

  const Configuration& configuration_;
  std::int64_t memory_capacity_;
  std::optional<admission::Chain> chain_;
  std::optional<NodeFacts> facts_;
  std::optional<agent::PodAdmission> admission_;
};

}  // namespace evictd::commands
