#include "pods/kubelet_source.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "async/offload.hpp"
#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "core/pod.hpp"
#include "kube/client.hpp"
#include "kube/message.hpp"
#include "os/now.hpp"
#include "pods/manifest.hpp"

namespace asio = boost::asio;

namespace evictd::pods {
namespace {

using os::now;

}  // namespace

KubeletSource::KubeletSource(asio::any_io_executor reactor, asio::any_io_executor pool, asio::any_io_executor files,
                             kube::Credentials kubelet, KubeletSourceOptions options)
    : SpecSource{SpecOrigin::Kubelet},
      reactor_{std::move(reactor)},
      pool_{std::move(pool)},
      options_{options},
      client_{std::make_unique<kube::Client>(reactor_, std::move(files), std::move(kubelet))},
      retry_{options.retry},
      timer_{reactor_} {}

KubeletSource::~KubeletSource() = default;

void KubeletSource::begin() {
  running_ = true;
  async::spawn(reactor_, run(), "asking the kubelet for its pods");
}

void KubeletSource::end() {
  running_ = false;
  client_->stop();
  timer_.cancel();
}

/// A kubelet that does not answer is left alone for as long as that was decided.
void KubeletSource::look() {
  wanted_ = asking_;
  if (asking_ || failing_ || !running_) return;
  next_ = std::min(next_, std::max(now(), asked_ + options_.least_interval));
  timer_.cancel();
}

/// Whatever it waits for, this may be gone afterwards.
asio::awaitable<void> KubeletSource::run() {
  const std::weak_ptr alive{alive_};
  while (running_) {
    asked_ = now();
    asking_ = true;
    wanted_ = false;
    auto pods = co_await ask();
    if (alive.expired() || !running_) co_return;
    asking_ = false;
    failing_ = !pods;
    if (pods) {
      retry_.succeeded(now());
      heard(*std::move(pods));
      next_ = wanted_ ? asked_ + options_.least_interval : asked_ + options_.interval;
    } else {
      next_ = now() + retry_.failed(now(), std::exchange(demanded_, {}));
      lost(at_kubelet(pods.error()));
    }
    while (running_ && now() < next_) {
      timer_.expires_at(next_);
      co_await async::wait(timer_);
      if (alive.expired()) co_return;
    }
  }
}

asio::awaitable<Result<core::PodListPtr>> KubeletSource::ask() {
  const std::weak_ptr alive{alive_};
  kube::Request request;
  request.target = "/pods";
  auto response = co_await client_->send(std::move(request), options_.deadline);
  if (!response) co_return std::unexpected(response.error());
  if (alive.expired()) co_return fail("stopped");
  if (!response->is_success()) {
    demanded_ = response->retry_after;
    co_return std::unexpected(Error{kube::describe(*response)});
  }
  co_return co_await parse(*std::move(response));
}

/// Most answers are equal to the last one.
asio::awaitable<Result<core::PodListPtr>> KubeletSource::parse(kube::Response response) {
  const std::weak_ptr alive{alive_};
  const auto hash = std::hash<std::string>{}(response.body);
  if (hash == last_body_) co_return pods();
  auto work = [body = std::move(response.body)] { return parse_pod_list_json(body, "its answer"); };
  auto parsed = co_await async::offload(pool_, std::move(work), now() + options_.deadline);
  if (!parsed || alive.expired()) co_return fail("its answer could not be read in time");
  if (!*parsed) co_return std::unexpected(parsed->error());

  last_body_ = hash;
  auto list = std::make_shared<core::PodList>();
  for (auto& pod : (*parsed)->pods) list->push_back(std::make_shared<const core::Pod>(std::move(pod)));
  auto unreadable = std::move((*parsed)->errors);
  std::ranges::move((*parsed)->doubts, std::back_inserter(unreadable));
  cannot_read(std::move(unreadable));
  co_return list;
}

/// The client's own errors name it already.
Error KubeletSource::at_kubelet(const Error& error) const {
  const bool named = error.message.starts_with(client_->url());
  return named ? error : error.in(client_->url() + "/pods");
}

}  // namespace evictd::pods
