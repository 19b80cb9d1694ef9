#include "pods/cri_pods.hpp"

#include <api.pb.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "async/wait_all.hpp"
#include "cri/reply.hpp"
#include "pods/annotated_spec.hpp"
#include "pods/assemble.hpp"
#include "pods/listed_pods.hpp"

namespace evictd::pods {
namespace {

namespace asio = boost::asio;
namespace v1 = cri::v1;

/// A status takes the runtime about 1 ms; so many at a time leave each far from its deadline even on a slow machine.
constexpr std::size_t statuses_at_a_time = 16;

/// In bytes, of JSON. The reactor reads some 0.1 ms in it, and a batch comes in one turn. containerd says a few KiB,
/// but of a container with a large environment up to 16 MiB, which take 100 ms.
constexpr std::size_t quickly_read = 32 << 10;

/// Of whose status what is absent is to be told.
template <class SomeFacts>
struct Question {
  std::string id;
  std::optional<SomeFacts>* answer;
};

template <class SomeFacts, class Status>
asio::awaitable<cri::Reply<SomeFacts>> read_facts(cri::Client& client, cri::Awaitable<Status> call) {
  auto status = co_await std::move(call);
  if (!status) co_return std::unexpected(std::move(status.error()));
  std::size_t size = 0;
  for (const auto& [key, json] : status->info()) size += json.size();
  if (size <= quickly_read) co_return SomeFacts::of(*status);

  const auto facts = std::make_shared<SomeFacts>();
  auto read = [facts, large = std::move(*status)] { *facts = SomeFacts::of(large); };
  const auto done = co_await client.read_on(std::move(read));
  if (!done) co_return std::unexpected(done.error());
  co_return std::move(*facts);
}

/// One that is gone has no answer. Stops where the runtime itself is gone.
template <class SomeFacts, class Ask>
asio::awaitable<cri::Reply<void>> read_statuses(std::vector<Question<SomeFacts>> questions, Ask ask) {
  for (auto left = std::span{questions}; !left.empty();) {
    const auto batch = left.first(std::min(statuses_at_a_time, left.size()));
    left = left.subspan(batch.size());
    std::vector<decltype(ask(std::string{}))> calls;
    calls.reserve(batch.size());
    for (const auto& question : batch) calls.push_back(ask(question.id));

    auto replies = co_await async::wait_all(std::move(calls));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      auto& answer = *batch[i].answer;
      if (replies[i]) {
        answer = *std::move(replies[i]);
        continue;
      }
      const auto& [failure, error, too_large] = replies[i].error();
      if (failure == cri::Failure::Unavailable || failure == cri::Failure::Cancelled)
        co_return std::unexpected(replies[i].error());
      if (failure == cri::Failure::NotFound) {
        answer.reset();
      } else {
        if (!answer) answer.emplace();
        answer->complaint = error;  // an earlier status still holds
      }
    }
  }
  co_return cri::Reply<void>{};
}

/// What a container has in its environment may make its verbose status larger than a runtime sends. By the plain one it
/// is known in part, and is put down in `plain`.
asio::awaitable<cri::Reply<v1::ContainerStatusResponse>> container_status(cri::Client& client, std::string id,
                                                                          std::set<std::string>& plain) {
  auto status = co_await client.container_status(id);
  if (status || !status.error().too_large) co_return status;
  status = co_await client.plain_container_status(id);
  if (status) plain.insert(std::move(id));
  co_return status;
}

bool has_started(const v1::Container& listed, const ContainerFacts& known) {
  return listed.state() == v1::CONTAINER_RUNNING && !known.running;
}

void read_spec_once(const v1::PodSandbox& sandbox, SandboxFacts& facts) {
  const auto annotation = sandbox.annotations().find(std::string(pod_spec_annotation));
  if (facts.spec || annotation == sandbox.annotations().end()) return;
  facts.spec = std::make_shared<const Result<core::Pod>>(read_annotated_spec(annotation->second));
}

}  // namespace

