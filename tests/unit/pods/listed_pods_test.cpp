#include "pods/listed_pods.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "pods/pod_builder.hpp"

namespace evictd::pods::listed_pods_test {
namespace {

namespace v1 = ::runtime::v1;
using test::container;
using test::sandbox;

/// The runtime's two answers.
struct Answers {
  v1::ListPodSandboxResponse sandboxes;
  v1::ListContainersResponse containers;

  v1::PodSandbox& add(const v1::PodSandbox& sandbox) { return *sandboxes.add_items() = sandbox; }
  v1::Container& add(const v1::Container& container) { return *containers.add_containers() = container; }

  [[nodiscard]] std::vector<std::string> told() {
    std::vector<std::string> pods;
    for (const auto& pod : listed_pods(sandboxes, containers)) {
      auto& text = pods.emplace_back(pod.sandbox->metadata().uid() + ":");
      for (const auto* container : pod.containers) text += " " + container->id();
    }
    return pods;
  }
  [[nodiscard]] std::size_t fingerprint() { return listed_pods(sandboxes, containers).at(0).fingerprint(); }
};

using Told = std::vector<std::string>;

/// A pod with two containers, and words everywhere.
struct Worded : Answers {
  v1::PodSandbox& pod = add(sandbox("s", "web", "u"));
  v1::Container& first = add(container("c1", "s", "a", v1::CONTAINER_RUNNING, 1));
  v1::Container& second = add(container("c2", "s", "b", v1::CONTAINER_RUNNING, 2));

  Worded() {
    (*pod.mutable_labels())["app"] = "web";
    (*pod.mutable_annotations())["owner"] = "me";
    (*first.mutable_annotations())["grace"] = "30";
  }
};

}  // namespace

TEST_CASE("pods are the ready sandboxes, each with its containers, in the order of their creation") {
  Answers answers;
  answers.add(sandbox("s2", "b", "u2", 2));
  answers.add(sandbox("s1", "a", "u1", 1));
  answers.add(sandbox("s3", "c", "u3", 3)).set_state(v1::SANDBOX_NOTREADY);
  answers.add(container("c2", "s1", "main", v1::CONTAINER_RUNNING, 9));
  answers.add(container("c1", "s1", "main", v1::CONTAINER_EXITED, 5));
  answers.add(container("c3", "s3", "main"));
  answers.add(container("c4", "nowhere", "main"));
  CHECK(answers.told() == Told{"u1: c1 c2", "u2:"});
}

TEST_CASE("of the sandboxes with one uid the one of the last attempt is the pod, of one attempt the youngest") {
  Answers answers;
  answers.add(sandbox("s1", "a", "u", 1));
  answers.add(sandbox("s3", "a", "u", 3));
  answers.add(sandbox("s2", "a", "u", 2)).mutable_metadata()->set_attempt(1);
  answers.add(container("c2", "s2", "main"));
  answers.add(container("c3", "s3", "main"));
  CHECK(answers.told() == Told{"u: c2"});
}

TEST_CASE("a sandbox that has no uid is its own pod") {
  Answers answers;
  answers.add(sandbox("s1", "a", ""));
  answers.add(sandbox("s2", "b", ""));
  CHECK(answers.told() == Told{"s1:", "s2:"});
}

TEST_CASE("a pod's fingerprint goes by its words, and not by their order") {
  const auto fingerprint = Worded{}.fingerprint();
  Answers in_another_order;
  auto& pod = in_another_order.add(sandbox("s", "web", "u"));
  (*pod.mutable_annotations())["owner"] = "me";
  (*pod.mutable_labels())["app"] = "web";
  in_another_order.add(container("c2", "s", "b", v1::CONTAINER_RUNNING, 2));
  (*in_another_order.add(container("c1", "s", "a", v1::CONTAINER_RUNNING, 1)).mutable_annotations())["grace"] = "30";
  CHECK(in_another_order.fingerprint() == fingerprint);

  Worded other;
  SUBCASE("another label") { (*other.pod.mutable_labels())["tier"] = "back"; }
  SUBCASE("another value") { (*other.pod.mutable_labels())["app"] = "db"; }
  SUBCASE("one label less") { other.pod.clear_labels(); }
  SUBCASE("key and value changed about") {
    other.pod.clear_labels();
    (*other.pod.mutable_labels())["web"] = "app";
  }
  SUBCASE("a label in the place of an annotation") {
    other.pod.clear_annotations();
    (*other.pod.mutable_labels())["owner"] = "me";
  }
  SUBCASE("another container's annotation") {
    other.first.mutable_annotations()->swap(*other.second.mutable_annotations());
  }
  CHECK(other.fingerprint() != fingerprint);
}

}  // namespace evictd::pods::listed_pods_test
