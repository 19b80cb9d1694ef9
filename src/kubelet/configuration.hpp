#pragma once
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/kubelet_configuration.hpp"
#include "core/error.hpp"
#include "kubelet/process.hpp"

namespace evictd::kubelet {

/// What a kubelet goes by, put together as it does that itself: its file, the drop-ins in the order of their names, its
/// flags (kubelet 1.36: cmd/kubelet/app/server.go). The file of --config alone has the default thresholds filled in:
/// without one evictionHard is what drop-ins and flags say, and may be empty.
struct Configuration {
  config::KubeletConfiguration values{};
  config::Origins origins{};  ///< of what was written
  std::vector<std::string>
      documents{};  ///< what was read: files, and "the flags of kubelet (pid 812)"; or that there is nothing
  /// What is to be watched, for it may change.
  std::vector<std::filesystem::path> files{};
  std::vector<std::filesystem::path> directories{};  ///< of drop-ins
};

/// Where its configuration is cannot be told, or nothing is there: no reason to take the defaults for what it goes by.
struct NotFound {
  std::string why;  ///< one line
};

using Loaded = std::expected<Configuration, NotFound>;

/// Of one that runs. The error is that of a document that is there and cannot be right, or that is no file. All paths
/// lie below `root`, which is "/" but in tests. Waits for the disk: beside the reactor.
[[nodiscard]] Result<Loaded> load(const Process& process, const std::filesystem::path& root = "/");

/// Of one that said so itself: `answer` is the body of its /configz, which has the defaults filled in. `origin`: what
/// errors and origins name.
[[nodiscard]] Result<Configuration> parse_configz(std::string_view answer, std::string_view origin);

/// Of none that runs: the file, if one is given, and what is in the directory, if one is given and there.
[[nodiscard]] Result<Configuration> load_files(const std::optional<std::string>& file,
                                               const std::optional<std::string>& drop_ins);

/// Where k3s and RKE2 keep the drop-ins of the kubelet that they run; absent where neither is installed.
[[nodiscard]] std::optional<std::string> find_rancher_drop_ins(const std::filesystem::path& root = "/");

}  // namespace evictd::kubelet
