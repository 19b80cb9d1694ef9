#pragma once
#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <optional>

#include "async/deadline_thread.hpp"
#include "core/duration.hpp"
#include "node/kubelet_lookout.hpp"

namespace evictd::app {

/// The kubelet among the node's processes. They are looked through beside the reactor: a thousand take 10 ms.
class KubeletProcesses final : public node::KubeletLookout {
 public:
  /// `proc`: where the node's procfs is mounted (node.procMount). Throws std::system_error where no thread can be had.
  explicit KubeletProcesses(std::filesystem::path proc);

  [[nodiscard]] boost::asio::awaitable<std::optional<bool>> kubelet_runs(core::Instant give_up) override;

 private:
  std::filesystem::path proc_;
  async::DeadlineThread thread_{"looking for a kubelet"};
};

}  // namespace evictd::app
