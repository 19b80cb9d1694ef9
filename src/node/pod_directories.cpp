#include "node/pod_directories.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/printable.hpp"
#include "os/beneath.hpp"
#include "os/file_error.hpp"

namespace evictd::node {
namespace {

/// Volumes of these plugins take space of the node. hostPath has no directory here; downwardAPI, secret and projected
/// are small, in memory and not counted by the kubelet.
constexpr std::array local_plugins{"kubernetes.io~empty-dir", "kubernetes.io~configmap", "kubernetes.io~git-repo"};

bool is_local(std::string_view plugin) { return std::ranges::find(local_plugins, plugin) != local_plugins.end(); }

std::string log_directory_name(const PodName& pod) {
  return fmt::format("{}_{}_{}", pod.name_space, pod.name, pod.uid);
}

/// Names come from manifests and from the runtime: one that leads elsewhere must not be walked.
bool has_directories(const PodName& pod) {
  return os::is_one_name(log_directory_name(pod)) && os::is_one_name(pod.uid);
}

}  // namespace

std::filesystem::path log_directory(const PodRoots& roots, const PodName& pod) {
  return roots.logs / log_directory_name(pod);
}

std::filesystem::path pod_directory(const PodRoots& roots, const PodName& pod) {
  return roots.kubelet / "pods" / pod.uid;
}

std::vector<std::string> local_directories(const PodRoots& roots, const PodName& pod) {
  if (!has_directories(pod)) return {};
  std::vector<std::string> directories{log_directory(roots, pod)};
  const auto volumes = pod_directory(roots, pod).native() + "/volumes/";
  for (const auto* plugin : local_plugins) directories.push_back(volumes + plugin);
  return directories;
}

std::vector<NamedVolume> named_volumes(const PodRoots& roots, const PodName& pod, std::string_view plugin) {
  if (!has_directories(pod)) return {};
  auto directory = os::Directory::open(roots.kubelet / "pods");
  for (const auto& name : {std::string_view(pod.uid), std::string_view("volumes"), plugin})
    if (directory) directory = directory->own_subdirectory(name);
  if (!directory) return {};
  std::vector<NamedVolume> volumes;
  for (auto& name : directory->subdirectories().value_or(std::vector<std::string>{})) {
    if (core::printable(name) != name) continue;
    const bool is_mounted = !os::open_beneath(directory->descriptor(), name) && errno == EXDEV;
    volumes.push_back({std::move(name), is_mounted});
  }
  return volumes;
}

bool PodWalk::go_on(WalkBudget& budget) {
  if (!std::exchange(begun_, true)) begin();
  for (; !parts_.empty(); parts_.pop_back()) {
    const auto& part = parts_.back();
    if (!walk_) {
      auto root = part.parent->own_subdirectory(part.directory);
      if (!root) {
        failed_unless_gone(root.error());
        continue;
      }
      walk_.emplace(root->take_descriptor(),
                    part.kind == Kind::files ? TreeWalk::Extent::files : TreeWalk::Extent::everything);
    }
    if (!walk_->go_on(budget)) return false;
    add(reading_, part, walk_->usage());
    walk_.reset();
  }
  return true;
}

PodDiskReading PodWalk::reading() const {
  auto reading = reading_;
  if (parts_.empty()) return reading;
  reading.complete = false;
  for (const auto& part : parts_) {
    if (&part == &parts_.back() && walk_)
      add(reading, part, walk_->usage());
    else if (auto root = part.parent->own_subdirectory(part.directory); root && part.kind != Kind::files)
      add(reading, part, TreeWalk{root->take_descriptor()}.usage());
  }
  return reading;
}

void PodWalk::add(PodDiskReading& reading, const Part& part, const TreeUsage& usage) {
  reading.complete = reading.complete && usage.complete;
  if (part.kind == Kind::files) {
    *reading.pod_level.bytes += usage.bytes;
    *reading.pod_level.inodes += usage.inodes;
  } else {
    auto& usages = part.kind == Kind::log ? reading.logs : part.kind == Kind::layer ? reading.layers : reading.volumes;
    usages.insert_or_assign(part.name, core::DiskUsage{.bytes = usage.bytes, .inodes = usage.inodes});
  }
}

void PodWalk::begin() {
  reading_.time = core::Instant::clock::now();
  if (!has_directories(pod_))
    return failed({fmt::format("\"{}_{}_{}\" is not the name of a directory", pod_.name_space, pod_.name, pod_.uid)});
  find_logs();
  find_volumes();
  find_layers();
  std::ranges::reverse(parts_);
}

void PodWalk::find_logs() {
  const auto all = os::Directory::open(roots_.logs);
  if (!all) return failed_unless_gone(all.error());
  auto own = open(*all, log_directory_name(pod_));
  if (!own) return;
  const auto logs = std::make_shared<const os::Directory>(*std::move(own));
  for (auto& container : subdirectories(*logs)) parts_.push_back({Kind::log, container, logs, container});
  parts_.push_back({Kind::files, "", logs, "."});
}

void PodWalk::find_volumes() {
  const auto all = os::Directory::open(roots_.kubelet / "pods");
  if (!all) return failed_unless_gone(all.error());
  const auto pod = open(*all, pod_.uid);
  if (!pod) return;
  add_file(*pod, "etc-hosts");
  const auto volumes = open(*pod, "volumes");
  if (!volumes) return;
  for (const auto& plugin : subdirectories(*volumes)) {
    if (!plugin.starts_with("kubernetes.io~")) continue;
    auto own = open(*volumes, plugin);
    if (!own) continue;
    const auto directory = std::make_shared<const os::Directory>(*std::move(own));
    for (auto& volume : subdirectories(*directory)) {
      reading_.directories.push_back({.name = volume, .plugin = plugin});
      if (is_local(plugin)) parts_.push_back({Kind::volume, volume, directory, volume});
    }
  }
}

/// The runtime knows the others, and those that have gone meanwhile hold nothing.
void PodWalk::find_layers() {
  if (!roots_.layers) return;
  for (const auto& container : pod_.containers) {
    const auto upper = roots_.layers->find(container);
    if (!upper || !upper->has_filename()) continue;
    auto parent = os::Directory::open(upper->parent_path());
    if (!parent) continue;
    parts_.push_back({Kind::layer, container, std::make_shared<const os::Directory>(*std::move(parent)),
                      upper->filename().native()});
  }
}

void PodWalk::add_file(const os::Directory& parent, const std::string& name) {
  struct stat file{};
  if (::fstatat(parent.descriptor(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0)
    return failed_unless_gone(os::system_error(errno, parent.path() + "/" + name));
  constexpr std::int64_t block = 512;
  *reading_.pod_level.bytes += file.st_blocks * block;
  ++*reading_.pod_level.inodes;
}

std::optional<os::Directory> PodWalk::open(const os::Directory& parent, std::string_view name) {
  auto directory = parent.own_subdirectory(name);
  if (directory) return *std::move(directory);
  failed_unless_gone(directory.error());
  return std::nullopt;
}

std::vector<std::string> PodWalk::subdirectories(const os::Directory& directory) {
  auto names = directory.subdirectories();
  if (names) return *std::move(names);
  failed_unless_gone(names.error());
  return {};
}

void PodWalk::failed_unless_gone(const os::FileError& error) {
  if (!error.is_gone()) failed(error);
}

void PodWalk::failed(Error error) {
  reading_.complete = false;
  if (!reading_.error) reading_.error = std::move(error);
}

PodDiskReading measure_pod_directories(const PodRoots& roots, const PodName& pod, WalkBudget& budget) {
  PodWalk walk{roots, pod};
  (void)walk.go_on(budget);
  return walk.reading();
}

}  // namespace evictd::node
