#include "manual/markdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "manual/pages.hpp"

namespace evictd::manual {
namespace {

constexpr std::string_view fence = "```";

/// A table has to fit into a terminal of 80 columns, of which man(1) leaves the text 71. The widest columns of one that
/// does not are filled: their cells are paragraphs, which share the room that the others leave.
constexpr std::size_t widest_table = 70;
constexpr std::size_t column_gap = 3;  // tbl(1)
constexpr std::size_t least_filled_width = 12;

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

/// roff() for what is to be copied to the letter: straight quotes as well.
std::string roff_code(std::string_view text) {
  std::string escaped;
  for (const char c : roff(text)) escaped += c == '\'' ? "\\(aq" : std::string(1, c);
  return escaped;
}

std::string bold(std::string_view roff_text) { return fmt::format("\\fB{}\\fR", roff_text); }

/// What stands for a link: its text, and where to find what it leads to, if that is a page of the manual or elsewhere.
std::string linked(std::string_view roff_text, std::string_view target) {
  if (target.starts_with("http")) return fmt::format("{} ({})", roff_text, roff(target));
  const auto file = target.substr(0, target.find('#'));
  const bool is_page = file.ends_with(".md") && file.find('/') == std::string_view::npos;
  if (!is_page) return std::string(roff_text);
  return fmt::format("{} (\\fBevictd\\-{}\\fR(7))", roff_text, roff(file.substr(0, file.size() - 3)));
}

/// The text between two marks at the beginning of `text`, which moves behind the second one. Empty: they are not there.
std::string_view take_between(std::string_view& text, std::string_view opening, std::string_view closing) {
  if (!text.starts_with(opening)) return {};
  const auto end = text.find(closing, opening.size());
  if (end == std::string_view::npos) return {};
  const auto between = text.substr(opening.size(), end - opening.size());
  text.remove_prefix(end + closing.size());
  return between;
}

std::string running_text(std::string_view text);

/// What stands for the code, the bold text or the link at the beginning of `text`, which moves behind it. Empty: there
/// is none.
std::string take_marked(std::string_view& text) {
  if (const auto code = take_between(text, "`", "`"); !code.empty()) return bold(roff_code(code));
  if (const auto strong = take_between(text, "**", "**"); !strong.empty()) return bold(roff(strong));
  const auto label_ends = text.find(']');
  if (!text.starts_with('[') || !text.substr(std::min(label_ends, text.size())).starts_with("](")) return {};
  const auto label = text.substr(1, label_ends - 1);
  auto rest = text.substr(label_ends + 1);
  const auto target = take_between(rest, "(", ")");
  if (target.empty()) return {};
  text = rest;
  return linked(running_text(label), target);
}

/// A paragraph, an item or a cell.
std::string running_text(std::string_view text) {
  std::string result;
  std::string plain;
  const auto write_plain = [&] {
    const auto escaped = roff(plain);
    // Only at the beginning of a line a dot would begin a request, and there is but one line.
    result += !result.empty() && escaped.starts_with("\\&") ? escaped.substr(2) : escaped;
    plain.clear();
  };
  while (!text.empty()) {
    if (const auto marked = take_marked(text); !marked.empty()) {
      write_plain();
      result += marked;
      continue;
    }
    const bool is_escaped =
        text.size() > 1 && text[0] == '\\' && std::ispunct(static_cast<unsigned char>(text[1])) != 0;
    plain += text[is_escaped ? 1 : 0];
    text.remove_prefix(is_escaped ? 2 : 1);
  }
  write_plain();
  return result;
}

std::vector<std::string> cells_of(std::string_view row) {
  row = trimmed(row);
  row.remove_prefix(1);
  if (row.ends_with('|')) row.remove_suffix(1);
  std::vector<std::string> cells(1);
  for (std::size_t at = 0; at < row.size(); ++at) {
    if (row[at] == '|' && (at == 0 || row[at - 1] != '\\')) {
      cells.emplace_back();
    } else {
      cells.back() += row[at];
    }
  }
  for (auto& cell : cells) cell = trimmed(cell);
  return cells;
}

/// The heads of the columns, how they are aligned, and what is below them.
using Rows = std::vector<std::vector<std::string>>;
constexpr std::size_t alignment_row = 1;

/// In columns of a terminal, without the marks.
std::size_t shown_width(std::string_view cell) {
  return static_cast<std::size_t>(
      std::ranges::count_if(cell, [](unsigned char c) { return c != '`' && c != '*' && (c & 0xC0U) != 0x80U; }));
}

std::vector<bool> columns_to_fill(const Rows& rows) {
  const auto columns = rows[0].size();
  std::vector<std::size_t> widths(columns);
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t column = 0; column < columns && row != alignment_row; ++column)
      widths[column] = std::max(widths[column], shown_width(rows[row][column]));
  std::vector<bool> is_filled(columns);
  const auto total = [&] { return std::accumulate(widths.begin(), widths.end(), column_gap * (columns - 1)); };
  while (total() > widest_table) {
    const auto widest = std::ranges::max_element(widths);
    if (*widest <= least_filled_width) break;
    *widest = least_filled_width;
    is_filled[static_cast<std::size_t>(widest - widths.begin())] = true;
  }
  return is_filled;
}

/// For tbl(1).
std::string table(const Rows& rows) {
  const auto columns = rows[0].size();
  const auto is_filled = columns_to_fill(rows);
  std::string heads;
  std::string formats;
  for (std::size_t column = 0; column < columns; ++column) {
    const auto* const form = is_filled[column] ? "lx" : rows[alignment_row][column].ends_with(':') ? "r" : "l";
    heads += fmt::format("{}b ", form);
    formats += fmt::format("{} ", form);
  }
  auto text = fmt::format(".PP\n.TS\n{}\n{}.\n", trimmed(heads), trimmed(formats));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (row == alignment_row) continue;
    for (std::size_t column = 0; column < columns; ++column) {
      const auto cell = running_text(rows[row][column]);
      if (column > 0) text += '\t';
      text += is_filled[column] ? fmt::format("T{{\n.na\n{}\nT}}", cell) : cell;
    }
    text += '\n';
  }
  return text + ".TE\n";
}

