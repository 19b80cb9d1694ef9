#include "benchmarks/statistics.hpp"

#include <algorithm>
#include <cstddef>

namespace bench {

Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const std::size_t count = values.size();
  const double median = count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
  return {.median = median, .p90 = values[(count * 9 + 9) / 10 - 1], .max = values.back()};
}

void tag_invoke(boost::json::value_from_tag, boost::json::value& result, const Summary& summary) {
  result = {{"median", summary.median}, {"p90", summary.p90}, {"max", summary.max}};
}

}  // namespace bench
