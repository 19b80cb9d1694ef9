#include "pods/listed_pods.hpp"

#include <api.pb.h>

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace evictd::pods {
namespace {

namespace v1 = ::runtime::v1;

std::size_t fingerprint_of(const google::protobuf::Map<std::string, std::string>& texts) {
  std::size_t sum = texts.size();
  for (const auto& [key, value] : texts) {
    std::size_t one = 0;
    boost::hash_combine(one, key);
    boost::hash_combine(one, value);
    sum += one;
  }
  return sum;
}

/// The order of their creation.
template <class Message>
auto by_creation(const Message* message) {
  return std::tuple(message->created_at(), std::string_view(message->id()));
}

/// Of several sandboxes with one uid the latest is the pod: the kubelet makes a new one when the old has failed. In the
/// order of their creation.
std::vector<const v1::PodSandbox*> latest_ready(v1::ListPodSandboxResponse& response) {
  const auto age = [](const v1::PodSandbox& s) { return std::tuple(s.metadata().attempt(), s.created_at()); };
  std::unordered_map<std::string_view, const v1::PodSandbox*> by_uid;
  by_uid.reserve(static_cast<std::size_t>(response.items_size()));
  for (auto& sandbox : *response.mutable_items()) {
    if (sandbox.state() != v1::SANDBOX_READY) continue;
    // A sandbox that no kubelet made may have no uid.
    if (sandbox.metadata().uid().empty()) sandbox.mutable_metadata()->set_uid(sandbox.id());
    auto& latest = by_uid[sandbox.metadata().uid()];
    if (latest == nullptr || age(*latest) < age(sandbox)) latest = &sandbox;
  }
  std::vector<const v1::PodSandbox*> sandboxes;
  sandboxes.reserve(by_uid.size());
  for (const auto& [uid, sandbox] : by_uid) sandboxes.push_back(sandbox);
  std::ranges::sort(sandboxes, {}, by_creation<v1::PodSandbox>);
  return sandboxes;
}

}  // namespace

std::size_t ListedPod::fingerprint() const {
  std::size_t all = 0;
  boost::hash_combine(all, fingerprint_of(sandbox->labels()));
  boost::hash_combine(all, fingerprint_of(sandbox->annotations()));
  for (const auto* container : containers) boost::hash_combine(all, fingerprint_of(container->annotations()));
  return all;
}

std::vector<ListedPod> listed_pods(v1::ListPodSandboxResponse& sandboxes,
                                   const v1::ListContainersResponse& containers) {
  std::vector<ListedPod> pods;
  std::unordered_map<std::string_view, std::size_t> places;  // by the sandbox's id
  for (const auto* sandbox : latest_ready(sandboxes)) {
    places.emplace(sandbox->id(), pods.size());
    pods.push_back({.sandbox = sandbox});
  }
  for (const auto& container : containers.containers())
    if (const auto its_pod = places.find(container.pod_sandbox_id()); its_pod != places.end())
      pods[its_pod->second].containers.push_back(&container);
  for (auto& pod : pods) std::ranges::sort(pod.containers, {}, by_creation<v1::Container>);
  return pods;
}

}  // namespace evictd::pods
