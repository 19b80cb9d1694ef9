#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/duration.hpp"

namespace evictd::app {

/// Sees to it that the configuration is read anew when a kubelet came, or the one that was there has ended: the next
/// one may have other flags. The kernel tells of an end (pidfd); a kubelet that comes, and the configuration of one
/// that could not be found, is looked for at growing intervals. On the reactor.
class KubeletWatch {
 public:
  /// `look` has to lead to found(), some time.
  KubeletWatch(boost::asio::any_io_executor reactor, std::move_only_function<void()> look);

  /// What a look has found: the kubelet's process, or that there is none; and whether it is known what that goes by.
  void found(std::optional<std::int64_t> pid, bool is_known = true);
  /// Whether one ran a moment ago of which it is not known what it goes by: it may only be between two starts.
  [[nodiscard]] bool may_come_back(core::Instant now) const;

 private:
  void look_after(core::Duration pause);
  void watch(std::int64_t pid);

  boost::asio::steady_timer timer_;
  std::move_only_function<void()> look_;
  std::optional<std::int64_t> pid_;
  std::optional<boost::asio::posix::stream_descriptor> process_;  // readable once it has ended
  core::Duration pause_;
  std::optional<core::Instant> unknown_seen_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace evictd::app
