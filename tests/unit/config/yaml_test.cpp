#include "config/yaml.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::config::yaml_test {
namespace {

using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

Value document(std::string_view text) { return value_of(parse_yaml(text, "a.yaml")); }

/// The value behind the first key.
Value first(std::string_view text) { return value_of(document(text).entries()).at(0).value; }

}  // namespace

TEST_CASE("an empty document is null, whatever it takes to be empty") {
  CHECK(document("").is_null());
  CHECK(document("# nothing\n").is_null());
  CHECK(document("---\n---\n").is_null());
  CHECK(document("~").is_null());
}

TEST_CASE("malformed YAML is named with its line") {
  CHECK(error_of(parse_yaml("a: 1\nb: [1,\n", "a.yaml")).starts_with("a.yaml:3: "));
  CHECK(error_of(parse_yaml("a: 1\n  b: 2\n", "a.yaml")).starts_with("a.yaml:2: "));
  CHECK(error_of(parse_yaml("a: *nowhere\n", "a.yaml")).starts_with("a.yaml:1: "));
}

TEST_CASE("what is not UTF-8 is named with its line") {
  CHECK(error_of(parse_yaml("a: 1\nb: gr\xf6\xdf"
                            "e\n",
                            "a.yaml")) == "a.yaml:2: is not UTF-8");
  CHECK(parse_yaml("a: 1\nb: größe\n", "a.yaml").has_value());
}

TEST_CASE("an error is one printable line, whatever keys and values are") {
  CHECK(error_of(first("\"a\\e[2J\": \"x\\ny\"").boolean()) ==
        R"(a.yaml:1: a\x1b[2J: "x\ny" is text, not true or false: remove the quotes)");
  CHECK(error_of(first("\"a\\nb\": \"x\\ey\"").duration()) ==
        R"(a.yaml:1: a\nb: "x\x1by" is not a duration such as 90s or 1m30s)");
  CHECK(error_of(parse_yaml("a: *b\x01", "a\nb.yaml")).starts_with("a\\nb.yaml:1: "));
}

TEST_CASE("a second document is an error, since one of them would be ignored") {
  CHECK(error_of(parse_yaml("a: 1\n---\nb: 2\n", "a.yaml")) == "a.yaml:3: a second document; a file holds one");
  CHECK(parse_yaml("---\na: 1\n---\n", "a.yaml").has_value());
}

TEST_CASE("all documents of a text are found but the empty ones") {
  const auto documents = value_of(parse_yaml_documents("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n", "a.yaml"));
  REQUIRE(documents.size() == 2);
  CHECK(value_of(documents[0].entries()).at(0).key == "a");
  CHECK(value_of(documents[1].entries()).at(0).key == "b");
  CHECK(value_of(parse_yaml_documents("", "a.yaml")).empty());
  CHECK(error_of(parse_yaml_documents("a: 1\n---\nb: [", "a.yaml")).starts_with("a.yaml:3: "));
}

TEST_CASE("a key that stands there twice is an error at its second place") {
  CHECK(error_of(document("a: 1\nb: 2\na: 3\n").entries()) == "a.yaml:3: a: stands here a second time");
}

TEST_CASE("keys that are no words, and merge keys, are errors") {
  CHECK(error_of(document("? [1, 2]\n: 3\n").entries()) == "a.yaml:1: a key must be a single word");
  CHECK(error_of(document("x: &x {a: 1}\n<<: *x\n").entries()) ==
        "a.yaml:2: <<: merge keys are not supported: write the entries out");
}

TEST_CASE("values of the wrong type are named with key and value") {
  CHECK(error_of(first("a: maybe").boolean()) == R"(a.yaml:1: a: "maybe" is not true or false)");
  CHECK(error_of(first("a: \"true\"").boolean()) ==
        R"(a.yaml:1: a: "true" is text, not true or false: remove the quotes)");
  CHECK(error_of(first("\na: {b: 1}").boolean()) == "a.yaml:2: a: a mapping stands where true or false is expected");
  CHECK(error_of(first("a: 1.5").integer(0, 9)) == R"(a.yaml:1: a: "1.5" is not a whole number)");
  CHECK(error_of(first("a: 10").integer(0, 9)) == R"(a.yaml:1: a: "10" is out of range: 0 to 9)");
  CHECK(error_of(first("a: 99999999999999999999").integer(0, 9)) ==
        R"(a.yaml:1: a: "99999999999999999999" is out of range: 0 to 9)");
  CHECK(error_of(first("a: [1]").text()) == "a.yaml:1: a: a list stands where text is expected");
  CHECK(error_of(first("a: 1").items()) == R"(a.yaml:1: a: "1" stands where a list is expected)");
  CHECK(error_of(first("a: 1").entries()) == R"(a.yaml:1: a: "1" stands where a mapping is expected)");
  CHECK(error_of(first("a: 30").duration()).starts_with(R"(a.yaml:1: a: "30" )"));
  CHECK(error_of(first("a: 5x").quantity()).starts_with(R"(a.yaml:1: a: "5x" )"));
}

TEST_CASE("values of the right type are converted") {
  CHECK(value_of(first("a: true").boolean()));
  CHECK_FALSE(value_of(first("a: off").boolean()));
  CHECK(value_of(first("a: -5").integer(-5, 9)) == -5);
  CHECK(value_of(first("a: 5").text()) == "5");
  CHECK(value_of(first("a: \"\"").text()).empty());
  CHECK(value_of(first("a: 1m30s").duration()) == std::chrono::seconds(90));
  CHECK(value_of(first("a: 150Mi").quantity()).value() == 150 * 1024 * 1024);
}

