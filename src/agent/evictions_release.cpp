#include "agent/evictions.hpp"

#include <algorithm>

#include "async/spawn.hpp"
#include "core/signal.hpp"

// What an evicted pod gives back after its end, and the wait for it.

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

constexpr core::Duration between_readings = 200ms;

bool has_memory_volume(const core::Pod& pod) {
  return std::ranges::any_of(pod.volumes, [](const core::Volume& volume) {
    return volume.kind == core::Volume::Kind::EmptyDir && volume.medium == "Memory";
  });
}

}  // namespace

/// What lies on a disk stays where the machine goes down.
std::optional<core::DiskRelease> Evictions::disk_release(const evict::EvictionRecord& record) const {
  if (record.cause == core::EvictionCause{core::Displacement::NodeShutdown}) return std::nullopt;
  if (record.acted && core::is_disk(record.acted->threshold.signal))
    return core::DiskRelease{record.acted->threshold.signal, record.expected_release,
                             record.acted->observation.available};
  if (record.disk_release || parts_.policy == nullptr) return record.disk_release;
  return parts_.policy->disk_release(record.pod->uid);
}

/// A file system has its blocks back when its journal commits (ext4: within 5 s), later than the runtime has removed
/// the layer, and a kubelet removes a pod's volumes seconds after its end. Until then what the pod used counts as
/// coming back.
asio::awaitable<void> Evictions::wait_for_disk(const evict::EvictionRecord& record, core::Instant give_up) {
  const auto release = disk_release(record);
  if (!release) co_return;
  const auto wanted = release->available + release->amount / 2;
  while (parts_.clock.now() < give_up && !stopping_ && !is_listed_anew(record)) {
    const auto reading = co_await parts_.observer.read_with_disks();
    const auto now = reading ? reading->observations[release->signal] : std::nullopt;
    if (now && now->available >= wanted) co_return;
    co_await parts_.clock.sleep(between_readings);
  }
}

/// The kubelet alone unmounts what it has mounted. Nobody waits for the answer: the processes outlive the question.
void Evictions::look_for_kubelet(const core::Pod& pod) {
  if (parts_.kubelet == nullptr || !has_memory_volume(pod)) return;
  async::spawn(reactor_, see_whether_kubelet_runs(), "looking for a kubelet");
}

asio::awaitable<void> Evictions::see_whether_kubelet_runs() {
  const auto give_up = parts_.clock.now() + patience_after_the_end;
  const auto runs = co_await parts_.kubelet->kubelet_runs(give_up);
  kubelet_runs_ = runs.value_or(true);
}

/// Whether files in a tmpfs of the pod's own go with its volumes: not where a kubelet has started it again.
bool Evictions::awaits_unmount(const evict::EvictionRecord& record) const {
  return kubelet_runs_ && record.killed && has_memory_volume(*record.pod) && !is_listed_anew(record);
}

bool Evictions::is_listed_anew(const evict::EvictionRecord& record) const {
  const auto pod = parts_.pods.find(record.pod->uid);
  return record.killed && pod != nullptr && runs_again(record, *pod);
}

asio::awaitable<void> Evictions::wait_for_unmount(const evict::EvictionRecord& record, core::Instant give_up) {
  const auto wanted = parts_.usage.held_by_tmpfs(record.pod->uid) / 2;
  while (parts_.clock.now() < give_up && awaits_unmount(record) && !stopping_ &&
         parts_.usage.held_by_tmpfs(record.pod->uid) > wanted)
    co_await parts_.clock.sleep(between_readings);
}

}  // namespace evictd::agent
