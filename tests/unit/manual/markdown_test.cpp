#include "manual/markdown.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "fixture/documents.hpp"

namespace evictd::manual::markdown_test {
namespace {

/// The page that a text makes behind its title, without its head.
std::string body(std::string_view markdown) {
  const auto page = page_from_markdown("# Title\n" + std::string(markdown), "evictd-x", "1.2.3");
  REQUIRE_MESSAGE(page.has_value(), page.error().message);
  constexpr std::string_view head_ends = "evictd\\-x \\- title\n";
  return page->substr(page->find(head_ends) + head_ends.size());
}

std::string error(std::string_view markdown) {
  const auto page = page_from_markdown(markdown, "evictd-x", "1.2.3");
  return page ? "" : page.error().message;
}

}  // namespace

TEST_CASE("the title is what the page's name stands for") {
  CHECK(page_from_markdown("# How it works\n", "evictd-node", "1.2.3") ==
        ".TH EVICTD\\-NODE 7 \"\" \"evictd 1.2.3\" \"evictd\"\n.SH NAME\nevictd\\-node \\- how it works\n");
}

TEST_CASE("headings, paragraphs, and what stands out in them") {
  CHECK(body("\n## One evictd\n\ntwo\nlines\n\n### Below\n\nmore\n") ==
        ".SH ONE EVICTD\n.PP\ntwo lines\n.SS Below\n.PP\nmore\n");
  CHECK(body("`evictd check` **says** a_b\n") == ".PP\n\\fBevictd check\\fR \\fBsays\\fR a_b\n");
  CHECK(body("`it's` its\\|own 2 * 3\n") == ".PP\n\\fBit\\(aqs\\fR its|own 2 * 3\n");
  CHECK(body("an open ` and [brackets] (as they are)\n") == ".PP\nan open \\(ga and [brackets] (as they are)\n");
}

TEST_CASE("a line of text is no request of roff") {
  CHECK(body(".available\n") == ".PP\n\\&.available\n");
  CHECK(body("`.available`.\n") == ".PP\n\\fB\\&.available\\fR.\n");
  CHECK(body("```\n.TH\n'x' \\n\n```\n") == ".PP\n.RS 4\n.EX\n\\&.TH\n\\&\\(aqx\\(aq \\en\n.EE\n.RE\n");
}

TEST_CASE("a link to another page names it, one to elsewhere shows where, one within the page is its text") {
  CHECK(body("[the fence](thresholds.md#fence)\n") == ".PP\nthe fence (\\fBevictd\\-thresholds\\fR(7))\n");
  CHECK(body("[`a`](https://x.io/a-b)\n") == ".PP\n\\fBa\\fR (https://x.io/a\\-b)\n");
  CHECK(body("[below](#limits), [here](../../README.md)\n") == ".PP\nbelow, here\n");
}

TEST_CASE("an item is a bullet, or a term with what it means") {
  CHECK(body("- one\n  more\n- **`two`**: means\n  this\n\nafter\n") ==
        ".IP \\(bu 2\none more\n.TP\n\\fB\\fBtwo\\fR\\fR\nmeans this\n.PP\nafter\n");
}

TEST_CASE("a table is as wide as it is, and the widest columns of one that does not fit are filled") {
  CHECK(body("| of | n |\n|---|---:|\n| `a` | 1 |\n| b\\|c | 2 |\n") ==
        ".PP\n.TS\nlb rb\nl r.\nof\tn\n\\fBa\\fR\t1\nb|c\t2\n.TE\n");
  const std::string long_cell(70, 'x');
  CHECK(body("| of | n |\n|---|---:|\n| " + long_cell + " | 1 |\n") ==
        ".PP\n.TS\nlxb rb\nlx r.\nT{\n.na\nof\nT}\tn\nT{\n.na\n" + long_cell + "\nT}\t1\n.TE\n");
  CHECK(page_from_markdown("# T\n| a |\n|---|\n", "x", "1")->starts_with("'\\\" t\n.if n .pl 10000v\n.TH "));
}

TEST_CASE("what the manual does not use of Markdown is an error that names its line") {
  CHECK(error("no title\n").starts_with("line 1: "));
  CHECK(error("# T\n\n> quoted\n").starts_with("line 3: "));
  CHECK(error("# T\n<!-- comment -->\n").starts_with("line 2: "));
  CHECK(error("# T\n- item\nnot indented\n").starts_with("line 3: "));
  CHECK(error("# T\n- item\n  - below it\n").starts_with("line 3: "));
  CHECK(error("# T\n- item\n\n  - below it\n").starts_with("line 4: "));
  CHECK(error("# T\n#### deep\n").starts_with("line 2: "));
  CHECK(error("# T\n| a | b |\n|---|---|\n| c |\n").starts_with("line 4: "));
  CHECK(error("# T\n| a | b |\n\n").starts_with("line 3: "));
  CHECK(error("# T\n```\ncode\n").starts_with("at the end: "));
}

TEST_CASE("every page of the manual keeps to it") {
  for (const auto& document : fixture::documents()) {
    if (document == "README.md") continue;
    CAPTURE(document);
    const auto page = page_from_markdown(fixture::document(document), "x", "1");
    CHECK_MESSAGE(page.has_value(), page.error().message);
  }
}

}  // namespace evictd::manual::markdown_test
