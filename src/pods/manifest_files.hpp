#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::pods {

/// A file of a directory of manifests, as it was read last.
struct ManifestFile {
  /// By what a file that did not change is known. Of what a symbolic link points to; all zero if it has to be read
  /// again in any case.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t modified_ns = 0;

    friend bool operator==(const Stamp&, const Stamp&) = default;
  };

  Stamp stamp{};
  std::vector<core::PodPtr> pods{};  ///< of its last good content
  std::optional<Error> error{};      ///< why its present content is not good: "FILE:LINE: …"
};

/// By name.
using ManifestFiles = std::map<std::string, ManifestFile, std::less<>>;

/// The pods' manifests in the directory, as the kubelet takes them: every regular file whose name does not begin with a
/// dot, YAML or JSON, without those in directories below. A pod's name becomes NAME-NODENAME, the latter in lower case,
/// unless that is "". A file may hold several pods. One that did not change since `known` is not read
/// again; of one that is not good any more, or too large (config::max_file_size), the earlier pods stay.
///
/// Fails if the directory cannot be listed. It blocks: for a thread of its own. 100 files of 1 KB: 100 ms,
/// unchanged 0.3 ms.
[[nodiscard]] Result<ManifestFiles> read_manifests(const std::filesystem::path& directory, std::string_view node_name,
                                                   const ManifestFiles& known);

}  // namespace evictd::pods
