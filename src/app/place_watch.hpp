#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/configuration.hpp"
#include "app/discovery.hpp"
#include "async/deadline_thread.hpp"
#include "config/agent_configuration.hpp"
#include "core/duration.hpp"
#include "kubelet/configuration.hpp"

namespace evictd::app {

/// As long as a place is a guess (Guesses), looks whether it is there by now, and where. A node that boots has neither
/// a runtime's socket nor pods when evictd starts, and evictd would wait at the wrong one for ever: k3s, for one, has
/// its socket elsewhere, and starts after everybody. On the reactor; it looks beside it.
class PlaceWatch {
 public:
  /// "cri.endpoint is unix:///run/k3s/containerd/containerd.sock by now, and not …". Called once.
  using Moved = std::function<void(const std::string& what)>;
  struct Options {
    core::Duration between = std::chrono::seconds(5);
    std::filesystem::path root = "/";  ///< see find_kubelet_configuration()
  };

  /// `start`: what was found at the start.
  PlaceWatch(boost::asio::any_io_executor reactor, const Configuration& start, Moved moved, Options options);
  PlaceWatch(boost::asio::any_io_executor reactor, const Configuration& start, Moved moved)
      : PlaceWatch{std::move(reactor), start, std::move(moved), Options{}} {}

 private:
  void wait();
  void look();
  void found(const Discovery& now);

  boost::asio::steady_timer timer_;
  config::AgentConfiguration agent_;
  kubelet::Configuration kubelet_;
  Guesses guesses_;
  Moved moved_;
  Options options_;
  std::optional<async::DeadlineThread> worker_;  // as long as there is a guess
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace evictd::app
