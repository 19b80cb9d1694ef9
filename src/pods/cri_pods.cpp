#include "pods/cri_pods.hpp"

#include <api.pb.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "async/wait_all.hpp"
#include "cri/reply.hpp"
#include "pods/annotated_spec.hpp"

namespace evictd::pods {
namespace {

namespace asio = boost::asio;
namespace v1 = cri::v1;

/// A status takes the runtime about 1 ms; so many at a time leave each far from its deadline even on a slow machine.
constexpr std::size_t statuses_at_a_time = 16;

/// Of several sandboxes with one uid the latest is the pod: the kubelet makes a new one when the old has failed.
std::vector<v1::PodSandbox> latest_ready(v1::ListPodSandboxResponse&& response) {
  const auto age = [](const v1::PodSandbox& s) { return std::tuple(s.metadata().attempt(), s.created_at()); };
  std::map<std::string, v1::PodSandbox> by_uid;
  for (auto& sandbox : *response.mutable_items()) {
    if (sandbox.state() != v1::SANDBOX_READY) continue;
    // A sandbox that no kubelet made may have no uid.
    if (sandbox.metadata().uid().empty()) sandbox.mutable_metadata()->set_uid(sandbox.id());
    auto& latest = by_uid[sandbox.metadata().uid()];
    if (latest.id().empty() || age(latest) < age(sandbox)) latest = std::move(sandbox);
  }

  std::vector<v1::PodSandbox> sandboxes;
  sandboxes.reserve(by_uid.size());
  for (auto& [uid, sandbox] : by_uid) sandboxes.push_back(std::move(sandbox));
  std::ranges::sort(sandboxes, {}, [](const auto& s) { return std::tuple(s.created_at(), std::string_view(s.id())); });
  return sandboxes;
}

/// Adds what the statuses say about each id; one that is gone gets nothing. Stops where the runtime itself is gone.
template <class SomeFacts, class Ask>
asio::awaitable<cri::Reply<void>> read_statuses(std::vector<std::string> ids, std::map<std::string, SomeFacts>& facts,
                                                Ask ask) {
  for (std::size_t begin = 0; begin < ids.size(); begin += statuses_at_a_time) {
    const auto batch = std::span(ids).subspan(begin, std::min(statuses_at_a_time, ids.size() - begin));
    std::vector<decltype(ask(ids.front()))> calls;
    calls.reserve(batch.size());
    for (const auto& id : batch) calls.push_back(ask(id));

    const auto replies = co_await async::wait_all(std::move(calls));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (replies[i]) {
        facts.insert_or_assign(batch[i], SomeFacts::of(*replies[i]));
        continue;
      }
      const auto& [failure, error] = replies[i].error();
      if (failure == cri::Failure::Unavailable || failure == cri::Failure::Cancelled)
        co_return std::unexpected(replies[i].error());
      if (failure == cri::Failure::NotFound)
        facts.erase(batch[i]);
      else
        facts[batch[i]].complaint = error;  // an earlier status still holds
    }
  }
  co_return cri::Reply<void>{};
}

/// Copies what is known about the id; true if its status has to be read.
template <class SomeFacts, class IsStale>
bool take_over(const std::map<std::string, SomeFacts>& known, const std::string& id,
               std::map<std::string, SomeFacts>& facts, IsStale is_stale) {
  const auto found = known.find(id);
  if (found == known.end()) return true;
  facts.insert(*found);
  return found->second.complaint || is_stale(found->second);
}

void read_spec_once(const v1::PodSandbox& sandbox, SandboxFacts& facts) {
  const auto annotation = sandbox.annotations().find(std::string(pod_spec_annotation));
  if (facts.spec || annotation == sandbox.annotations().end()) return;
  facts.spec = std::make_shared<const Result<core::Pod>>(read_annotated_spec(annotation->second));
}

}  // namespace

asio::awaitable<Result<void>> CriPods::refresh() {
  auto snapshot = co_await fetch();
  if (!snapshot) co_return std::unexpected(snapshot.error());
  publish(*std::move(snapshot));
  co_return Result<void>{};
}

asio::awaitable<Result<CriPods::Snapshot>> CriPods::fetch() {
  const auto number = ++begun_;
  const auto listing = co_await list();
  if (!listing) co_return fail(listing.error().error, "cannot list the node's pods");
  auto facts = co_await facts_about(*listing);
  if (!facts) co_return fail(facts.error().error, "cannot read the status of the node's pods");
  co_return assemble(*listing, std::move(*facts), number);
}

