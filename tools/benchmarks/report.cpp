#include "benchmarks/report.hpp"

#include <fmt/args.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value_to.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <numeric>

namespace bench {

namespace json = boost::json;

namespace {

/// Calls `use` with what a format can show of a value.
template <class Use>
void with_scalar(const json::value& value, Use use) {
  if (const auto* text = value.if_string()) return use(std::string_view(*text));
  if (const auto* number = value.if_double()) return use(*number);
  if (const auto* whole = value.if_int64()) return use(*whole);
  if (const auto* natural = value.if_uint64()) return use(*natural);
}

}  // namespace

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

std::string filled(std::string_view format, const json::value& value) {
  fmt::dynamic_format_arg_store<fmt::format_context> arguments;
  if (const auto* numbers = value.if_array()) {
    if (numbers->empty()) return "-";
    const auto all = json::value_to<std::vector<double>>(value);
    auto summary = json::value_from(summarize(all)).as_object();
    summary["least"] = std::ranges::min(all);
    summary["mean"] = std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
    return filled(format, summary);
  }
  if (const auto* members = value.if_object()) {
    for (const auto& [name, member] : *members)
      with_scalar(member, [&](auto shown) { arguments.push_back(fmt::arg(std::string(name).c_str(), shown)); });
  } else {
    with_scalar(value, [&](auto shown) { arguments.push_back(shown); });
  }
  return fmt::vformat(format, arguments);
}

std::string table_of(std::span<const Row> rows) {
  std::vector<std::vector<std::string>> lines(1);
  std::vector<bool> is_text;
  for (const auto& row : rows) {
    auto& line = lines.emplace_back();
    for (const auto& figure : row) {
      if (figure.format.empty()) continue;
      if (lines.size() == 2) {
        lines.front().emplace_back(figure.heading);
        is_text.push_back(true);
      }
      is_text[line.size()] = is_text[line.size()] && figure.value.is_string();
      line.push_back(filled(figure.format, figure.value));
    }
  }
  std::string table;
  for (const auto& line : lines) {
    for (std::size_t column = 0; column < line.size(); ++column) {
      std::size_t width = 0;
      for (const auto& other : lines)
        if (!other.empty()) width = std::max(width, other[column].size());
      const std::string room(width - line[column].size(), ' ');
      table += column == 0 ? "" : "  ";
      table += is_text[column] ? line[column] + room : room + line[column];
    }
    table.erase(table.find_last_not_of(' ') + 1);
    table += '\n';
  }
  return table;
}

json::object json_of(const Row& row) {
  json::object object;
  for (const auto& figure : row)
    if (!figure.key.empty()) object[figure.key] = figure.value;
  return object;
}

std::string line_of(const Row& row) {
  std::vector<std::string> parts;
  for (const auto& [key, heading, format, value] : row)
    if (!format.empty())
      parts.push_back(fmt::format("{}{}{}", heading, heading.empty() ? "" : ": ", filled(format, value)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

void add(Row& all, const Row& run) {
  if (all.empty()) {
    all = run;
    return;
  }
  for (std::size_t i = 0; i < run.size(); ++i) {
    auto& sum = all[i].value;
    if (auto* list = sum.if_array())
      std::ranges::copy(run[i].value.as_array(), std::back_inserter(*list));
    else if (sum.is_number())
      sum = sum.to_number<std::int64_t>() + run[i].value.to_number<std::int64_t>();
  }
}

Row joined(Row first, const Row& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Row summarized(Row row) {
  for (auto& [key, heading, format, value] : row) {
    if (!value.is_array()) continue;
    if (value.as_array().empty())
      key = "";
    else
      value = json::value_from(summarize(json::value_to<std::vector<double>>(value)));
  }
  return row;
}

std::vector<Row> in_turn(int rounds, const std::vector<Contender>& contenders) {
  std::vector<Row> sums(contenders.size());
  std::vector<Row> rows(contenders.size());
  int number = 0;
  for (int round = 1; round <= rounds; ++round)
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      // Nobody is always the one after the slowest.
      const auto i = (turn + static_cast<std::size_t>(round) - 1) % contenders.size();
      add(sums[i], joined({{"runs", "runs", 1}}, contenders[i].run(++number)));
      rows[i] = joined(contenders[i].who, sums[i]);
      progress(fmt::format("run {}/{}, {}", round, rounds, line_of(rows[i])));
    }
  return rows;
}

json::object results_of(std::string_view bench, std::span<const Row> rows, const Row& given) {
  json::object object{{"bench", bench}};
  for (const auto& [key, value] : json_of(given)) object[key] = value;
  auto& results = object["results"].emplace_array();
  for (const auto& row : rows) results.push_back(json_of(row));
  return object;
}

Report report_of(std::string_view bench, std::string_view about, std::span<const Row> rows, const Row& given) {
  return {.json = results_of(bench, rows, given), .text = fmt::format("{}\n\n{}", about, table_of(rows))};
}

void progress(std::string_view text) { fmt::print(stderr, "{}\n", text); }

}  // namespace bench
