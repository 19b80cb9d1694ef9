#include "commands/json.hpp"

#include <doctest/doctest.h>

#include <boost/json.hpp>

namespace json = boost::json;

namespace evictd::commands::json_test {
namespace {

const json::value document =
    json::parse(R"({"name": "a \"b\"", "list": [1, -2, true, null, 0.1], "none": {}, "empty": []})");

}  // namespace

TEST_CASE("JSON is indented, keeps the order of its keys, and is read back as it was") {
  CHECK(to_json_text(document) == R"({
  "name": "a \"b\"",
  "list": [
    1,
    -2,
    true,
    null,
    0.1
  ],
  "none": {},
  "empty": []
})");
  CHECK(json::parse(to_json_text(document)) == document);
}

TEST_CASE("a document without members is printed as briefly as it can be") {
  CHECK(to_json_text(json::array{}) == "[]");
  CHECK(to_json_text(nullptr) == "null");
}

TEST_CASE("YAML says the same") {
  CHECK(to_yaml_text(document) == R"(name: a "b"
list:
  - 1
  - -2
  - true
  - ~
  - 0.1
none:
  {}
empty:
  [])");
}

TEST_CASE("text that looks like something else is quoted in YAML") {
  for (const std::string text : {"0", "-1", "1e3", ".5", "true", "no", "null", "~", ".inf"})
    CHECK(to_yaml_text(json::object{{"a", text}}) == "a: \"" + text + "\"");
  for (const std::string text : {"150Mi", "5m0s", "/var/log", "truth", "0x"})
    CHECK(to_yaml_text(json::object{{"a", text}}) == "a: " + text);
}

}  // namespace evictd::commands::json_test