/// What is known of a sandbox and its containers.
struct CriPods::KnownPod {
  SandboxFacts sandbox{};
  std::vector<ContainerFacts> containers{};  // beside the pod's
  RuntimePodPtr pod{};
  std::size_t fingerprint = 0;  // of what was listed
  std::vector<Error> doubts{};

  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] bool stands(const ListedPod& listed) const;
  [[nodiscard]] std::vector<std::optional<ContainerFacts>> facts_of(const ListedPod& listed) const;
};

/// What is learnt of a pod that is new, or of which a list says something else. Answers are absent until they are
/// known.
struct CriPods::Draft {
  std::size_t place;  // among the listed
  ListedPod listed;
  std::optional<SandboxFacts> sandbox{};
  std::vector<std::optional<ContainerFacts>> containers{};  // beside those listed
};

bool CriPods::KnownPod::is_complete() const {
  return !sandbox.complaint &&
         std::ranges::none_of(containers, [](const auto& facts) { return facts.complaint.has_value(); });
}

/// As long as the list says the same of it.
bool CriPods::KnownPod::stands(const ListedPod& listed) const {
  if (!is_complete() || listed.sandbox->metadata().uid() != pod->pod->uid ||
      listed.containers.size() != containers.size() || listed.fingerprint() != fingerprint)
    return false;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const auto& before = pod->containers[i];
    const auto& now = *listed.containers[i];
    if (now.id() != before.id || state_of(now) != before.state || has_started(now, containers[i])) return false;
  }
  return true;
}

/// One for each listed container; absent of one that was not there yet.
std::vector<std::optional<ContainerFacts>> CriPods::KnownPod::facts_of(const ListedPod& listed) const {
  std::unordered_map<std::string_view, const ContainerFacts*> by_id;
  for (std::size_t i = 0; i < containers.size(); ++i) by_id.emplace(pod->containers[i].id, &containers[i]);
  std::vector<std::optional<ContainerFacts>> facts(listed.containers.size());
  for (std::size_t i = 0; i < facts.size(); ++i)
    if (const auto found = by_id.find(listed.containers[i]->id()); found != by_id.end()) facts[i] = *found->second;
  return facts;
}

asio::awaitable<Result<void>> CriPods::refresh() {
  auto snapshot = co_await fetch();
  if (!snapshot) co_return std::unexpected(snapshot.error());
  publish(*std::move(snapshot));
  co_return Result<void>{};
}

asio::awaitable<Result<CriPods::Snapshot>> CriPods::fetch() {
  Snapshot snapshot;
  snapshot.number_ = ++begun_;
  auto sandboxes = co_await client_.list_pod_sandboxes();
  if (!sandboxes) co_return fail(sandboxes.error().error, "cannot list the node's pods");
  const auto containers = co_await client_.list_containers();
  if (!containers) co_return fail(containers.error().error, "cannot list the node's pods");

  auto drafts = take_over(listed_pods(*sandboxes, *containers), snapshot);
  const auto read = co_await complete(drafts);
  if (!read) co_return fail(read.error().error, "cannot read the status of the node's pods");
  for (auto& draft : drafts)
    if (auto pod = assemble(draft)) {
      snapshot.news_.push_back(pod->pod);
      snapshot.pods_[draft.place] = std::move(pod);
    }
  std::erase(snapshot.pods_, nullptr);  // gone since it was listed
  co_return snapshot;
}

/// What is known and stands becomes the snapshot's; the rest has to be learnt.
std::vector<CriPods::Draft> CriPods::take_over(std::vector<ListedPod> listed, Snapshot& snapshot) const {
  std::vector<Draft> drafts;
  snapshot.pods_.resize(listed.size());
  for (std::size_t place = 0; place < listed.size(); ++place) {
    const auto found = by_sandbox_.find(listed[place].sandbox->id());
    const auto known = found == by_sandbox_.end() ? nullptr : found->second;
    if (known && known->stands(listed[place])) {
      snapshot.pods_[place] = known;
      continue;
    }
    auto& draft = drafts.emplace_back(Draft{.place = place, .listed = std::move(listed[place])});
    draft.containers.resize(draft.listed.containers.size());
    if (!known) continue;
    draft.sandbox = known->sandbox;
    draft.containers = known->facts_of(draft.listed);
  }
  return drafts;
}

