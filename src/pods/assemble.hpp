#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/pod.hpp"
#include "cri/messages.hpp"
#include "pods/runtime_pod.hpp"
#include "pods/trust.hpp"
#include "pods/verbose_status.hpp"

// One pod out of what the runtime lists and what the verbose statuses say. Pure.
namespace evictd::pods {

struct SandboxFacts {
  SandboxInfo info{};
  std::optional<Error> complaint{};  ///< why `info` may be incomplete
  /// What the sandbox is annotated with, which does not change: read once and kept. Null: not read, or nothing.
  std::shared_ptr<const Result<core::Pod>> spec{};

  [[nodiscard]] static SandboxFacts of(const ::runtime::v1::PodSandboxStatusResponse& status);
};

struct ContainerFacts {
  ContainerInfo info{};
  std::optional<Error> complaint{};
  LinuxResources given{};  ///< what it had when the status was read: other than in `info` where it was updated
  bool running = false;    ///< when the status was read
  /// Its verbose status is too large to be had, which it stays: this is what a plain one tells.
  bool is_plain = false;

  [[nodiscard]] static ContainerFacts of(const ::runtime::v1::ContainerStatusResponse& status);
};

[[nodiscard]] ContainerState state_of(const ::runtime::v1::Container& container);

struct KnownContainer {
  const ::runtime::v1::Container* listed;
  const ContainerFacts* facts;
};

/// `containers` in the order of their creation. What is doubtful about the pod is added to `warnings`. An annotated
/// spec is believed as it is in a trusted namespace; elsewhere only as far as the containers' numbers allow
/// (pods/claimed_spec.hpp).
///
/// The core's pod has of each container name the latest that has not exited: one that has is most likely an init
/// container and asks for nothing any more. Only when all have exited they stand for the pod until the next one starts.
[[nodiscard]] RuntimePod assemble(const ::runtime::v1::PodSandbox& sandbox, const SandboxFacts& facts,
                                  const std::vector<KnownContainer>& containers, std::int64_t memory_capacity,
                                  const TrustedNamespaces& trusted, std::vector<Error>& warnings);

}  // namespace evictd::pods
