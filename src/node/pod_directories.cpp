#include "node/pod_directories.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "node/directory.hpp"

namespace evictd::node {
namespace {

/// Volumes of these plugins take space of the node. hostPath has no directory here; downwardAPI, secret and projected
/// are small, in memory and not counted by the kubelet.
constexpr std::array local_plugins{"kubernetes.io~empty-dir", "kubernetes.io~configmap", "kubernetes.io~git-repo"};

bool is_local(std::string_view plugin) { return std::ranges::find(local_plugins, plugin) != local_plugins.end(); }

/// Names come from manifests and from the runtime: one that leads elsewhere must not be walked.
bool is_one_component(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && !name.contains('/') && !name.contains('\0');
}

bool has_directories(const PodName& pod) {
  return is_one_component(fmt::format("{}_{}", pod.name_space, pod.name)) && is_one_component(pod.uid);
}

class Measuring {
 public:
  Measuring(const PodRoots& roots, const PodName& pod, WalkBudget& budget)
      : roots_(&roots), pod_(&pod), budget_(&budget) {}

  PodDiskReading run() {
    reading_.time = core::Instant::clock::now();
    if (has_directories(*pod_)) {
      measure_logs(log_directory(*roots_, *pod_));
      measure_volumes(pod_directory(*roots_, *pod_));
    } else {
      failed({fmt::format("\"{}_{}_{}\" is not the name of a directory", pod_->name_space, pod_->name, pod_->uid)});
    }
    return std::move(reading_);
  }

 private:
  void measure_logs(const std::filesystem::path& logs) {
    const auto directory = open(logs);
    if (!directory) return;
    for (const auto& container : subdirectories(*directory))
      if (const auto usage = measure(logs / container)) reading_.logs.emplace(container, *usage);
    for (const auto& file : files(logs)) add_file(file);
  }

  void measure_volumes(const std::filesystem::path& pod) {
    add_file(pod / "etc-hosts");
    const auto volumes = open(pod / "volumes");
    if (!volumes) return;
    for (const auto& plugin : subdirectories(*volumes)) {
      if (!plugin.starts_with("kubernetes.io~")) continue;
      const auto path = pod / "volumes" / plugin;
      const auto directory = open(path);
      if (!directory) continue;
      for (const auto& volume : subdirectories(*directory)) {
        reading_.directories.push_back({.name = volume, .plugin = plugin});
        if (!is_local(plugin)) continue;
        if (const auto usage = measure(path / volume)) reading_.volumes.emplace(volume, *usage);
      }
    }
  }

  std::optional<core::DiskUsage> measure(const std::filesystem::path& path) {
    const auto usage = measure_tree(path, *budget_);
    if (!usage) {
      if (!usage.error().is_gone()) failed(usage.error());
      return std::nullopt;
    }
    reading_.complete = reading_.complete && usage->complete;
    return core::DiskUsage{.bytes = usage->bytes, .inodes = usage->inodes};
  }

  /// Everything in the directory but directories.
  std::vector<std::filesystem::path> files(const std::filesystem::path& path) {
    std::vector<std::filesystem::path> result;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
      std::error_code gone;
      if (entry->symlink_status(gone).type() == std::filesystem::file_type::directory) continue;
      if (!budget_->take()) {
        reading_.complete = false;
        break;
      }
      result.push_back(entry->path());
    }
    if (error) failed_unless_gone(system_error(error.value(), path.native()));
    return result;
  }

  void add_file(const std::filesystem::path& path) {
    struct stat file {};
    if (::lstat(path.c_str(), &file) != 0) return failed_unless_gone(system_error(errno, path.native()));
    constexpr std::int64_t block = 512;
    *reading_.pod_level.bytes += file.st_blocks * block;
    ++*reading_.pod_level.inodes;
  }

  std::optional<Directory> open(const std::filesystem::path& path) {
    auto directory = Directory::open(path);
    if (directory) return *std::move(directory);
    failed_unless_gone(directory.error());
    return std::nullopt;
  }

  std::vector<std::string> subdirectories(const Directory& directory) {
    auto names = directory.subdirectories();
    if (names) return *std::move(names);
    failed_unless_gone(names.error());
    return {};
  }

  void failed_unless_gone(const FileError& error) {
    if (!error.is_gone()) failed(error);
  }

  void failed(Error error) {
    reading_.complete = false;
    if (!reading_.error) reading_.error = std::move(error);
  }

  const PodRoots* roots_;
  const PodName* pod_;
  WalkBudget* budget_;
  PodDiskReading reading_;
};

}  // namespace

std::filesystem::path log_directory(const PodRoots& roots, const PodName& pod) {
  return roots.logs / fmt::format("{}_{}_{}", pod.name_space, pod.name, pod.uid);
}

std::filesystem::path pod_directory(const PodRoots& roots, const PodName& pod) {
  return roots.kubelet / "pods" / pod.uid;
}

std::vector<std::filesystem::path> local_directories(const PodRoots& roots, const PodName& pod) {
  if (!has_directories(pod)) return {};
  std::vector<std::filesystem::path> directories{log_directory(roots, pod)};
  for (const auto* plugin : local_plugins) directories.push_back(pod_directory(roots, pod) / "volumes" / plugin);
  return directories;
}

PodDiskReading measure_pod_directories(const PodRoots& roots, const PodName& pod, WalkBudget& budget) {
  return Measuring(roots, pod, budget).run();
}

}  // namespace evictd::node
