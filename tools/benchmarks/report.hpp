#pragma once
#include <boost/json/object.hpp>
#include <boost/json/value_from.hpp>
#include <functional>
#include <span>
#include <string>
#include <string_view>
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

/// What a bench has found: for programs, and for people.
struct Report {
  boost::json::object json{};
  std::string text{};
  int exit_code = 0;  ///< 1: something that has to hold did not
};

/// One figure of a row, said once for both: what programs call it, and how people see it.
struct Figure {
  /// For programs alone.
  template <class T>
  Figure(std::string_view name, const T& what) : key{name}, value(boost::json::value_from(what)) {}
  /// For people alone where the key is empty. `how`: see filled().
  template <class T>
  Figure(std::string_view name, std::string_view column, const T& what, std::string_view how = "{}")
      : key{name}, heading{column}, format{how}, value(boost::json::value_from(what)) {}

  std::string_view key;
  std::string_view heading;
  std::string_view format;  ///< empty: no column of the table
  boost::json::value value;
};
using Row = std::vector<Figure>;

/// The value in a format of {fmt}: a number or a text is its only argument. Of several numbers there are {median},
/// {p90}, {max}, {least} and {mean}, and of none it is "-"; of an object there are its members, by their keys. Throws
/// where the value is nothing of these.
[[nodiscard]] std::string filled(std::string_view format, const boost::json::value& value);

/// The headings, and a line for each row; all rows have the same columns. Texts are on the left, numbers on the right.
/// A row without figures is an empty line.
[[nodiscard]] std::string table_of(std::span<const Row> rows);
[[nodiscard]] boost::json::object json_of(const Row& row);

/// The figures that people see, in one line.
[[nodiscard]] std::string line_of(const Row& row);

[[nodiscard]] Row joined(Row first, const Row& second);
/// Adds a run's figures to those of the runs before it, if any: whole numbers are summed up, lists joined, texts stay.
void add(Row& all, const Row& run);
/// With the summary of each list in its place, for programs as well; of an empty one these are told nothing.
[[nodiscard]] Row summarized(Row row);

/// One of those that a bench compares.
struct Contender {
  Row who;
  std::function<Row(int number)> run;  ///< what a run shows; each has a number of its own
};
/// They take turns, so often each, every time another one first, and progress() tells how it stands. A row for each:
/// who it is, its "runs", and what these add up to.
[[nodiscard]] std::vector<Row> in_turn(int rounds, const std::vector<Contender>& contenders);

/// Most benches': the rows are their "results". `given`: what comes before these.
[[nodiscard]] boost::json::object results_of(std::string_view bench, std::span<const Row> rows, const Row& given = {});
/// The same, and for people a table of the rows, below a text that says what it is about.
[[nodiscard]] Report report_of(std::string_view bench, std::string_view about, std::span<const Row> rows,
                               const Row& given = {});

/// Says on stderr how far the bench is.
void progress(std::string_view text);

}  // namespace bench
