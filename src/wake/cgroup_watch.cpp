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

/// A directory that is watched already stays so: inotify knows it by its inode. One that went is none to complain of.
std::optional<int> CgroupWatch::watch(const std::filesystem::path& directory) {
  const auto watched = inotify_.add(directory, IN_CREATE | IN_DELETE);
  if (watched) return *watched;
  if (watched.error().is_gone()) return std::nullopt;
  failed_ = true;
  notifier_.failed(watched.error());
  return std::nullopt;
}

bool CgroupWatch::watch_above(const std::filesystem::path& directory) {
  const auto watched = watch(directory);
  if (watched) above_.insert(*watched);
  return watched.has_value();
}

void CgroupWatch::watch_tree() {
  constexpr int deepest_pod = 1;  // below the pods' cgroup: QoS class 0, pod 1
  lost_ = false;
  failed_ = false;
  complete_ = watch_above(node_);
  auto between = node_;
  for (const auto& part : pods_.lexically_relative(node_))
    if ((between /= part) != pods_) complete_ = watch_above(between) && complete_;
  const auto pods = watch(pods_);
  if (pods) watch_below(*pods, {pods_, deepest_pod});
  complete_ = complete_ && pods.has_value() && !failed_;
  if (!failed_) notifier_.works();
}

/// What cannot be listed leaves the tree incomplete.
void CgroupWatch::watch_below(int watch, Place place) {
  const auto& [directory, levels] = places_.insert_or_assign(watch, std::move(place)).first->second;
  std::error_code error;
  std::filesystem::directory_iterator entries{directory, error};
  for (; !error && entries != end(entries); entries.increment(error)) {
    std::error_code ignored;
    if (entries->is_directory(ignored)) see(entries->path(), levels);
  }
  if (!error || error == std::errc::no_such_file_or_directory) return;
  failed_ = true;
  notifier_.failed({directory.native() + ": " + error.message()});
}

void CgroupWatch::see(const std::filesystem::path& found, int levels) {
  const auto watched = watch(found);
  // What comes and goes in a pod's own is no pod, be that one a level higher, as Guaranteed ones are.
  if (watched && levels > 0 && !is_pods(found.filename().native())) watch_below(*watched, {found, levels - 1});
}

void CgroupWatch::on_event(const Inotify::Event& event) {
  const bool is_above = above_.contains(event.watch);
  const auto place = places_.find(event.watch);
  lost_ = lost_ || is_above || (event.mask & IN_Q_OVERFLOW) != 0;
  if ((event.mask & IN_IGNORED) != 0) {  // it is gone
    lost_ = lost_ || (place != places_.end() && place->second.directory == pods_);
    above_.erase(event.watch);
    places_.erase(event.watch);
  } else if (place != places_.end() && (event.mask & IN_CREATE) != 0 && (event.mask & IN_ISDIR) != 0) {
    came_.push_back({place->second.directory / event.name, place->second.levels});
  }
}

void CgroupWatch::on_batch_end() {
  const auto came = std::exchange(came_, {});
  if (lost_ || !complete_)
    watch_tree();
  else
    for (const auto& [directory, levels] : came) see(directory, levels);
  complete_ = complete_ && !failed_;
  tell();
}

void CgroupWatch::tell() {
  listener_.cgroups_changed();
  notifier_.wake("pods' cgroups came or went");
}

std::vector<SourceStatus> CgroupWatch::status() const { return {notifier_.status("cgroups", "armed")}; }

}  // namespace evictd::wake
