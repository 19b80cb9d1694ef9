#include <string>
#include <vector>

#include "pods/annotated_spec.hpp"
#include "pods/manifest.hpp"
#include "target.hpp"

// Pods as the API server, the kubelet and whoever annotates a sandbox write them.

namespace evictd::fuzz {
namespace {

constexpr std::string_view origin = "pod.json";

void check_alone_and_in_list(std::string_view input) {
  std::vector<Error> doubts;
  const auto pod = pods::parse_pod_json(input, origin, doubts);
  if (!is_good(pod)) return;
  for (const auto& doubt : doubts) check(doubt);
  const auto list = R"({"kind":"PodList","items":[)" + std::string(input) + "]}";
  const auto read = value_of(pods::parse_pod_list_json(list, origin));
  check(read.errors.empty() && read.pods.size() == 1, "a pod that is good alone is good in a list");
  check(read.doubts == doubts, "what is doubtful alone is as doubtful in a list");
  check(read.pods.front() == *pod, "and the same");
}

void check_annotation(std::string_view input) {
  core::Pod pod{.name_space = "default", .name = "pod", .uid = "uid"};
  pod.annotations.emplace(pods::pod_spec_annotation, input);
  std::vector<Error> warnings;
  const bool applied = pods::apply_annotated_spec(pod, warnings);
  check(applied == warnings.empty(), "an annotation either counts or is warned of");
  for (const auto& warning : warnings) check(warning);
}

}  // namespace

void run(std::string_view input) {
  check_alone_and_in_list(input);
  check_annotation(input);
  if (const auto list = pods::parse_pod_list_json(input, origin); is_good(list))
    for (const auto* errors : {&list->errors, &list->doubts})
      for (const auto& error : *errors) check(error);
}

}  // namespace evictd::fuzz
