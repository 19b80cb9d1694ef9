#pragma once
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <utility>

#include "async/deadline_thread.hpp"
#include "async/offload.hpp"
#include "core/duration.hpp"
#include "node/kubelet_lookout.hpp"

namespace evictd::test {

/// Answers on a thread, which may keep it waiting.
struct SlowLookout final : node::KubeletLookout {
  boost::asio::awaitable<std::optional<bool>> kubelet_runs(core::Instant give_up) override {
    auto look = [this] {
      before_the_answer();
      return kubelet.load();
    };
    auto looking = async::offload(thread.get_executor(), std::move(look), give_up);
    const auto runs = co_await std::move(looking);
    co_return runs;
  }

  std::atomic<bool> kubelet = false;
  std::function<void()> before_the_answer = [] {};
  async::DeadlineThread thread{"answering in a test"};
};

}  // namespace evictd::test
