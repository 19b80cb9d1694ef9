#include "wake/fanotify_trees.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "os/file_error.hpp"
#include "wake/source.hpp"

namespace asio = boost::asio;
namespace fs = std::filesystem;

namespace evictd::wake {
namespace {

/// A volume's directory is made, then something is mounted there, which fanotify does not tell. So for as long after a
/// pod was first seen or last changed its volumes are looked at whenever the pods are listed.
constexpr auto settling = std::chrono::minutes(1);

constexpr std::uint64_t fanotify_changes =
    FAN_MODIFY | FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_ONDIR;

fs::path nearest_existing(fs::path path) {
  std::error_code ignored;
  while (!fs::exists(path, ignored) && path.has_relative_path()) path = path.parent_path();
  return fs::weakly_canonical(path, ignored);
}

/// The directories that may be mount points: volumes, two levels below a pod's directory of a plugin's volumes.
void list_with_subdirectories(const fs::path& directory, std::vector<fs::path>& result) {
  std::error_code gone;
  result.push_back(directory);
  for (fs::directory_iterator entry{directory, gone}; !gone && entry != end(entry); entry.increment(gone)) {
    std::error_code ignored;
    if (entry->symlink_status(ignored).type() == fs::file_type::directory) result.push_back(entry->path());
  }
}

}  // namespace

FanotifyTrees::FanotifyTrees(const asio::any_io_executor& reactor, OnChange on_change)
    : on_change_{std::move(on_change)},
      mounted_{reactor, [this](const std::string& uid) { on_change_(uid); }},
      waiting_{reactor},
      timer_{reactor} {}

FanotifyTrees::~FanotifyTrees() {
  if (waiting_.is_open()) waiting_.release();
}

os::FileResult<void> FanotifyTrees::open(std::span<const fs::path> roots) {
  queue_ = os::FileDescriptor{
      fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK | FAN_CLOEXEC | FAN_REPORT_DFID_NAME, O_RDONLY | O_CLOEXEC)};
  if (!queue_) return std::unexpected(os::system_error(errno, "fanotify"));
  for (const auto& root : roots) {
    std::error_code ignored;
    roots_.emplace(root, fs::weakly_canonical(root, ignored));
    if (auto marked = mark(nearest_existing(root)); !marked) return marked;
  }
  mounted_open_ = mounted_.open().has_value();
  wait();
  return {};
}