/// Reads the statuses of which it is not known what they say, or no longer.
asio::awaitable<cri::Reply<void>> CriPods::complete(std::vector<Draft>& drafts) {
  std::vector<Question<SandboxFacts>> about_sandboxes;
  std::vector<Question<ContainerFacts>> about_containers;
  for (auto& [place, listed, sandbox, containers] : drafts) {
    if (!sandbox || sandbox->complaint) about_sandboxes.push_back({listed.sandbox->id(), &sandbox});
    for (std::size_t i = 0; i < containers.size(); ++i) {
      auto& facts = containers[i];
      const auto& container = *listed.containers[i];
      if (!facts || facts->complaint || has_started(container, *facts))
        about_containers.push_back({container.id(), &facts});
    }
  }
  const auto read_sandboxes = co_await read_statuses(std::move(about_sandboxes), [this](const std::string& id) {
    return read_facts<SandboxFacts>(client_, client_.pod_sandbox_status(id));
  });
  if (!read_sandboxes) co_return std::unexpected(read_sandboxes.error());
  std::set<std::string> plain;
  const auto read_containers = co_await read_statuses(std::move(about_containers), [&](const std::string& id) {
    return read_facts<ContainerFacts>(client_, container_status(client_, id, plain));
  });
  for (auto& draft : drafts)
    for (std::size_t i = 0; i < draft.containers.size(); ++i)
      if (draft.containers[i] && plain.contains(draft.listed.containers[i]->id())) draft.containers[i]->is_plain = true;
  co_return read_containers;
}

/// Null if it is gone since it was listed.
CriPods::KnownPodPtr CriPods::assemble(Draft& draft) const {
  if (!draft.sandbox) return nullptr;
  auto known = std::make_shared<KnownPod>();
  known->sandbox = *std::move(draft.sandbox);
  known->fingerprint = draft.listed.fingerprint();
  read_spec_once(*draft.listed.sandbox, known->sandbox);
  std::vector<const v1::Container*> listed;
  for (std::size_t i = 0; i < draft.containers.size(); ++i) {
    if (!draft.containers[i]) continue;
    listed.push_back(draft.listed.containers[i]);
    known->containers.push_back(*std::move(draft.containers[i]));
  }
  std::vector<KnownContainer> containers;
  for (std::size_t i = 0; i < listed.size(); ++i) containers.push_back({listed[i], &known->containers[i]});
  known->pod = std::make_shared<const RuntimePod>(
      pods::assemble(*draft.listed.sandbox, known->sandbox, containers, memory_capacity_, trusted_, known->doubts));
  return known;
}

/// A list in which nothing is new leaves all as it stands, the list's own identity as well.
void CriPods::publish(Snapshot snapshot) {
  if (snapshot.number_ <= published_) return;
  published_ = snapshot.number_;
  if (snapshot.pods_ == known_) return;
  known_ = std::move(snapshot.pods_);
  is_complete_ = std::ranges::all_of(known_, [](const auto& known) { return known->is_complete(); });
  auto pods = std::make_shared<core::PodList>();
  runtime_pods_.clear();
  by_sandbox_.clear();
  by_uid_.clear();
  by_escaped_uid_.clear();
  std::vector<Error> doubts;
  for (const auto& known : known_) {
    const auto& pod = known->pod;
    pods->push_back(pod->pod);
    runtime_pods_.push_back(pod);
    by_sandbox_.emplace(pod->sandbox_id, known);
    by_uid_.emplace(pod->pod->uid, pod);
    by_escaped_uid_.emplace(escaped_uid(pod->pod->uid), pod);
    doubts.insert(doubts.end(), known->doubts.begin(), known->doubts.end());
  }
  pods_ = std::move(pods);
  warn(std::move(doubts));
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
