#include "rpc/server/call_budget.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace evictd::rpc::call_budget_test {
namespace {

using Places = std::vector<CallBudget::Place>;

/// How many calls of this weight the caller may begin.
std::size_t taken(CallBudget& budget, const std::string& caller, std::size_t weight, Places& places) {
  std::size_t count = 0;
  for (auto place = budget.take(caller, weight); place; place = budget.take(caller, weight), ++count)
    places.push_back(std::move(place));
  return count;
}

TEST_CASE("a caller has half of the budget, two have all of it, and what ends makes room") {
  const auto budget = std::make_shared<CallBudget>(CallLimits{.total = 8, .per_caller = 4});
  Places ones;
  Places others;
  CHECK(taken(*budget, "uid 1", 1, ones) == 4);
  CHECK(taken(*budget, "uid 2", 1, others) == 4);
  CHECK_FALSE(budget->take("uid 3", 1));
  ones.pop_back();
  CHECK_FALSE(budget->take("uid 2", 1));
  CHECK(budget->take("uid 3", 1));
  CHECK(budget->take("uid 1", 1));
}

TEST_CASE("a heavy call takes more, and one that is too heavy may be the caller's only one") {
  const auto budget = std::make_shared<CallBudget>(CallLimits{.total = 8, .per_caller = 4});
  Places places;
  CHECK(taken(*budget, "uid 1", 2, places) == 2);
  CHECK(taken(*budget, "uid 2", 100, places) == 1);
  CHECK_FALSE(budget->take("uid 2", 1));
  places.clear();
  CHECK(taken(*budget, "uid 2", 1, places) == 4);
}

TEST_CASE("a call weighs by its pods and by its size") {
  CHECK(weight_of_call(0, 0) == 1);
  CHECK(weight_of_call(1, 4000) == 1);
  CHECK(weight_of_call(256, 64 << 10) == 17);
  CHECK(weight_of_call(1, 16 << 20) == 65);
}

}  // namespace
}  // namespace evictd::rpc::call_budget_test