os::FileResult<void> FanotifyTrees::mark(const fs::path& root) {
  os::FileDescriptor directory{::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  struct stat status{};
  struct statfs filesystem{};
  struct statx mount{};
  if (!directory || fstat(directory.get(), &status) != 0 || fstatfs(directory.get(), &filesystem) != 0 ||
      statx(directory.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &mount) != 0)
    return std::unexpected(os::system_error(errno, root.native()));
  if (const auto known = std::ranges::find(marked_, status.st_dev, &Marked::device); known != marked_.end()) {
    if (std::ranges::find(known->mounts, mount.stx_mnt_id, &Mounted::id) == known->mounts.end())
      known->mounts.push_back({.id = mount.stx_mnt_id, .directory = std::move(directory)});
    return {};
  }
  if (fanotify_mark(queue_.get(), FAN_MARK_ADD | FAN_MARK_FILESYSTEM, fanotify_changes, directory.get(), nullptr) != 0)
    return std::unexpected(os::system_error(errno, root.native()));
  Marked marked{.device = status.st_dev, .fsid = {}};
  static_assert(sizeof filesystem.f_fsid == sizeof marked.fsid);
  std::memcpy(marked.fsid.data(), &filesystem.f_fsid, sizeof marked.fsid);
  marked.mounts.push_back({.id = mount.stx_mnt_id, .directory = std::move(directory)});
  marked_.push_back(std::move(marked));
  return {};
}

bool FanotifyTrees::is_marked(const fs::path& directory) const {
  struct stat status{};
  return stat(directory.c_str(), &status) != 0 ||
         std::ranges::find(marked_, status.st_dev, &Marked::device) != marked_.end();
}

/// As the kernel will name it. Below the roots nothing is a symbolic link, so only these are resolved, and once.
std::string FanotifyTrees::real_path(const fs::path& directory) const {
  for (const auto& [root, real] : roots_)
    if (directory.native().starts_with(root.native() + '/'))
      return real.native() + directory.native().substr(root.native().size());
  return directory.native();
}

std::vector<std::string> FanotifyTrees::mounted_in(const PodFiles& pod) const {
  std::vector<fs::path> candidates;
  for (const auto& directory : pod.directories) list_with_subdirectories(directory, candidates);
  std::vector<std::string> mounted;
  for (const auto& directory : candidates)
    if (!is_marked(directory)) mounted.push_back(directory.native());
  return mounted;
}

void FanotifyTrees::own(const PodFiles& files) {
  for (const auto& directory : files.directories) owners_.insert_or_assign(real_path(directory), files.uid);
}

void FanotifyTrees::disown(const PodFiles& files) {
  for (const auto& directory : files.directories)
    if (const auto owner = owners_.find(real_path(directory)); owner != owners_.end() && owner->second == files.uid)
      owners_.erase(owner);
}

os::FileResult<void> FanotifyTrees::watch(const WatchedPods& pods) {
  decltype(pods_) next;
  WatchedPods elsewhere;
  const auto now = core::Instant::clock::now();
  for (const auto& files : pods) {
    auto& pod = next[files->uid];
    if (auto known = pods_.extract(files->uid))
      pod = std::move(known.mapped());
    else
      pod.mounts_looked_for_until = now + settling;
    if (const auto before = std::exchange(pod.files, files); before != files) {
      if (before != nullptr) disown(*before);
      own(*files);
    }
    if (now < pod.mounts_looked_for_until) {
      auto mounted = mounted_in(*files);
      if (mounted.empty())
        pod.mounted.reset();
      else if (pod.mounted == nullptr || pod.mounted->directories != mounted)
        pod.mounted = std::make_shared<const PodFiles>(files->uid, std::move(mounted));
    }
    if (pod.mounted != nullptr) elsewhere.push_back(pod.mounted);
  }
  for (const auto& [uid, gone] : pods_) disown(*gone.files);
  pods_.swap(next);
  if (mounted_open_) return mounted_.watch(elsewhere);
  for (const auto& pod : elsewhere) on_change_(pod->uid);
  return {};
}

void FanotifyTrees::wait() {
  boost::system::error_code error;
  waiting_.assign(queue_.get(), error);
  if (error) return rest(pause_);  // epoll has its limits
  waiting_.async_wait(waiting_.wait_read, [this](boost::system::error_code closed) {
    if (closed) return;  // `this` may be gone
    // Each event that is queued would wake the reactor while it pauses.
    waiting_.release();
    look();
  });
}

void FanotifyTrees::look() {
  const auto size = ::read(queue_.get(), buffer_.data(), buffer_.size());
  const auto got = size < 0 ? std::size_t{0} : static_cast<std::size_t>(size);
  read(got);
  rest(next_pause(got));
  report();
}

void FanotifyTrees::rest(core::Duration time) {
  timer_.expires_after(time);
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) wait();
  });
}

/// The queue may hold more than the buffer; another full one is read at once. It is bounded, so where others write much
/// it is emptied in time.
core::Duration FanotifyTrees::next_pause(std::size_t size) {
  constexpr core::Duration longest = std::chrono::seconds(2);
  if (size > buffer_.size() / 2) return core::Duration::zero();
  const bool few = size < buffer_.size() / 16;
  pause_ = changed_.empty() && few ? std::min(pause_ * 2, longest) : core::Duration{pause};
  return pause_;
}

