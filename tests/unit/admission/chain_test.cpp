#include "admission/chain.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::admission::chain_test {
namespace {

/// Rejects with its own name as the reason, or admits; counts how often it was asked.
class Stub final : public AdmissionHandler {
 public:
  Stub(std::string name, bool admits, int& asked) : name_{std::move(name)}, admits_{admits}, asked_{asked} {}

  std::string_view name() const override { return name_; }
  Verdict admit(const Attributes&) override {
    ++asked_;
    return admits_ ? Verdict::admit() : Verdict::reject(name_, "no");
  }

 private:
  std::string name_;
  bool admits_;
  int& asked_;
};

Chain chain_of(std::initializer_list<std::pair<std::string, bool>> stubs, int& asked) {
  std::vector<std::unique_ptr<AdmissionHandler>> handlers;
  for (const auto& [name, admits] : stubs) handlers.push_back(std::make_unique<Stub>(name, admits, asked));
  return Chain{std::move(handlers)};
}

const auto pod = fixture::pod("a");
const NodeSnapshot node{};
const Attributes attributes{.pod = pod, .other_pods = {}, .node = node};

}  // namespace

TEST_CASE("a pod is admitted when no handler objects, and every handler was asked") {
  int asked = 0;
  const auto chain = chain_of({{"first", true}, {"second", true}}, asked);
  const auto decision = chain.admit(attributes);
  CHECK(decision.verdict == Verdict::admit());
  CHECK(decision.handler.empty());
  CHECK(decision.admitted_by == std::vector<std::string_view>{"first", "second"});
  CHECK(asked == 2);
}

TEST_CASE("the first rejection decides and names its handler; the rest are not asked") {
  int asked = 0;
  const auto chain = chain_of({{"first", true}, {"second", false}, {"third", false}}, asked);
  const auto decision = chain.admit(attributes);
  CHECK(decision.verdict == Verdict::reject("second", "no"));
  CHECK(decision.handler == "second");
  CHECK(decision.admitted_by == std::vector<std::string_view>{"first"});
  CHECK(asked == 2);
}

TEST_CASE("the kubelet's chain asks the kubelet's handlers in its order") {
  const auto chain = kubelet_chain().value();
  CHECK(chain.names() == std::vector<std::string_view>{"eviction", "sysctl", "resources", "predicates", "apparmor",
                                                       "features", "shutdown"});
  const NodeSnapshot pressed{.conditions = {core::NodeCondition::DiskPressure}, .shutting_down = true};
  const auto decision = chain.admit({.pod = pod, .other_pods = {}, .node = pressed});
  CHECK(decision.verdict.reason == "Evicted");
  CHECK(decision.handler == "eviction");
}

TEST_CASE("about a resize one more handler is asked, first, and what is not infeasible is deferred with its message") {
  const auto chain = kubelet_chain().value();
  CHECK(chain.names(Operation::Resize) == std::vector<std::string_view>{"resize", "eviction", "sysctl", "resources",
                                                                        "predicates", "apparmor", "features",
                                                                        "shutdown"});
  const auto grown = fixture::pod("a", {fixture::container("main", {{"cpu", "2"}})});
  const auto others = fixture::pods({fixture::pod("b", {fixture::container("main", {{"cpu", "500m"}})})});
  NodeSnapshot node{.node = core::Node{.name = "n1", .allocatable = fixture::amounts({{"cpu", "2"}, {"pods", "10"}})}};
  const Attributes asked{
      .pod = grown, .other_pods = others, .node = node, .operation = Operation::Resize, .allocated = &pod};
  const auto deferred = chain.admit(asked);
  CHECK(
      deferred.verdict ==
      Verdict::reject("Deferred", "Node didn't have enough resource: cpu, requested: 2000, used: 500, capacity: 2000"));
  CHECK(deferred.handler == "predicates");
  CHECK(deferred.admitted_by == std::vector<std::string_view>{"resize", "eviction", "sysctl", "resources"});
  CHECK(deferred.operation == Operation::Resize);

  node.node->allocatable["cpu"] = fixture::quantity("1");
  const auto infeasible = chain.admit(asked);
  CHECK(infeasible.verdict ==
        Verdict::reject("Infeasible", "Node didn't have enough capacity: cpu, requested: 2000, capacity: 1000"));
  CHECK(infeasible.handler == "resize");

  node.node->allocatable["cpu"] = fixture::quantity("2500m");
  CHECK(chain.admit(asked).verdict.admitted);
  node.conditions = {core::NodeCondition::DiskPressure};
  CHECK(chain.admit(asked).verdict == Verdict::reject("Deferred", "The node had condition: [DiskPressure]. "));
}

TEST_CASE("whom a critical pod preempts is part of the decision") {
  const auto chain = kubelet_chain().value();
  const NodeSnapshot full{.node = core::Node{.name = "n1", .allocatable = fixture::amounts({{"pods", "1"}})}};
  const auto others = fixture::pods({fixture::pod("b")});
  const auto critical = fixture::with_priority(pod, 2'000'000'000);
  const auto decision = chain.admit({.pod = critical, .other_pods = others, .node = full});
  CHECK(decision.verdict.admitted);
  CHECK(decision.verdict.preempted == others);
  const auto resize = chain.admit(
      {.pod = critical, .other_pods = others, .node = full, .operation = Operation::Resize, .allocated = &pod});
  CHECK(resize.verdict.reason == "Deferred");
  CHECK(resize.verdict.preempted.empty());
  const auto ordinary = chain.admit({.pod = pod, .other_pods = others, .node = full});
  CHECK(ordinary.handler == "predicates");
  CHECK(ordinary.admitted_by == std::vector<std::string_view>{"eviction", "sysctl", "resources"});
}

TEST_CASE("a chain cannot be had with a sysctl that must not be allowed") {
  CHECK(fixture::error_of(kubelet_chain({.allowed_unsafe_sysctls = {"net.core.*", "vm.*"}})) ==
        "allowedUnsafeSysctls: the sysctls \"vm.*\" are not known to be namespaced");
}

}  // namespace evictd::admission::chain_test
