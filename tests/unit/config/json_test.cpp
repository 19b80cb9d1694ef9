#include "config/json.hpp"

#include <doctest/doctest.h>

#include "fixture/result.hpp"

namespace evictd::config::json_test {
namespace {

using fixture::error_of;
using fixture::value_of;

Value document(std::string_view text) { return value_of(parse_json(text, "pods")); }

/// The value behind the first key.
Value first(std::string_view text) { return value_of(document(text).entries()).at(0).value; }

}  // namespace

TEST_CASE("a JSON document is read as the same document in YAML") {
  CHECK(value_of(first(R"({"a": "x"})").text()) == "x");
  CHECK(value_of(first(R"({"a": 12})").text()) == "12");
  CHECK(value_of(first(R"({"a": true})").text()) == "true");
  CHECK(value_of(first(R"({"a": true})").boolean()));
  CHECK(value_of(first(R"({"a": -7})").integer(-10, 10)) == -7);
  CHECK(value_of(first(R"({"a": "64Mi"})").quantity()).value() == 64 << 20);
  CHECK(value_of(first(R"({"a": 0.5})").quantity()).milli_value() == 500);
  CHECK(first(R"({"a": null})").is_null());
  CHECK(document("null").is_null());
  const auto items = value_of(first(R"({"a": [1, {"b": "c"}]})").items());
  REQUIRE(items.size() == 2);
  CHECK(items[1].path() == "a[1]");
  CHECK(value_of(items[1].entries()).at(0).value.path() == "a[1].b");
}

TEST_CASE("an error in JSON names its place without a line") {
  CHECK(error_of(first(R"({"a": "1"})").integer(0, 9)) ==
        "pods: a: \"1\" is text, not a whole number: remove the quotes");
  CHECK(error_of(first(R"({"a": "true"})").boolean()) ==
        "pods: a: \"true\" is text, not true or false: remove the quotes");
  CHECK(error_of(first(R"({"a": 1})").boolean()) == "pods: a: \"1\" is not true or false");
  CHECK(error_of(first(R"({"a": 10})").integer(0, 9)) == "pods: a: \"10\" is out of range: 0 to 9");
  CHECK(error_of(first(R"({"a": {}})").text()) == "pods: a: a mapping stands where text is expected");
  CHECK(error_of(first(R"({"a": null})").text()) == "pods: a: nothing stands where text is expected");
  CHECK(error_of(first(R"({"a": 1})").items()) == "pods: a: \"1\" stands where a list is expected");
  CHECK(error_of(first(R"({"a": []})").entries()) == "pods: a: a list stands where a mapping is expected");
}

TEST_CASE("what is no JSON is refused, however deep it is") {
  CHECK(error_of(parse_json("{\"a\": ", "pods")).starts_with("pods: is not JSON: "));
  CHECK(error_of(parse_json("", "pods")).starts_with("pods: is not JSON: "));
  CHECK(error_of(parse_json("{} {}", "pods")).starts_with("pods: is not JSON: "));
  CHECK(error_of(parse_json(std::string(100'000, '['), "pods")).starts_with("pods: is not JSON: "));
}

TEST_CASE("the lists and mappings of a document that are read have no more elements in all than they may") {
  const auto entries = value_of(value_of(parse_json(R"({"a": [1, 2], "b": {"c": 3, "d": 4}})", "pods", 3)).entries());
  CHECK(entries[0].value.take_elements());
  CHECK(error_of(entries[1].value.take_elements()) ==
        "pods: b: with this, lists and mappings have more than 3 elements in all");
  CHECK(first(R"({"a": "no list"})").take_elements());
}

TEST_CASE("a value outlives the document it was taken from") {
  auto inner = value_of(first(R"({"a": {"b": "kept"}})").entries()).at(0).value;
  CHECK(value_of(inner.text()) == "kept");
}

}  // namespace evictd::config::json_test
