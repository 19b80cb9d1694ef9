#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "kube/credentials.hpp"
#include "kube/retry_delay.hpp"
#include "pods/spec_source.hpp"

namespace evictd::kube {
class Client;
struct Response;
}  // namespace evictd::kube

namespace evictd::pods {

struct KubeletSourceOptions {
  /// A new pod is asked about at once; what else changes of a spec may wait. An answer is some 10 KB a pod.
  core::Duration interval = std::chrono::seconds(10);
  /// Between two questions, however many pods are new: pods come in bursts.
  core::Duration least_interval = std::chrono::seconds(1);
  /// For an answer, which the kubelet has at hand.
  core::Duration deadline = std::chrono::seconds(5);
  kube::RetryLimits retry{.first = std::chrono::seconds(1), .longest = std::chrono::minutes(1)};
};

/// The kubelet's GET /pods (podSources.kubelet): its pods with their specs as it has them, static pods and resolved
/// priorities included, without an API server. It is asked at an interval, and at once when a pod is new.
class KubeletSource final : public SpecSource {
 public:
  /// `pool` parses answers. `files` reads credentials, as kube::Client says.
  KubeletSource(boost::asio::any_io_executor reactor, boost::asio::any_io_executor pool,
                boost::asio::any_io_executor files, kube::Credentials kubelet, KubeletSourceOptions options = {});
  ~KubeletSource() override;

  void look() override;

 private:
  void begin() override;
  void end() override;
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<Result<core::PodListPtr>> ask();
  boost::asio::awaitable<Result<core::PodListPtr>> parse(kube::Response response);
  [[nodiscard]] Error at_kubelet(const Error& error) const;

  boost::asio::any_io_executor reactor_;
  boost::asio::any_io_executor pool_;
  KubeletSourceOptions options_;
  std::unique_ptr<kube::Client> client_;
  kube::RetryDelay retry_;
  boost::asio::steady_timer timer_;
  std::optional<core::Duration> demanded_;  // by the last refusal's Retry-After
  std::optional<std::size_t> last_body_;    // the hash of the last good answer
  core::Instant asked_{};
  core::Instant next_{};
  bool failing_ = false;
  bool asking_ = false;
  bool wanted_ = false;  // look() was called while it was asking
  bool running_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // what is under way outlives this
};

}  // namespace evictd::pods
