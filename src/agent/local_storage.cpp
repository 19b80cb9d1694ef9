#include "agent/local_storage.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "async/sleep.hpp"
#include "core/local_storage.hpp"
#include "wake/source.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

node::PodName name_of(const core::Pod& pod) { return {pod.uid, pod.name_space, pod.name}; }

std::vector<node::PodName> names_of(const core::PodList& pods) {
  std::vector<node::PodName> names;
  names.reserve(pods.size());
  for (const auto& pod : pods) names.push_back(name_of(*pod));
  return names;
}

}  // namespace

LocalStorage::LocalStorage(const asio::any_io_executor& reactor, Options options, Parts parts)
    : options_{std::move(options)}, parts_{parts}, timer_{reactor} {}

asio::awaitable<void> LocalStorage::run() {
  while (!stopping_) {
    if (auto pods = due(*pods_with_limits()); !pods->empty()) {
      co_await parts_.usage.measure_disk(std::move(pods), Usage::Layers::told);
      parts_.alarms.notify({core::WakeSource::Disk, "the pods' local storage was measured", parts_.clock.now()});
    }
    // What was marked while it was measured, or has come to the limited pods meanwhile, is measured after a breath.
    const auto limited = pods_with_limits();
    if (limited->empty())
      timer_.expires_at(asio::steady_timer::time_point::max());  // until limits_changed()
    else
      timer_.expires_after(due(*limited)->empty() ? std::min(options_.longest_wait, parts_.disk.interval()) : 1s);
    co_await async::wait(timer_);
  }
}

void LocalStorage::stop() {
  stopping_ = true;
  timer_.cancel();
}

void LocalStorage::files_changed(const std::string& uid) {
  parts_.disk.mark_dirty(uid);
  timer_.cancel();
}

void LocalStorage::keep_only(const core::PodList& pods) { parts_.disk.keep_only(names_of(pods)); }

void LocalStorage::watch(const core::PodList& pods) {
  decltype(watched_) next;
  auto all = std::make_shared<wake::WatchedPods>();
  all->reserve(pods.size());
  for (const auto& pod : pods) {
    auto known = watched_.extract(pod->uid);
    auto& watched = next[pod->uid];
    if (known) watched = std::move(known.mapped());
    if (watched.files == nullptr || watched.name_space != pod->name_space || watched.name != pod->name)
      watched = {
          pod->name_space, pod->name,
          std::make_shared<const wake::PodFiles>(pod->uid, node::local_directories(options_.roots, name_of(*pod)))};
    all->push_back(watched.files);
  }
  watched_ = std::move(next);
  parts_.alarms.watch_files(std::move(all));
}

core::PodListPtr LocalStorage::pods_with_limits() const {
  auto limited = std::make_shared<core::PodList>();
  for (const auto& pod : *parts_.catalog.complete(parts_.pods.pods()))
    if (core::has_local_storage_limits(*pod)) limited->push_back(pod);
  return limited;
}

core::PodListPtr LocalStorage::due(const core::PodList& pods) const {
  auto result = std::make_shared<core::PodList>();
  const auto names = parts_.disk.due(names_of(pods), parts_.clock.now());  // in the pods' order
  auto next = names.begin();
  for (const auto& pod : pods) {
    if (next == names.end() || next->uid != pod->uid) continue;
    result->push_back(pod);
    ++next;
  }
  return result;
}

}  // namespace evictd::agent