void FanotifyTrees::read(std::size_t size) {
  handles_.clear();
  for (std::size_t offset = 0; offset + FAN_EVENT_METADATA_LEN <= size;) {
    fanotify_event_metadata event{};
    std::memcpy(&event, buffer_.data() + offset, sizeof event);
    if (event.event_len < FAN_EVENT_METADATA_LEN || offset + event.event_len > size) break;
    if ((event.mask & FAN_Q_OVERFLOW) != 0)
      for (const auto& [directory, uid] : owners_) changed_.insert(uid);
    else
      read_event({buffer_.data() + offset + event.metadata_len, event.event_len - event.metadata_len});
    offset += event.event_len;
  }
}

/// `records`: what follows the event's metadata. The directory's handle is in one of them.
void FanotifyTrees::read_event(std::string_view records) {
  fanotify_event_info_fid info{};
  while (records.size() >= sizeof info) {
    std::memcpy(&info, records.data(), sizeof info);
    if (info.hdr.len < sizeof info || info.hdr.len > records.size()) return;
    const auto handle = records.substr(sizeof info, info.hdr.len - sizeof info);
    records.remove_prefix(info.hdr.len);
    if (info.hdr.info_type != FAN_EVENT_INFO_TYPE_DFID_NAME && info.hdr.info_type != FAN_EVENT_INFO_TYPE_DFID) continue;
    std::array<int, 2> fsid{};
    std::memcpy(fsid.data(), &info.fsid, sizeof fsid);
    const auto marked = std::ranges::find(marked_, fsid, &Marked::fsid);
    if (marked == marked_.end()) return;
    if (const auto* uid = owner_of(*marked, handle)) changed_.insert(*uid);
    return;
  }
}

/// Null for a directory seen in this batch already, and for one that is gone: its going is an event of the one above.
const std::string* FanotifyTrees::owner_of(const Marked& marked, std::string_view handle) {
  file_handle head{};
  if (handle.size() < sizeof head) return nullptr;
  std::memcpy(&head, handle.data(), sizeof head);
  if (handle.size() < sizeof head + head.handle_bytes || head.handle_bytes > MAX_HANDLE_SZ) return nullptr;
  const auto whole = handle.substr(0, sizeof head + head.handle_bytes);
  if (!handles_.emplace(whole).second) return nullptr;

  alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ> copy;
  for (const auto& mount : marked.mounts) {
    std::memcpy(copy.data(), whole.data(), whole.size());
    const os::FileDescriptor directory{
        open_by_handle_at(mount.directory.get(), reinterpret_cast<file_handle*>(copy.data()), O_PATH | O_CLOEXEC)};
    if (!directory) continue;
    std::array<char, 4096> path;
    const auto link = fmt::format("/proc/self/fd/{}", directory.get());
    const auto length = readlink(link.c_str(), path.data(), path.size());
    if (length <= 0) continue;
    if (const auto* uid = owner_of({path.data(), static_cast<std::size_t>(length)})) return uid;
  }
  return nullptr;
}

const std::string* FanotifyTrees::owner_of(std::string_view path) const {
  while (!path.empty()) {
    if (const auto owner = owners_.find(path); owner != owners_.end()) return &owner->second;
    path = path.substr(0, path.rfind('/'));
  }
  return nullptr;
}

void FanotifyTrees::report() {
  for (const auto& uid : changed_) {
    if (const auto pod = pods_.find(uid); pod != pods_.end())
      pod->second.mounts_looked_for_until = core::Instant::clock::now() + settling;
    on_change_(uid);
  }
  changed_.clear();
}

std::string FanotifyTrees::describe() const {
  const auto mounted = mounted_.watches();
  return fmt::format("fanotify on {} file system{}{}", marked_.size(), marked_.size() == 1 ? "" : "s",
                     mounted == 0 ? "" : ", " + mounted_.describe());
}

}  // namespace evictd::wake