asio::awaitable<cri::Reply<CriPods::Listing>> CriPods::list() {
  auto sandboxes = co_await client_.list_pod_sandboxes();
  if (!sandboxes) co_return std::unexpected(std::move(sandboxes.error()));
  auto containers = co_await client_.list_containers();
  if (!containers) co_return std::unexpected(std::move(containers.error()));

  Listing listing{.sandboxes = latest_ready(std::move(*sandboxes)), .containers = {}};
  for (const auto& sandbox : listing.sandboxes) listing.containers[sandbox.id()];
  for (auto& container : *containers->mutable_containers()) {
    const auto its_pod = listing.containers.find(container.pod_sandbox_id());
    if (its_pod != listing.containers.end()) its_pod->second.push_back(std::move(container));
  }
  for (auto& [sandbox, containers_of_pod] : listing.containers)
    std::ranges::sort(containers_of_pod, {},
                      [](const auto& c) { return std::tuple(c.created_at(), std::string_view(c.id())); });
  co_return listing;
}

asio::awaitable<cri::Reply<CriPods::Facts>> CriPods::facts_about(const Listing& listing) {
  Facts facts;
  std::vector<std::string> sandboxes;
  std::vector<std::string> containers;
  for (const auto& sandbox : listing.sandboxes) {
    const auto never = [](const SandboxFacts&) { return false; };
    if (take_over(facts_.sandboxes, sandbox.id(), facts.sandboxes, never)) sandboxes.push_back(sandbox.id());
    for (const auto& container : listing.containers.at(sandbox.id())) {
      const auto started = [&](const ContainerFacts& known) {
        return container.state() == v1::CONTAINER_RUNNING && !known.running;
      };
      if (take_over(facts_.containers, container.id(), facts.containers, started)) containers.push_back(container.id());
    }
  }

  const auto read_sandboxes = co_await read_statuses(
      std::move(sandboxes), facts.sandboxes, [this](const std::string& id) { return client_.pod_sandbox_status(id); });
  if (!read_sandboxes) co_return std::unexpected(read_sandboxes.error());
  const auto read_containers = co_await read_statuses(
      std::move(containers), facts.containers, [this](const std::string& id) { return client_.container_status(id); });
  if (!read_containers) co_return std::unexpected(read_containers.error());
  co_return facts;
}

CriPods::Snapshot CriPods::assemble(const Listing& listing, Facts facts, std::uint64_t number) const {
  Snapshot snapshot;
  snapshot.number_ = number;
  for (const auto& sandbox : listing.sandboxes) {
    const auto known = facts.sandboxes.find(sandbox.id());
    if (known == facts.sandboxes.end()) continue;  // gone since it was listed
    std::vector<KnownContainer> containers;
    for (const auto& container : listing.containers.at(sandbox.id()))
      if (const auto its = facts.containers.find(container.id()); its != facts.containers.end())
        containers.push_back({&container, &its->second});

    read_spec_once(sandbox, known->second);
    snapshot.pods_.push_back(std::make_shared<const RuntimePod>(
        pods::assemble(sandbox, known->second, containers, memory_capacity_, trusted_, snapshot.warnings_)));
  }
  snapshot.facts_ = std::move(facts);
  return snapshot;
}

void CriPods::publish(Snapshot snapshot) {
  if (snapshot.number_ <= published_) return;
  published_ = snapshot.number_;
  facts_ = std::move(snapshot.facts_);
  const auto is_known = [](const auto& fact) { return !fact.second.complaint; };
  is_complete_ = std::ranges::all_of(facts_.sandboxes, is_known) && std::ranges::all_of(facts_.containers, is_known);
  runtime_pods_ = std::move(snapshot.pods_);
  auto pods = std::make_shared<core::PodList>();
  by_uid_.clear();
  by_escaped_uid_.clear();
  for (const auto& pod : runtime_pods_) {
    pods->push_back(pod->pod);
    by_uid_.emplace(pod->pod->uid, pod);
    by_escaped_uid_.emplace(escaped_uid(pod->pod->uid), pod);
  }
  pods_ = std::move(pods);
  warn(std::move(snapshot.warnings_));
}

void CriPods::warn(std::vector<Error> warnings) {
  std::set<std::string> present;
  for (auto& warning : warnings)
    if (present.insert(warning.message).second && !known_warnings_.contains(warning.message))
      new_warnings_.push_back(std::move(warning));
  known_warnings_ = std::move(present);
}

RuntimePodPtr CriPods::find(std::string_view uid) const {
  const auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? nullptr : found->second;
}

RuntimePodPtr CriPods::find(const NamedUid& named) const {
  if (!named.escaped) return find(named.uid);
  const auto found = by_escaped_uid_.find(escaped_uid(named.uid));
  return found == by_escaped_uid_.end() ? nullptr : found->second;
}

std::vector<Error> CriPods::take_warnings() { return std::exchange(new_warnings_, {}); }

}  // namespace evictd::pods
