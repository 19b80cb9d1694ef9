#include "wake/cgroup_watch.hpp"

#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

/// The look at the tree, the pass and the list of pods that follow a change take milliseconds on a full node: a pod
/// that makes and removes cgroups without a break must not keep the reactor at them.
constexpr core::Duration pause = std::chrono::milliseconds(25);

/// "podUID", "kubepods-podUID.slice": the uid of a slice has no "-".
bool is_pods(std::string_view name) {
  constexpr std::string_view sign = "-pod";
  const auto place = name.rfind(sign);
  return name.starts_with(sign.substr(1)) ||
         (place != std::string_view::npos && !name.substr(place + sign.size()).contains('-'));
}

}  // namespace

CgroupWatch::CgroupWatch(const asio::any_io_executor& reactor, Wakes& wakes, std::filesystem::path node,
                         std::filesystem::path pods, CgroupListener& listener)
    : notifier_{wakes, core::WakeSource::Cgroups},
      node_{std::move(node)},
      pods_{std::move(pods)},
      listener_{listener},
      inotify_{reactor, pause, *this} {
  const auto opened = inotify_.open();
  open_ = opened.has_value();
  if (opened)
    watch_tree();
  else
    notifier_.failed(opened.error());
}

void CgroupWatch::arm(const Arming&) {
  if (!open_ || complete_) return;
  watch_tree();
  if (complete_) tell();
}

/// Whether it is watched. A directory that is watched already stays so: inotify knows it by its inode. One that went is
/// none to complain of.
bool CgroupWatch::watch(const std::filesystem::path& directory) {
  const auto watched = inotify_.add(directory, IN_CREATE | IN_DELETE);
  if (watched || watched.error().is_gone()) return watched.has_value();
  failed_ = true;
  notifier_.failed(watched.error());
  return false;
}

void CgroupWatch::watch_tree() {
  constexpr int deepest_pod = 1;  // below the pods' cgroup: QoS class 0, pod 1
  failed_ = false;
  complete_ = watch(node_);
  auto between = node_;
  for (const auto& part : pods_.lexically_relative(node_)) complete_ = watch(between /= part) && complete_;
  watch_below(pods_, deepest_pod);
  complete_ = complete_ && !failed_;
  if (!failed_) notifier_.works();
}

/// The directories below this one, so many levels deep. What cannot be listed leaves the tree incomplete.
void CgroupWatch::watch_below(const std::filesystem::path& directory, int levels) {
  std::error_code error;
  std::filesystem::directory_iterator entries{directory, error};
  for (; !error && entries != end(entries); entries.increment(error)) {
    std::error_code ignored;
    if (!entries->is_directory(ignored)) continue;
    const auto found = entries->path();
    // What comes and goes in a pod's own is no pod, be that one a level higher, as Guaranteed ones are.
    if (watch(found) && levels > 0 && !is_pods(found.filename().native())) watch_below(found, levels - 1);
  }
  if (!error || error == std::errc::no_such_file_or_directory) return;
  failed_ = true;
  notifier_.failed({directory.native() + ": " + error.message()});
}

void CgroupWatch::on_batch_end() {
  watch_tree();
  tell();
}

void CgroupWatch::tell() {
  listener_.cgroups_changed();
  notifier_.wake("pods' cgroups came or went");
}

std::vector<SourceStatus> CgroupWatch::status() const { return {notifier_.status("cgroups", "armed")}; }

}  // namespace evictd::wake
