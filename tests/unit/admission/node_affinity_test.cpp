#include "admission/node_affinity.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::admission::node_affinity_test {
namespace {

using core::NodeSelector;
using core::NodeSelectorRequirement;
using core::NodeSelectorTerm;
using Values = std::vector<std::string>;

const Labels labels{{"disk", "ssd"}, {"cores", "8"}, {"empty", ""}};

bool selector_matches(const Labels& selector) {
  auto pod = fixture::pod("a");
  pod.node_selector = selector;
  return matches_node(pod, "n1", labels);
}

bool affinity_matches(NodeSelector affinity, std::string_view node_name = "n1") {
  auto pod = fixture::pod("a");
  pod.required_node_affinity = std::move(affinity);
  return matches_node(pod, node_name, labels);
}

bool label_matches(std::string key, std::string op, Values values = {}) {
  return affinity_matches({{.match_expressions = {{.key = std::move(key), .op = std::move(op), .values = values}}}});
}

bool field_matches(std::string op, Values values, std::string_view node_name = "n1",
                   std::string key = "metadata.name") {
  return affinity_matches(
      {{.match_fields = {{.key = std::move(key), .op = std::move(op), .values = std::move(values)}}}}, node_name);
}

const NodeSelectorRequirement holds{.key = "disk", .op = "Exists"};
const NodeSelectorRequirement fails{.key = "gpu", .op = "Exists"};

}  // namespace

TEST_CASE("a pod without wishes fits any node") { CHECK(matches_node(fixture::pod("a"), "n1", {})); }

TEST_CASE("every label of the node selector must be the node's") {
  CHECK(selector_matches({{"disk", "ssd"}, {"empty", ""}}));
  CHECK_FALSE(selector_matches({{"disk", "ssd"}, {"cores", "9"}}));
  CHECK_FALSE(selector_matches({{"gpu", ""}}));
}

TEST_CASE("operators on labels") {
  struct Case {
    const char* key;
    const char* op;
    Values values;
    bool expected;
  };
  const std::vector<Case> cases{
      {"disk", "In", {"hdd", "ssd"}, true},
      {"disk", "In", {"hdd"}, false},
      {"gpu", "In", {""}, false},
      {"disk", "NotIn", {"hdd"}, true},
      {"disk", "NotIn", {"hdd", "ssd"}, false},
      {"gpu", "NotIn", {"a"}, true},  // a label that is not there is not in the list
      {"disk", "Exists", {}, true},
      {"empty", "Exists", {}, true},
      {"gpu", "Exists", {}, false},
      {"gpu", "DoesNotExist", {}, true},
      {"disk", "DoesNotExist", {}, false},
      {"cores", "Gt", {"7"}, true},
      {"cores", "Gt", {"8"}, false},
      {"cores", "Lt", {"9"}, true},
      {"cores", "Lt", {"8"}, false},
      {"cores", "Gt", {"-1"}, true},
      {"disk", "Gt", {"1"}, false},  // not a number
      {"gpu", "Lt", {"1"}, false},
  };
  for (const auto& [key, op, values, expected] : cases) {
    CAPTURE(key);
    CAPTURE(op);
    CHECK(label_matches(key, op, values) == expected);
  }
}

TEST_CASE("a requirement that makes no sense holds nowhere, and takes its term with it") {
  struct Case {
    const char* op;
    Values values;
  };
  const std::vector<Case> cases{{"In", {}},    {"NotIn", {}},          {"Exists", {"ssd"}}, {"DoesNotExist", {"x"}},
                                {"Gt", {}},    {"Gt", {"1", "2"}},     {"Lt", {"many"}},    {"Gt", {"1.5"}},
                                {"in", {"x"}}, {"Equals", {"present"}}};
  for (const auto& [op, values] : cases) {
    CAPTURE(op);
    CHECK_FALSE(label_matches("cores", op, values));
    CHECK_FALSE(label_matches("gpu", op, values));
    const NodeSelectorTerm senseless{.match_expressions = {holds, {.key = "cores", .op = op, .values = values}}};
    CHECK_FALSE(affinity_matches({senseless}));
    CHECK(affinity_matches({senseless, {.match_expressions = {holds}}}));
  }
}

TEST_CASE("all requirements of a term must hold, of the terms one") {
  CHECK(affinity_matches({{.match_expressions = {fails}}, {.match_expressions = {holds, holds}}}));
  CHECK_FALSE(affinity_matches({{.match_expressions = {holds, fails}}}));
  CHECK_FALSE(affinity_matches({{}}));  // an empty term holds nowhere
  CHECK_FALSE(affinity_matches({}));
  CHECK(affinity_matches({{}, {.match_expressions = {holds}}}));
}

TEST_CASE("fields know one value, in or not in it") {
  CHECK(field_matches("In", {"n1"}));
  CHECK_FALSE(field_matches("In", {"n2"}));
  CHECK(field_matches("NotIn", {"n2"}));
  CHECK_FALSE(field_matches("NotIn", {"n1"}));
  CHECK_FALSE(field_matches("In", {"n1", "n2"}));
  CHECK_FALSE(field_matches("Exists", {}));
  CHECK_FALSE(field_matches("In", {"n1"}, "n1", "metadata.namespace"));
  CHECK(field_matches("In", {"n2"}, ""));  // a node without a name has no fields to look at
  CHECK_FALSE(affinity_matches(
      {{.match_expressions = {fails}, .match_fields = {{.key = "metadata.name", .op = "In", .values = {"n1"}}}}}));
}

TEST_CASE("node selector and affinity must hold together") {
  auto pod = fixture::pod("a");
  pod.node_selector = {{"disk", "ssd"}};
  pod.required_node_affinity = NodeSelector{{.match_expressions = {fails}}};
  CHECK_FALSE(matches_node(pod, "n1", labels));
  pod.required_node_affinity = NodeSelector{{.match_expressions = {holds}}};
  CHECK(matches_node(pod, "n1", labels));
  pod.node_selector = {{"disk", "hdd"}};
  CHECK_FALSE(matches_node(pod, "n1", labels));
}

}  // namespace evictd::admission::node_affinity_test
