#include "app/place_watch.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "cri/endpoint.hpp"
#include "os/below_root.hpp"

namespace asio = boost::asio;
namespace fs = std::filesystem;

namespace evictd::app {
namespace {

fs::path socket_file(std::string_view endpoint, const fs::path& root) {
  return os::below_root(root, endpoint.substr(cri::endpoint_scheme.size()));
}

/// Whether two endpoints are names of one socket, as with /var/run, which is /run. A socket that is not there yet is
/// compared by the directories that are.
bool is_same_socket(std::string_view one, std::string_view other, const fs::path& root) {
  const auto file = [&](std::string_view endpoint) {
    std::error_code ignored;
    return fs::weakly_canonical(socket_file(endpoint, root), ignored);
  };
  return one == other || file(one) == file(other);
}

std::string moved(std::string_view key, std::string_view now, std::string_view before) {
  return fmt::format("{} is {} by now, and not {}, where it was expected: evictd ends, to be started anew", key, now,
                     before);
}

}  // namespace

struct PlaceWatch::Seen {
  Discovery now{};
  bool looked_for_runtime = false;
  bool is_same_socket = false;  // by another name, it may be
  bool is_there = false;
};

PlaceWatch::PlaceWatch(asio::any_io_executor reactor, std::shared_ptr<async::Worker> worker, const Configuration& start,
                       Moved moved, Options options)
    : timer_{std::move(reactor)},
      worker_{std::move(worker)},
      agent_{start.agent},
      finds_endpoint_{start.written.cri.endpoint == config::to_be_found},
      kubelet_{start.kubelet_sources},
      recalled_{start.recalled},
      guesses_{start.guesses},
      moved_{std::move(moved)},
      options_{std::move(options)} {
  if (guesses_.any()) wait();
}

void PlaceWatch::kubelet_says(const Configuration& configuration) {
  if (recalled_ && !configuration.is_told) return;
  kubelet_ = configuration.kubelet_sources;
  if (names_another()) look();
}

/// By its words alone. One that names none need not mean what an earlier one named.
bool PlaceWatch::names_another() const {
  if (!finds_endpoint_) return false;
  const auto told = told_endpoint(kubelet_, agent_);
  return told ? *told != agent_.cri.endpoint : recalled_;
}

void PlaceWatch::wait() {
  timer_.expires_after(options_.between);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) look();
  });
}

/// The runtime is not asked: what is there by now is what counts. Who waits for a disk that hangs looks no more until
/// it answers.
void PlaceWatch::look() {
  if (std::exchange(looking_, true)) return;
  auto open = agent_;
  if (guesses_.endpoint || names_another()) open.cri.endpoint = config::to_be_found;
  if (guesses_.pods_cgroup) open.node.pods_cgroup = config::to_be_found;
  const auto seen = std::make_shared<Seen>();
  auto work = [seen, open = std::move(open), in_use = agent_.cri.endpoint, kubelet = kubelet_, root = options_.root] {
    seen->looked_for_runtime = open.cri.endpoint == config::to_be_found;
    seen->now = discover(open, kubelet, {}, root);
    const auto& endpoint = seen->now.agent.cri.endpoint;
    seen->is_same_socket = is_same_socket(endpoint, in_use, root);
    std::error_code ignored;
    seen->is_there = fs::exists(socket_file(endpoint, root), ignored);
  };
  worker_->run(std::move(work), [this, seen, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) found(*seen);
  });
}

void PlaceWatch::found(const Seen& seen) {
  const auto& now = seen.now;
  const auto& [endpoint, pods_cgroup] = now.guesses;
  // What is still a guess may have become another one, by the kubelet's file where the runtime was asked at the start.
  // A runtime that is not there yet is waited for here: a start while its kubelet is away would not take it either.
  if (!endpoint && !seen.is_same_socket && seen.is_there)
    return moved_(moved("cri.endpoint", now.agent.cri.endpoint, agent_.cri.endpoint));
  if (!pods_cgroup && now.agent.node.pods_cgroup != agent_.node.pods_cgroup)
    return moved_(moved("node.podsCgroup", now.agent.node.pods_cgroup, agent_.node.pods_cgroup));
  looking_ = false;
  guesses_ = now.guesses;
  if (seen.looked_for_runtime && seen.is_same_socket) {
    agent_.cri.endpoint = now.agent.cri.endpoint;  // as it is called by now, so that nobody looks into that name again
    recalled_ = false;
  }
  if (guesses_.any() || names_another()) wait();
}

}  // namespace evictd::app
