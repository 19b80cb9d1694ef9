#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>

#include "agent/alarms.hpp"
#include "agent/clock.hpp"
#include "agent/running_pods.hpp"
#include "agent/runtime_events.hpp"
#include "cri/client.hpp"
#include "cri/presence.hpp"
#include "evict/node_reclaim.hpp"
#include "node/node_disk.hpp"

namespace evictd::agent {

/// Looks after the runtime: whenever it appears its pods are listed, it is listened to for what happens to them, and
/// the way that a kill goes is warmed up; where its images lie is found out, and which of them are in use is looked at
/// now and then. On the reactor.
class RuntimeWatch final : private cri::PresenceListener {
 public:
  /// All of these must outlive this.
  struct Parts {
    cri::Client& runtime;
    evict::NodeReclaimer& reclaimer;
    node::NodeDisk& disk;
    RunningPods& pods;
    RuntimeEvents& events;
    Alarms& alarms;
    const Clock& clock;
  };

  RuntimeWatch(boost::asio::any_io_executor reactor, Parts parts);

  /// Begins; once. Until stop().
  void start();
  void stop();

  /// Of the last connection: "containerd 1.6.20"; empty before the first.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void presence_changed(const cri::Presence& presence) override;
  boost::asio::awaitable<void> watch_images();
  boost::asio::awaitable<void> look_at_images();
  boost::asio::awaitable<void> find_image_filesystem();
  void keep_looking(std::string error);
  [[nodiscard]] bool has_found_images() const;

  boost::asio::any_io_executor reactor_;
  Parts parts_;
  boost::asio::steady_timer timer_;
  std::string name_;
  std::string error_;  // of the last search for the image file system
  bool stopping_ = false;
};

}  // namespace evictd::agent
