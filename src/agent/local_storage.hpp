#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/alarms.hpp"
#include "agent/clock.hpp"
#include "agent/usage.hpp"
#include "core/duration.hpp"
#include "core/pod.hpp"
#include "node/pod_directories.hpp"
#include "node/pod_disk.hpp"
#include "pods/catalog.hpp"
#include "pods/cri_pods.hpp"
#include "wake/source.hpp"

namespace evictd::agent {

/// Keeps what is known of the disk usage of pods that have limits of their own, and has the node looked at again when
/// there is news. Pods are measured when they are due: at the interval, or soon after they wrote. On the reactor.
class LocalStorage {
 public:
  struct Options {
    node::PodRoots roots{};         ///< where pods' volumes and logs lie
    core::Duration longest_wait{};  ///< between two looks at which pods are due
  };
  /// All of these must outlive this.
  struct Parts {
    node::PodDisk& disk;
    Usage& usage;
    const pods::CriPods& pods;
    pods::Catalog& catalog;
    Alarms& alarms;
    const Clock& clock;
  };

  LocalStorage(const boost::asio::any_io_executor& reactor, Options options, Parts parts);

  /// Until stop().
  [[nodiscard]] boost::asio::awaitable<void> run();
  void stop();

  /// There are other pods, or other limits: looks now which of them are due.
  void limits_changed() { timer_.cancel(); }
  /// A pod wrote to its volumes or logs: measures them now if it has a limit.
  void files_changed(const std::string& uid);

  /// Forgets what was measured of pods that are not among these.
  void keep_only(const core::PodList& pods);
  /// Has these pods' files watched from now on.
  void watch(const core::PodList& pods);

 private:
  /// A pod whose files are watched, by what its directories are named after.
  struct Watched {
    std::string name_space;
    std::string name;
    std::shared_ptr<const wake::PodFiles> files{};
  };

  [[nodiscard]] core::PodListPtr pods_with_limits() const;
  /// Those that are to be measured now: a pod that rests after a long walk is not, whoever else wrote.
  [[nodiscard]] core::PodListPtr due(const core::PodList& pods) const;

  Options options_;
  Parts parts_;
  boost::asio::steady_timer timer_;
  std::map<std::string, Watched, std::less<>> watched_;  // by uid
  bool stopping_ = false;
};

}  // namespace evictd::agent
