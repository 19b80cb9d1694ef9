#include "wake/cgroup_watch.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
#include <string>
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
  const auto known = above_.find(directory);
  if (known != above_.end() && watched != known->second) {
    forget(known->second);
    above_.erase(known);
  }
  if (watched) above_.insert_or_assign(directory, *watched);
  return watched.has_value();
}

void CgroupWatch::watch_tree() {
  constexpr int deepest_pod = 1;  // below the pods' cgroup: QoS class 0, pod 1
  look_at_all_ = false;
  failed_ = false;
  complete_ = watch_above(node_);
  auto between = node_;
  for (const auto& part : pods_.lexically_relative(node_))
    if ((between /= part) != pods_) complete_ = watch_above(between) && complete_;
  complete_ = watch_above(pods_) && complete_;
  if (const auto pods = above_.find(pods_); pods != above_.end()) watch_below(pods->second, pods_, deepest_pod);
  complete_ = complete_ && !failed_;
  if (!failed_) notifier_.works();
}

/// What cannot be listed leaves the tree incomplete.
void CgroupWatch::watch_below(int watch, const std::filesystem::path& directory, int levels) {
  auto& place = places_.try_emplace(watch, Place{directory, levels}).first->second;
  std::set<std::string> there;
  std::error_code error;
  std::filesystem::directory_iterator entries{directory, error};
  for (; !error && entries != end(entries); entries.increment(error)) {
    std::error_code ignored;
    if (!entries->is_directory(ignored)) continue;
    see(place, *there.insert(entries->path().filename().native()).first);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    failed_ = true;
    notifier_.failed({directory.native() + ": " + error.message()});
    return;
  }
  std::erase_if(place.watches, [&](const auto& known) {
    if (there.contains(known.first)) return false;
    forget(known.second);
    return true;
  });
}

void CgroupWatch::see(Place& place, const std::string& name) {
  const auto found = place.directory / name;
  const auto watched = watch(found);
  if (!watched) return;
  const auto [known, is_new] = place.watches.try_emplace(name, *watched);
  if (!is_new && known->second != *watched) forget(std::exchange(known->second, *watched));
  // What comes and goes in a pod's own is no pod, be that one a level higher, as Guaranteed ones are.
  if (place.levels > 0 && !is_pods(name)) watch_below(*watched, found, place.levels - 1);
}

/// The watch of a directory that is gone, and those in it.
void CgroupWatch::forget(int watch) {
  inotify_.remove(watch);
  const auto place = places_.extract(watch);
  if (!place) return;
  for (const auto& [name, below] : place.mapped().watches) forget(below);
}

void CgroupWatch::on_event(const os::Inotify::Event& event) {
  if ((event.mask & IN_IGNORED) != 0) return;  // a watch was taken back
  changed_ = true;
  const auto place = places_.find(event.watch);
  if (place == places_.end()) {
    const bool is_above = std::ranges::any_of(above_, [&](const auto& above) { return above.second == event.watch; });
    look_at_all_ = look_at_all_ || is_above || (event.mask & IN_Q_OVERFLOW) != 0;
    return;
  }
  if ((event.mask & IN_ISDIR) == 0) return;
  auto& watches = place->second.watches;
  if ((event.mask & IN_CREATE) != 0) {
    came_.emplace_back(event.watch, event.name);
  } else if (const auto gone = watches.find(event.name); gone != watches.end()) {
    forget(gone->second);
    watches.erase(gone);
  }
}

void CgroupWatch::on_batch_end() {
  if (!std::exchange(changed_, false)) return;
  const auto came = std::exchange(came_, {});
  if (look_at_all_ || !complete_) {
    watch_tree();
  } else {
    for (const auto& [where, name] : came)
      if (const auto place = places_.find(where); place != places_.end()) see(place->second, name);
    complete_ = !failed_;
  }
  tell();
}

void CgroupWatch::tell() {
  listener_.cgroups_changed();
  notifier_.wake("pods' cgroups came or went");
}

std::vector<SourceStatus> CgroupWatch::status() const { return {notifier_.status("cgroups", "armed")}; }

}  // namespace evictd::wake
