#pragma once
#include <boost/json/value.hpp>
#include <vector>

namespace bench {

struct Summary {
  double median = 0;
  double p90 = 0;
  double max = 0;
};

/// The p90 is the smallest value that at least 90 % of all do not exceed. All zero without values.
[[nodiscard]] Summary summarize(std::vector<double> values);

/// {"median": …, "p90": …, "max": …}, for boost::json::value_from.
void tag_invoke(boost::json::value_from_tag, boost::json::value& result, const Summary& summary);

}  // namespace bench