class Conversion {
 public:
  /// An error without its line, which is where_().
  Result<void> take(std::string_view line) {
    ++number_;
    if (is_code_) return take_code(line);
    if (number_ == 1) return take_title(line);
    if (line.starts_with("|")) return take_row(line);
    if (auto finished = finish_table(); !finished) return finished;
    if (line.starts_with(fence)) return begin_code();
    if (line.empty()) return finish_text();
    if (line.starts_with("#")) return take_heading(line);
    if (line.starts_with("- ")) return begin_item(line.substr(2));
    if (line.starts_with("  ") && is_item_ && !text_.empty()) return go_on_with_item(trimmed(line));
    if (std::string_view(" >*<!").find(line[0]) != std::string_view::npos && !line.starts_with("**"))
      return fail("not in the part of Markdown that the manual keeps to");
    if (is_item_ && !text_.empty()) return fail("an item goes on indented by two blanks");
    return add(line);
  }

  Result<void> finish() {
    if (is_code_) return fail("the code does not end");
    if (auto finished = finish_table(); !finished) return finished;
    return finish_text();
  }

  [[nodiscard]] int line() const { return number_; }
  [[nodiscard]] const std::string& title() const { return title_; }
  [[nodiscard]] const std::string& body() const { return body_; }
  [[nodiscard]] bool has_tables() const { return has_tables_; }

