#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "config/yaml.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::pods {

/// Whose requests a pod has whose status tells what it was given.
enum class Requests : std::uint8_t {
  Allocated,  ///< what it was given (core/resize.hpp)
  Desired,    ///< what its spec asks for
};

/// A Kubernetes v1.Pod, reduced to what decides evictions and completed as the API server would: the namespace is
/// "default" where none is given, absent requests are the limits, and a system-*-critical priority class stands for its
/// priority. `apiVersion` and `kind` may be left out; what evictd has no use for is passed over. An error names file,
/// line and key.
[[nodiscard]] Result<core::Pod> read_pod(const config::Value& object, Requests requests = Requests::Allocated);

/// All pods of a YAML or JSON text: one or several documents, each a Pod, a PodList or a List of Pods. `origin`: the
/// file's name. What follows after `most` pods is not read.
[[nodiscard]] Result<std::vector<core::Pod>> parse_pods(std::string_view text, std::string_view origin,
                                                        Requests requests = Requests::Allocated,
                                                        std::size_t most = std::numeric_limits<std::size_t>::max());

/// One pod as the API server or the kubelet writes it, who have taken all that is in it: a field that cannot be read
/// costs only itself, lest whoever wrote it chooses what counts of the pod. The first such field is added to `doubts`,
/// with the pod's name.
[[nodiscard]] Result<core::Pod> parse_pod_json(std::string_view text, std::string_view origin,
                                               std::vector<Error>& doubts);

/// A v1.PodSpec alone, as JSON: a pod without a name. One whose lists and mappings, as far as they are read, have more
/// than `most_elements` in all is an error.
[[nodiscard]] Result<core::Pod> parse_pod_spec_json(std::string_view text, std::string_view origin,
                                                    std::size_t most_elements);

struct PodsRead {
  std::vector<core::Pod> pods;
  std::vector<Error> errors;  ///< one for each pod that could not be read
  std::vector<Error> doubts;  ///< one for each pod of which a field could not be read
};

/// A v1.PodList as the API server or the kubelet writes it; it may be empty. A pod that cannot be read costs only
/// itself, and so does a field. 110 pods of 8 KB: some 20 ms.
[[nodiscard]] Result<PodsRead> parse_pod_list_json(std::string_view text, std::string_view origin);

}  // namespace evictd::pods
