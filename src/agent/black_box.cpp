#include "agent/black_box.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace evictd::agent {
namespace {

std::int64_t shown(const node::PodMemorySnapshot& snapshot) {
  std::int64_t bytes = 0;
  for (const auto& process : snapshot.processes) bytes += process.resident;
  return bytes;
}

}  // namespace

struct BlackBox::Looked {
  struct Pod {
    std::string uid;
    std::vector<std::string> cgroups;
    std::optional<node::PodMemorySnapshot> snapshot{};
  };
  std::vector<Pod> pods;
};

struct BlackBox::Asked {
  std::string uid;
  core::Instant killed;
  Kept kept;
  Tell tell;
};

BlackBox::BlackBox(boost::asio::any_io_executor reactor, std::unique_ptr<async::Worker> worker,
                   std::shared_ptr<const node::SnapshotReader> reader)
    : reactor_{std::move(reactor)}, worker_{std::move(worker)}, reader_{std::move(reader)} {}

/// While a look is under way none is begun: the next one is a second away.
void BlackBox::look(std::span<const pods::RuntimePodPtr> pods, core::Instant now) {
  pods = pods.first(std::min(pods.size(), most_pods));
  std::erase_if(kept_, [&](const auto& entry) {
    return std::ranges::none_of(pods, [&](const auto& pod) { return pod->pod->uid == entry.first; });
  });
  if (worker_ == nullptr || is_looking_ || pods.empty() || looked_ > now - between_looks) return;
  looked_ = now;
  for (const auto& pod : pods) kept_.try_emplace(pod->pod->uid);
  read(pods);
}

void BlackBox::begun(const pods::RuntimePodPtr& pod) {
  if (worker_ == nullptr) return;
  if (going_.size() >= most_pods) going_.erase(going_.begin());
  auto& going = going_[pod->pod->uid];
  if (auto kept = kept_.extract(pod->pod->uid)) going = std::move(kept.mapped());
  if (!is_looking_) read({&pod, 1});
}

void BlackBox::read(std::span<const pods::RuntimePodPtr> pods) {
  is_looking_ = true;
  const auto looked = std::make_shared<Looked>();
  for (const auto& pod : pods) looked->pods.push_back({pod->pod->uid, pods::own_cgroups(*pod)});
  const auto work = [looked, reader = reader_] {
    auto left = most_processes;
    for (auto& pod : looked->pods) pod.snapshot = reader->read(pod.cgroups, left);
  };
  worker_->run(work, [this, looked] { took(*looked); });
}

void BlackBox::took(Looked& looked) {
  is_looking_ = false;
  for (auto& pod : looked.pods) {
    if (!pod.snapshot) continue;
    const auto asked = std::ranges::find(asked_, pod.uid, [](const auto& each) { return each->uid; });
    if (asked != asked_.end() && pod.snapshot->time <= (*asked)->killed) keep((*asked)->kept, *pod.snapshot);
    for (auto* pods : {&kept_, &going_})
      if (const auto kept = pods->find(pod.uid); kept != pods->end()) keep(kept->second, *pod.snapshot);
  }
}

void BlackBox::keep(Kept& kept, node::PodMemorySnapshot snapshot) const {
  kept.growth.push_back({snapshot.time, snapshot.usage});
  while (snapshot.time - kept.growth.front().time > growth_kept) kept.growth.pop_front();
  kept.snapshot = std::make_shared<const node::PodMemorySnapshot>(std::move(snapshot));
}

void BlackBox::killed(const pods::RuntimePod& pod, core::Instant time, Tell tell) {
  const auto& uid = pod.pod->uid;
  const auto asked = std::make_shared<Asked>(Asked{uid, time, {}, std::move(tell)});
  for (auto* pods : {&kept_, &going_})
    if (auto kept = pods->extract(uid)) asked->kept = std::move(kept.mapped());
  const auto& snapshot = asked->kept.snapshot;
  const bool serves = snapshot != nullptr && time - snapshot->time <= serves_for;
  // Where the thread hangs no more than these wait for it.
  if (serves || worker_ == nullptr || asked_.size() >= most_pods)
    return boost::asio::post(reactor_, [this, asked] { finish(asked, std::nullopt); });
  asked_.push_back(asked);
  const auto after = std::make_shared<Looked>();
  after->pods.push_back({uid, pods::own_cgroups(pod)});
  const auto work = [after, reader = reader_] {
    auto left = most_processes;
    after->pods.front().snapshot = reader->read(after->pods.front().cgroups, left);
  };
  worker_->run(work, [this, asked, after] { finish(asked, std::move(after->pods.front().snapshot)); });
}

void BlackBox::finish(const std::shared_ptr<Asked>& asked, std::optional<node::PodMemorySnapshot> read) {
  std::erase(asked_, asked);
  auto& kept = asked->kept;
  if (read && (kept.snapshot == nullptr || shown(*read) >= shown(*kept.snapshot)))
    kept.snapshot = std::make_shared<const node::PodMemorySnapshot>(*std::move(read));
  asked->tell({kept.snapshot, {kept.growth.begin(), kept.growth.end()}});
}

std::size_t BlackBox::size() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(kept_, [](const auto& entry) { return entry.second.snapshot != nullptr; }));
}

}  // namespace evictd::agent