 private:
  Result<void> take_title(std::string_view line) {
    if (!line.starts_with("# ") || line.size() < 3) return fail("the first line is to be the title, \"# …\"");
    title_ = line.substr(2);
    title_[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(title_[0])));
    return {};
  }

  Result<void> take_heading(std::string_view line) {
    if (auto finished = finish_text(); !finished) return finished;
    if (line.starts_with("## ")) {
      body_ += fmt::format(".SH {}\n", roff(upper_case(line.substr(3))));
    } else if (line.starts_with("### ")) {
      body_ += fmt::format(".SS {}\n", roff(line.substr(4)));
    } else {
      return fail("a heading has two or three signs");
    }
    return {};
  }

  Result<void> begin_item(std::string_view text) {
    if (auto finished = finish_text(); !finished) return finished;
    is_item_ = true;
    return add(text);
  }

  Result<void> go_on_with_item(std::string_view text) {
    if (text.starts_with("- ")) return fail("a list has one level");
    return add(text);
  }

  Result<void> add(std::string_view text) {
    if (!text_.empty()) text_ += ' ';
    text_ += text;
    return {};
  }

  /// Writes the paragraph or the item that has been gathered.
  Result<void> finish_text() {
    const auto text = std::exchange(text_, {});
    const bool is_item = std::exchange(is_item_, false);
    if (text.empty()) return {};
    if (!is_item) {
      body_ += fmt::format(".PP\n{}\n", running_text(text));
      return {};
    }
    std::string_view rest = text;
    const auto term = take_between(rest, "**", "**: ");
    body_ += term.empty() ? fmt::format(".IP \\(bu 2\n{}\n", running_text(text))
                          : fmt::format(".TP\n{}\n{}\n", bold(running_text(term)), running_text(rest));
    return {};
  }

  Result<void> begin_code() {
    if (auto finished = finish_text(); !finished) return finished;
    is_code_ = true;
    body_ += ".PP\n.RS 4\n.EX\n";
    return {};
  }

  Result<void> take_code(std::string_view line) {
    is_code_ = line != fence;
    body_ += is_code_ ? roff_code(line) + '\n' : ".EE\n.RE\n";
    return {};
  }

  Result<void> take_row(std::string_view line) {
    if (auto finished = finish_text(); !finished) return finished;
    rows_.push_back(cells_of(line));
    if (rows_.back().size() != rows_[0].size()) return fail("a row has as many cells as the table's first one");
    return {};
  }

  Result<void> finish_table() {
    const auto rows = std::exchange(rows_, {});
    if (rows.empty()) return {};
    if (rows.size() <= alignment_row || !rows[alignment_row][0].starts_with("-"))
      return fail("a table begins with its heads and |---|");
    has_tables_ = true;
    body_ += table(rows);
    return {};
  }

  int number_ = 0;
  std::string title_;
  std::string body_;
  std::string text_;  ///< of the paragraph or item that goes on
  bool is_item_ = false;
  bool is_code_ = false;
  bool has_tables_ = false;
  Rows rows_;  ///< of the table that goes on
};

}  // namespace

Result<std::string> page_from_markdown(std::string_view markdown, std::string_view name, std::string_view version) {
  Conversion conversion;
  std::istringstream lines{std::string(markdown)};
  for (std::string line; std::getline(lines, line);)
    if (const auto taken = conversion.take(line); !taken)
      return fail(taken.error(), fmt::format("line {}", conversion.line()));
  if (const auto finished = conversion.finish(); !finished) return fail(finished.error(), "at the end");
  // The first line has man(1) run tbl(1) over the page. tbl breaks a row where a page ends, or says that it cannot,
  // though a terminal has no pages: the second makes it one page there.
  return fmt::format("{}.TH {} 7 \"\" \"evictd {}\" \"evictd\"\n.SH NAME\n{} \\- {}\n{}",
                     conversion.has_tables() ? "'\\\" t\n.if n .pl 10000v\n" : "", roff(upper_case(name)), version,
                     roff(name), running_text(conversion.title()), conversion.body());
}

}  // namespace evictd::manual
