#include "evictctl/format.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/util/json_util.h>
#include <yaml-cpp/yaml.h>

#include "evictd.pb.h"

namespace evictd::ctl::format_test {
namespace {

v1::Event killed(const std::string& message) {
  v1::Event event;
  event.set_sequence(7);
  event.set_kind(v1::Event::CONTAINERS_KILLED);
  event.set_message(message);
  event.mutable_time()->set_seconds(1);
  (*event.mutable_stages())["killed"] = 2100;
  event.mutable_containers_killed()->add_containers("app");
  return event;
}

TEST_CASE("an event is one line of proto3 JSON: lowerCamel names, enums by name, 64-bit numbers as strings") {
  const auto json = to_json(killed("a\nb"), true).value();
  CHECK(json.find('\n') == std::string::npos);
  for (const std::string part :
       {R"("sequence":"7")", R"("kind":"CONTAINERS_KILLED")", R"("stages":{"killed":"2100"})",
        R"("containersKilled":{"containers":["app"])", R"("time":"1970-01-01T00:00:01Z")", R"(a\nb)"})
    CHECK_MESSAGE(json.find(part) != std::string::npos, part << " in " << json);

  v1::Event parsed;
  REQUIRE(google::protobuf::util::JsonStringToMessage(json, &parsed).ok());
  CHECK(parsed.SerializeAsString() == killed("a\nb").SerializeAsString());
}

TEST_CASE("fields without a value are shown, optional ones without a value are not") {
  const auto json = to_json(v1::NodeStatus(), true).value();
  CHECK(json.find(R"("passes":"0")") != std::string::npos);
  CHECK(json.find(R"("inFlight":[])") != std::string::npos);
  const auto signal = to_json(v1::SignalStatus(), true).value();
  CHECK(signal.find("available") == std::string::npos);
}

TEST_CASE("a time that JSON cannot say is an error") {
  v1::Event event;
  event.mutable_time()->set_seconds(-1'000'000'000'000);
  CHECK_FALSE(to_json(event, true).has_value());
  CHECK_FALSE(to_yaml(event).has_value());
}

TEST_CASE("YAML says the same in block style, and strings stay strings") {
  v1::PodReference pod;
  pod.set_namespace_("default");
  pod.set_name("true");
  pod.set_uid("123");
  CHECK(to_yaml(pod).value() ==
        "namespace: default\n"
        "name: \"true\"\n"
        "uid: \"123\"");

  v1::ConditionChanged none;
  CHECK(to_yaml(none).value() == "conditions: []");
  none.add_conditions("MemoryPressure");
  CHECK(to_yaml(none).value() ==
        "conditions:\n"
        "  - MemoryPressure");
}

TEST_CASE("whatever a message says, YAML gives it back") {
  for (const std::string text : {"plain",
                                 "",
                                 "y",
                                 "No",
                                 "~",
                                 "null",
                                 "1e3",
                                 "0x1f",
                                 "- item",
                                 "key: value",
                                 "ends:",
                                 "# no comment",
                                 "a\nb",
                                 " blank ",
                                 "\"quoted\"",
                                 "{x}",
                                 "\x1b[31m",
                                 "Größe 大 😀",
                                 "\xf0\x9d\x85\xb3 \xf3\xa0\x80\x81",  // protobuf escapes these: U+1D173, U+E0001
                                 "\\ud834\\udd73",
                                 "\xe2\x80\xae",
                                 "memory.available < 100Mi",
                                 "*x",
                                 "&x",
                                 "!x",
                                 "|",
                                 "a #b"}) {
    const auto yaml = to_yaml(killed(text)).value();
    const auto message = YAML::Load(yaml)["message"];
    CHECK_MESSAGE(message.as<std::string>() == text, yaml);
    for (const char c : yaml) CHECK_MESSAGE((c == '\n' || (c >= ' ' && c < 0x7f)), yaml);
  }
}

TEST_CASE("whatever a message says, JSON has no byte that a terminal obeys, and no character that turns a line") {
  for (const std::string text : {"\x1b[2J", "\x07", "a\nb\r\x08", "\x7f",
                                 "\xc2\x9b"
                                 "31m",
                                 "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\xa8", "</script>"}) {
    const auto json = to_json(killed(text), true).value();
    for (const unsigned char c : json) CHECK_MESSAGE((c >= ' ' && c != 0x7f), json);
    CHECK_MESSAGE(json.find("\xc2\x9b") == std::string::npos, json);
    for (const auto* turning : {"\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\xa8"})
      CHECK_MESSAGE(json.find(turning) == std::string::npos, json);
    v1::Event parsed;
    REQUIRE(google::protobuf::util::JsonStringToMessage(json, &parsed).ok());
    CHECK(parsed.message() == text);
  }
}

}  // namespace
}  // namespace evictd::ctl::format_test
