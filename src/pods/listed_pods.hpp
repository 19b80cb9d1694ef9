#pragma once
#include <cstddef>
#include <vector>

#include "cri/messages.hpp"

// Which pods the runtime's answers tell of. Pure.
namespace evictd::pods {

/// A sandbox and its containers, as the runtime lists them. The answers outlive it.
struct ListedPod {
  const ::runtime::v1::PodSandbox* sandbox;
  std::vector<const ::runtime::v1::Container*> containers{};  ///< in the order of their creation

  /// Of the labels and annotations, in whatever order they come. Others have the same by chance alone (1 in 2^64), or
  /// where somebody looked for them: it is no protection against that.
  [[nodiscard]] std::size_t fingerprint() const;
};

/// The READY sandboxes, of several with one uid the latest, in the order of their creation. One without a uid is given
/// its own id for one.
[[nodiscard]] std::vector<ListedPod> listed_pods(::runtime::v1::ListPodSandboxResponse& sandboxes,
                                                 const ::runtime::v1::ListContainersResponse& containers);

}  // namespace evictd::pods
