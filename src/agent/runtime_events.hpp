#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "agent/clock.hpp"
#include "core/duration.hpp"
#include "cri/client.hpp"
#include "cri/reply.hpp"
#include "cri/stream.hpp"

namespace evictd::agent {

/// Has the pods listed.
class RuntimeEventListener {
 public:
  /// Something happened to a sandbox or a container of the runtime, or may have happened unheard. What it was, a list
  /// says that is asked for from now on.
  virtual void on_runtime_event() = 0;

 protected:
  ~RuntimeEventListener() = default;
};

/// The runtime's own word on its pods (CRI GetContainerEvents: containerd 1.7 and later), for as long as it can be had.
/// Nothing that an event says is believed: each has the pods listed, so neither garbage nor a lost event misleads.
///
/// A stream that breaks is opened again after 0.1 s, then after twice as long each time, up to 30 s. A runtime that has
/// no such stream is asked again when it next appears. A flood is read at 1000 events a second, and makes the runtime
/// wait. On the reactor.
class RuntimeEvents {
 public:
  /// How long a new stream must last until it counts without having said anything.
  static constexpr core::Duration probation = std::chrono::seconds(1);

  /// All of these must outlive this. `kubelet_listens`: the node's kubelet reads
  /// these events too (its feature EventedPLEG). containerd 1.x has one queue for all, so evictd leaves it to the
  /// kubelet there.
  RuntimeEvents(boost::asio::any_io_executor reactor, cri::Client& runtime, const Clock& clock, bool kubelet_listens);

  /// Tells the listener, which outlives this, until stop(). Once.
  void start(RuntimeEventListener& listener);
  void stop();
  /// The runtime of this name and version ("containerd 1.7.24") is there, or is there again: it is listened to at once.
  void appeared(const std::string& runtime);

  /// Whether it is being listened to: then whatever happens to a pod is told.
  [[nodiscard]] bool heard() const { return heard_; }
  /// A list had something new of which nothing was told: the stream is opened anew.
  void reconnect();

 private:
  boost::asio::awaitable<void> listen_again_and_again(RuntimeEventListener& listener);
  boost::asio::awaitable<void> listen(RuntimeEventListener& listener);
  boost::asio::awaitable<void> hold_back();
  boost::asio::awaitable<void> end_probation(RuntimeEventListener& listener);
  void hear();
  /// Whether it had been heard.
  [[nodiscard]] bool ended(const cri::CallError& error);

  boost::asio::any_io_executor reactor_;
  cri::Client& runtime_;
  const Clock& clock_;
  bool kubelet_listens_;

  std::unique_ptr<cri::Stream<cri::v1::ContainerEventResponse>> stream_;
  boost::asio::steady_timer next_try_;
  boost::asio::steady_timer probation_;
  core::Duration delay_;  // before the next try
  core::Instant opened_;  // the stream
  core::Instant window_;  // in which `read_` events were read
  int read_ = 0;
  bool is_offered_ = true;
  bool heard_ = false;
  bool stopping_ = false;
  std::string error_;  // why the last stream ended
};

}  // namespace evictd::agent