TEST_CASE("paths lead to entries and items, each with its line") {
  const auto outer = first("a:\n  b:\n  - 1\n  - 2\n");
  const auto inner = value_of(outer.entries()).at(0).value;
  CHECK(inner.path() == "a.b");
  CHECK(inner.line() == 2);
  const auto items = value_of(inner.items());
  REQUIRE(items.size() == 2);
  CHECK(items[1].path() == "a.b[1]");
  CHECK(items[1].line() == 4);
}

TEST_CASE("a long value is cut in errors") {
  CHECK(error_of(first("a: " + std::string(5000, 'x')).boolean()).size() < 200);
}

TEST_CASE("and never inside a character") {
  CHECK(error_of(first("a: x" + std::string(78, 'x') + "ö" + "xx").boolean()).find("x…\" is not") != std::string::npos);
}

TEST_CASE("a bomb of aliases costs no more than its text") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const auto before = std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + before;
    for (int j = 0; j < 9; ++j) text += ", *a" + before;
    text += "]\n";
  }
  const auto entries = value_of(document(text).entries());
  REQUIRE(entries.size() == 40);
  CHECK(value_of(entries.back().value.items()).size() == 10);
}

TEST_CASE("texts and lists that aliases repeat are converted for about four times the size of the text") {
  constexpr auto expected = "says more through aliases than a document may";
  const auto repeated = [](std::string_view anchored, std::string_view item) {
    std::string text = fmt::format("a: &a {}\nb: [{}", anchored, item);
    for (int i = 1; i < 2000; ++i) text.append(", ").append(item);
    return value_of(value_of(document(text + "]\n").entries()).at(1).value.items());
  };
  const auto convert_all = [](const std::vector<Value>& items, auto convert) {
    std::string error;
    for (const auto& item : items)
      if (const auto converted = convert(item); error.empty() && !converted) error = converted.error().message;
    return error;
  };
  const std::string big(50'000, 'x');
  const auto text = [](const Value& value) { return value.text(); };
  CHECK(convert_all(repeated(big, "*a"), text).ends_with(expected));
  CHECK(convert_all(repeated(big, "*a"), [](const Value& value) { return value.duration(); }).contains("xxx"));
  CHECK(convert_all(repeated("{" + std::string(1000, 'x') + ": 1}", "*a"), [](const Value& value) {
          return value.entries();
        }).ends_with(expected));
  std::string list = "[1";
  for (int i = 0; i < 2000; ++i) list += ",1";
  CHECK(convert_all(repeated(list + "]", "*a"), [](const Value& value) { return value.items(); }).ends_with(expected));

  CHECK(convert_all(repeated("short", "*a"), text).empty());
  CHECK(convert_all(repeated("x", "a longer text, as it is, without an alias"), text).empty());
}

TEST_CASE("a comma outside of any list is an error, not documents without end") {
  CHECK(error_of(parse_yaml(",", "a.yaml")) == "a.yaml:1: something stands outside of any list or mapping");
  CHECK(error_of(parse_yaml("a: 1\n---\n\"b\", c\n", "a.yaml")).starts_with("a.yaml:3: "));
  CHECK(value_of(parse_yaml_documents("[a, b]\n---\na: b, c\n", "a.yaml")).size() == 2);
}

TEST_CASE("nesting without end is an error, not a crash") {
  CHECK(error_of(parse_yaml(std::string(100'000, '['), "a.yaml")) == "a.yaml:1: is nested too deeply");
  CHECK(error_of(parse_yaml(std::string(max_file_size + 1, ' '), "a.yaml")) ==
        "a.yaml: is larger than 1024 KiB, more than a configuration can be");
}

TEST_CASE("a file that cannot be read is named with the reason") {
  const Tree tree{file("big.yaml", std::string(max_file_size + 1, '#'))};
  const auto missing = tree.path("x.yaml").native();
  CHECK(error_of(read_text_file(missing)) == missing + ": cannot be read: No such file or directory");
  CHECK(error_of(read_text_file(tree.path())) == tree.path().native() + ": cannot be read: Is a directory");
  CHECK(error_of(read_text_file(tree.path("big.yaml"))) ==
        tree.path("big.yaml").native() + ": is larger than 1024 KiB, more than a configuration can be");
}

TEST_CASE("a file is read to its end") {
  const std::string text(40'000, 'x');
  const Tree tree{dir("etc", {file("a.yaml", text), file("exact", std::string(16384, 'y'))})};
  CHECK(value_of(read_text_file(tree.path("etc/a.yaml"))) == text);
  CHECK(value_of(read_text_file(tree.path("etc/exact"))).size() == 16384);
}

TEST_CASE("a document must say what it is") {
  const auto check = [](std::string_view text) { return error_of(check_header(document(text), "x.io/v1", "Thing")); };
  CHECK(check("apiVersion: x.io/v1\nkind: Thing\n") == "no error");
  CHECK(check("kind: Thing\n") == R"(a.yaml:1: apiVersion is missing: write "apiVersion: x.io/v1")");
  CHECK(check("apiVersion: x.io/v1\nkind:\n") == R"(a.yaml:1: kind is missing: write "kind: Thing")");
  CHECK(check("apiVersion: x.io/v1\nkind: Think\n") == R"(a.yaml:2: kind: "Think" where "Thing" is expected)");
  CHECK(check("apiVersion: x.io/v2\nkind: Thing\n") ==
        R"(a.yaml:1: apiVersion: "x.io/v2" where "x.io/v1" is expected)");
  CHECK(check("- 1\n") == "a.yaml:1: a list stands where a mapping is expected");
}

}  // namespace evictd::config::yaml_test
