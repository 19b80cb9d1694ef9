#include "admission/number_list.hpp"

#include "target.hpp"

// Lists of CPUs and NUMA nodes, as the kernel and operators write them.

namespace evictd::fuzz {

void run(std::string_view input) {
  const auto numbers = admission::parse_number_list(input);
  if (!is_good(numbers)) return;
  const auto printed = admission::print_number_list(*numbers);
  const auto again = value_of(admission::parse_number_list(printed));
  check(again == *numbers, "printed and read again they are the same");
  check(admission::print_number_list(again) == printed, "and so is the text");
}

}  // namespace evictd::fuzz
