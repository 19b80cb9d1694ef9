#include "kube/objects.hpp"

#include <doctest/doctest.h>

#include "fixture/result.hpp"

namespace evictd::kube::objects_test {

namespace kube = evictd::kube;
using evictd::fixture::error_of;
using evictd::fixture::value_of;
using Kind = kube::WatchEvent::Kind;

TEST_CASE("a list is a version, a token for the rest, and the objects without their managed fields") {
  const auto page = value_of(kube::parse_list(R"({"kind":"PodList","metadata":{"resourceVersion":"7","continue":"c=="},
    "items":[{"metadata":{"name":"a","managedFields":[{"f:x":{}}],"uid":"1"}},{"spec":{"n":9007199254740993}}]})"));
  CHECK(page.resource_version == "7");
  CHECK(page.continue_token == "c==");
  CHECK(page.objects ==
        std::vector<std::string>{R"({"metadata":{"name":"a","uid":"1"}})", R"({"spec":{"n":9007199254740993}})"});
}

TEST_CASE("a list without objects may have none, or null") {
  CHECK(value_of(kube::parse_list(R"({"metadata":{"resourceVersion":"7"},"items":null})")).objects.empty());
  CHECK(value_of(kube::parse_list(R"({"metadata":{"resourceVersion":"7"},"items":[]})")).objects.empty());
  CHECK(value_of(kube::parse_list(R"({"metadata":{"resourceVersion":"7"}})")).continue_token.empty());
}

TEST_CASE("what is no list is an error") {
  CHECK(error_of(kube::parse_list("nonsense")).starts_with("the list: is no JSON: "));
  CHECK(error_of(kube::parse_list("[]")) == "the list: is no JSON object");
  CHECK(error_of(kube::parse_list("{}")) == "the list: has no metadata");
  CHECK(error_of(kube::parse_list(R"({"metadata":{}})")) == "the list: has no resourceVersion");
  CHECK(error_of(kube::parse_list(R"({"metadata":{"resourceVersion":"7"},"items":{}})")) ==
        "the list: its items are no list");
  CHECK(error_of(kube::parse_list(R"({"metadata":{"resourceVersion":"7"},"items":[1]})")) ==
        "the list: an item is no object");
}

TEST_CASE("an object with a number beyond every double is handed on as one that can be read") {
  const auto event = value_of(kube::parse_watch_event(
      R"({"type":"ADDED","object":{"metadata":{"name":"Infinity","resourceVersion":"8"},"n":[{"m":-1e400}],"o":1e99999}})"));
  CHECK(event.object == R"({"metadata":{"name":"Infinity","resourceVersion":"8"},"n":[{"m":null}],"o":null})");
}

TEST_CASE("managed fields may nest deeper than any object, and nothing may nest without end") {
  const auto nested = [](int depth) {
    std::string fields;
    for (int i = 0; i < depth; ++i) fields += R"({"f:x":)";
    fields += "{}" + std::string(static_cast<std::size_t>(depth), '}');
    return R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1","managedFields":[)" + fields + "]}}}";
  };
  CHECK(value_of(kube::parse_watch_event(nested(60))).object == R"({"metadata":{"resourceVersion":"1"}})");
  CHECK(error_of(kube::parse_watch_event(nested(100'000))).starts_with("a watch event: is no JSON: "));
}

TEST_CASE("the kinds of watch events") {
  const auto event = [](const char* type) {
    return value_of(kube::parse_watch_event(std::string(R"({"type":")") + type +
                                            R"(","object":{"metadata":{"resourceVersion":"12"}}})"));
  };
  CHECK(event("ADDED").kind == Kind::Upserted);
  CHECK(event("MODIFIED").kind == Kind::Upserted);
  CHECK(event("MODIFIED").object == R"({"metadata":{"resourceVersion":"12"}})");
  CHECK(event("DELETED").kind == Kind::Deleted);
  CHECK(event("DELETED").resource_version == "12");
  CHECK(event("BOOKMARK").kind == Kind::Bookmark);
  CHECK(event("BOOKMARK").object.empty());

  const auto failed = value_of(kube::parse_watch_event(
      R"({"type":"ERROR","object":{"kind":"Status","message":"too old resource version","code":410}})"));
  CHECK(failed.kind == Kind::Failed);
  CHECK(failed.code == 410);
  CHECK(failed.message == "too old resource version");
}

TEST_CASE("what is no watch event is an error") {
  CHECK(error_of(kube::parse_watch_event(R"({"type":"ADD)")).starts_with("a watch event: is no JSON: "));
  CHECK(error_of(kube::parse_watch_event(R"({"type":"ADDED"})")) == "a watch event: has no object");
  CHECK(error_of(kube::parse_watch_event(R"({"type":"ADDED","object":{}})")) ==
        "a watch event: its object has no resourceVersion");
  CHECK(error_of(kube::parse_watch_event(R"({"type":"GROWN\n","object":{}})")) ==
        R"(a watch event: of unknown type "GROWN\n")");
}

}  // namespace evictd::kube::objects_test
