#include "app/place_watch.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "async/offload.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::app {
namespace {

/// Of some files' names. Who waits longer waits for a disk that hangs, and looks no more until it answers.
constexpr auto longest_look = 10s;

std::string moved(std::string_view key, std::string_view now, std::string_view before) {
  return fmt::format("{} is {} by now, and not {}, where it was expected: evictd ends, to be started anew", key, now,
                     before);
}

}  // namespace

PlaceWatch::PlaceWatch(asio::any_io_executor reactor, const Configuration& start, Moved moved, Options options)
    : timer_{std::move(reactor)},
      agent_{start.agent},
      kubelet_{start.kubelet_sources},
      guesses_{start.guesses},
      moved_{std::move(moved)},
      options_{std::move(options)} {
  if (!guesses_.any()) return;
  worker_.emplace("looking for the runtime and the pods' cgroup");
  wait();
}

void PlaceWatch::wait() {
  timer_.expires_after(options_.between);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) look();
  });
}

/// The runtime is not asked: what is there by now is what counts.
void PlaceWatch::look() {
  auto open = agent_;
  if (guesses_.endpoint) open.cri.endpoint = config::to_be_found;
  if (guesses_.pods_cgroup) open.node.pods_cgroup = config::to_be_found;
  async::offload(
      timer_.get_executor(), worker_->get_executor(), alive_,
      [open = std::move(open), kubelet = kubelet_, root = options_.root] { return discover(open, kubelet, {}, root); },
      longest_look,
      [this](const std::optional<Discovery>& now) {
        if (now) found(*now);
      },
      [this](const Discovery& now) { found(now); });
}

void PlaceWatch::found(const Discovery& now) {
  const auto& [endpoint, pods_cgroup] = now.guesses;
  // What is still a guess may have become another one, by the kubelet's file where the runtime was asked at the start.
  if (!endpoint && now.agent.cri.endpoint != agent_.cri.endpoint)
    return moved_(moved("cri.endpoint", now.agent.cri.endpoint, agent_.cri.endpoint));
  if (!pods_cgroup && now.agent.node.pods_cgroup != agent_.node.pods_cgroup)
    return moved_(moved("node.podsCgroup", now.agent.node.pods_cgroup, agent_.node.pods_cgroup));
  guesses_ = now.guesses;
  if (guesses_.any()) return wait();
  worker_.reset();
}

}  // namespace evictd::app
