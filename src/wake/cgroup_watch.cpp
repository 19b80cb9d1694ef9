#include "wake/cgroup_watch.hpp"

#include <sys/inotify.h>

#include <boost/asio/buffer.hpp>
#include <cerrno>

#include "node/file_error.hpp"

namespace asio = boost::asio;

namespace evictd::wake {

CgroupWatch::CgroupWatch(asio::any_io_executor reactor, Wakes& wakes, std::filesystem::path node,
                         std::filesystem::path pods, std::function<void()> on_change)
    : notifier_{wakes, "cgroups"},
      node_{std::move(node)},
      pods_{std::move(pods)},
      on_change_{std::move(on_change)},
      inotify_{std::move(reactor)} {
  const int descriptor = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor < 0) {
    notifier_.failed(node::system_error(errno, "inotify"));
    return;
  }
  inotify_.assign(descriptor);
  watch_tree();
  wait();
}

/// A directory that is watched already stays so: inotify knows it by its inode.
void CgroupWatch::watch(const std::filesystem::path& directory) {
  inotify_add_watch(inotify_.native_handle(), directory.c_str(), IN_CREATE | IN_DELETE | IN_ONLYDIR);
}

void CgroupWatch::watch_tree() {
  constexpr int deepest_pod = 1;  // below the pods' cgroup: QoS class 0, pod 1
  watch(node_);
  watch(pods_);
  std::error_code gone;
  std::filesystem::recursive_directory_iterator entries{pods_, gone};
  for (; !gone && entries != end(entries); entries.increment(gone)) {
    std::error_code ignored;
    if (!entries->is_directory(ignored)) continue;
    watch(entries->path());
    if (entries.depth() >= deepest_pod) entries.disable_recursion_pending();
  }
}

void CgroupWatch::wait() {
  inotify_.async_read_some(asio::buffer(buffer_), [this](boost::system::error_code error, std::size_t) {
    if (error) return;  // closed: `this` may be gone
    watch_tree();
    on_change_();
    notifier_.wake("pods' cgroups came or went");
    wait();
  });
}

std::vector<SourceStatus> CgroupWatch::status() const { return {notifier_.status("cgroups", "armed")}; }

}  // namespace evictd::wake
