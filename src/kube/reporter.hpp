#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <string_view>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pressure.hpp"
#include "core/signal.hpp"
#include "kube/message.hpp"
#include "kube/pod_objects.hpp"
#include "kube/report_options.hpp"
#include "kube/report_queue.hpp"
#include "kube/retry_delay.hpp"

namespace evictd::kube {

/// One request to the API server, with a deadline of its own; does not throw.
using Send = std::function<boost::asio::awaitable<Result<Response>>(Request)>;

/// Reports to the cluster what evictd did. A report is only queued: callers never wait for the API server. On the
/// reactor.
class Reporter {
 public:
  Reporter(const boost::asio::any_io_executor& reactor, ReportOptions options, Send send, Tell tell,
           Random random = any_random());
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  /// See ReportQueue for all six.
  void evicted(Eviction eviction);
  void returned(std::string_view uid);
  void seen(std::string_view uid, std::string_view phase, std::string_view reason);
  void threshold_met(std::string_view resource);
  void node_conditions(const core::NodeConditions& conditions);
  void node_shutdown(const NodeShutdown& shutdown);

  /// Sends, one request after the other, for ever.
  [[nodiscard]] boost::asio::awaitable<void> run();
  /// Waits until all about pods and every Event is sent, at most so long: what waits is lost when evictd ends. run()
  /// must run.
  [[nodiscard]] boost::asio::awaitable<void> drain(core::Duration patience);

  [[nodiscard]] ReportStatus status() const { return queue_.status(); }

 private:
  ReportQueue queue_;
  Send send_;
  boost::asio::steady_timer timer_;
};

}  // namespace evictd::kube
