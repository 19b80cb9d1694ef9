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

  /// Of the labels and annotations, in whatever order they come: others have another one, but for one chance in 2^64.
  [[nodiscard]] std::size_t fingerprint() const;
};

/// The READY sandboxes, of several with one uid the latest, in the order of their creation. One without a uid is given
/// its own id for one.
[[nodiscard]] std::vector<ListedPod> listed_pods(::runtime::v1::ListPodSandboxResponse& sandboxes,
                                                 const ::runtime::v1::ListContainersResponse& containers);

}  // namespace evictd::pods
