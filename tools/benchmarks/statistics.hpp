#pragma once
#include <vector>

namespace bench {

struct Summary {
  double median = 0;
  double p90 = 0;
  double max = 0;
};

/// The p90 is the smallest value that at least 90 % of all do not exceed. All zero without values.
[[nodiscard]] Summary summarize(std::vector<double> values);

}  // namespace bench
