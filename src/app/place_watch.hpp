#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "app/configuration.hpp"
#include "app/discovery.hpp"
#include "async/worker.hpp"
#include "config/agent_configuration.hpp"
#include "core/duration.hpp"
#include "kubelet/configuration.hpp"

namespace evictd::app {

/// As long as a place is a guess (Guesses), looks whether it is there by now, and where. A node that boots has neither
/// a runtime's socket nor pods when evictd starts, and evictd would wait at the wrong one for ever: k3s, for one, has
/// its socket elsewhere, and starts after everybody. What was found there may be wrong as well, such as the socket of
/// Docker's containerd: a kubelet that comes later says which it is. On the reactor; it looks beside it.
class PlaceWatch {
 public:
  /// "cri.endpoint is unix:///run/k3s/containerd/containerd.sock by now, and not …". Called once.
  using Moved = std::function<void(const std::string& what)>;
  struct Options {
    core::Duration between = std::chrono::seconds(5);
    std::filesystem::path root = "/";  ///< see find_kubelet_configuration()
  };

  /// `start`: what was found at the start. `worker`: looks at the disk.
  PlaceWatch(boost::asio::any_io_executor reactor, std::shared_ptr<async::Worker> worker, const Configuration& start,
             Moved moved, Options options);
  PlaceWatch(boost::asio::any_io_executor reactor, std::shared_ptr<async::Worker> worker, const Configuration& start,
             Moved moved)
      : PlaceWatch{std::move(reactor), std::move(worker), start, std::move(moved), Options{}} {}

  /// By what the node's kubelet goes by now. Another runtime than the one in use that it names is a place that moved
  /// once its socket is there, unless the configuration itself says where the runtime is. What was recalled at the
  /// start holds until a kubelet says something itself, be it that it names none.
  void kubelet_says(const Configuration& configuration);

 private:
  struct Seen;
  [[nodiscard]] bool names_another() const;
  void wait();
  void look();
  void found(const Seen& seen);

  boost::asio::steady_timer timer_;
  std::shared_ptr<async::Worker> worker_;
  config::AgentConfiguration agent_;
  bool finds_endpoint_;  // cri.endpoint is not the operator's
  kubelet::Configuration kubelet_;
  bool recalled_;  // the runtime in use is one that a kubelet named before evictd started
  Guesses guesses_;
  Moved moved_;
  Options options_;
  bool looking_ = false;  // and for good once something moved
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace evictd::app
