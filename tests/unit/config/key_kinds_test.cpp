#include "config/key_kinds.hpp"

#include <doctest/doctest.h>
#include <yaml-cpp/yaml.h>

#include <string>

#include "fixture/result.hpp"

namespace evictd::config::kinds::key_kinds_test {
namespace {

using namespace std::chrono_literals;
using fixture::error_of;
using fixture::value_of;

Value written(std::string_view text) {
  return value_of(value_of(parse_yaml("key: " + std::string(text), "a.yaml")).entries()).at(0).value;
}

}  // namespace

TEST_CASE("a duration is held to its bounds, which belong to it") {
  constexpr DurationBetween kind{100ms, 5min};
  CHECK(kind.type() == "duration, 100ms to 5m0s");
  CHECK(value_of(kind.read(written("100ms"))) == 100ms);
  CHECK(value_of(kind.read(written("5m"))) == 5min);
  CHECK(error_of(kind.read(written("99ms"))) == R"(a.yaml:1: key: "99ms" is out of range: 100ms to 5m0s)");
  CHECK(error_of(kind.read(written("1h"))) == R"(a.yaml:1: key: "1h" is out of range: 100ms to 5m0s)");
  CHECK(kind.print(90s) == "1m30s");
}

TEST_CASE("an amount of bytes is a quantity within its bounds") {
  constexpr BytesBetween kind{1 << 20, 1 << 30};
  CHECK(kind.type() == "quantity, 1Mi to 1Gi");
  CHECK(value_of(kind.read(written("32Mi"))) == 32 << 20);
  CHECK(error_of(kind.read(written("1Ki"))) == R"(a.yaml:1: key: "1Ki" is out of range: 1Mi to 1Gi)");
  CHECK_FALSE(kind.read(written("many")).has_value());
  CHECK(kind.print(32 << 20) == "32Mi");
}

TEST_CASE("a percentage is a whole one within its bounds") {
  constexpr PercentBetween kind{0, 100};
  CHECK(kind.type() == "percentage, 0% to 100%");
  CHECK(value_of(kind.read(written("50%"))) == 50);
  for (const std::string text : {"101%", "-1%", "50", "5.5%", "%"}) {
    CAPTURE(text);
    CHECK(error_of(kind.read(written("\"" + text + "\""))) ==
          "a.yaml:1: key: \"" + text + "\" is no whole percentage from 0% to 100%");
  }
  CHECK(kind.print(50) == "50%");
}

TEST_CASE("a word must be one of those that are known") {
  const OneOf<int> kind{{{"low", 1}, {"high", 2}}};
  CHECK(kind.type() == "low|high");
  CHECK(value_of(kind.read(written("high"))) == 2);
  CHECK(error_of(kind.read(written("High"))) == R"(a.yaml:1: key: "High" is none of low|high)");
  CHECK(kind.print(1) == "low");
}

TEST_CASE("a list is printed so that it is read as the same list, also with blanks in its items") {
  const ListOf<std::string> kind{"list of names", anything, [](const std::string& item) { return item; }};
  using Names = std::vector<std::string>;
  CHECK(value_of(kind.read(written("[ops, Ops Team]"))) == Names{"ops", "Ops Team"});
  CHECK(value_of(kind.read(written("ops dev"))) == Names{"ops", "dev"});
  CHECK(kind.print({"ops", "Ops Team"}) == R"(ops "Ops Team")");
  for (const Names& names : {Names{}, Names{""}, Names{"a b", "c\td\ne"}, Names{R"("quoted" \)", R"(\)", "x\"y"}})
    CHECK(value_of(kind.read(Value(YAML::Node(kind.print(names)), "a.yaml"))) == names);
  CHECK(error_of(kind.read(written(R"('ops "Ops Team')"))) == "a.yaml:1: key: a quotation mark is not closed");
}

TEST_CASE("absolute paths come out in one form and never lead upwards") {
  CHECK(value_of(normal_absolute_path("/")) == "/");
  CHECK(value_of(normal_absolute_path("//a/./b//")) == "/a/b");
  CHECK(error_of(normal_absolute_path("a/b")) == "\"a/b\" is not an absolute path");
  CHECK(error_of(normal_absolute_path("")) == "\"\" is not an absolute path");
  CHECK(error_of(normal_absolute_path("/a/../b")) == "\"/a/../b\" must not contain \"..\"");
  CHECK(value_of(normal_absolute_path("/a..b")) == "/a..b");
}

TEST_CASE("relative cgroups lose the slashes around them and must name something") {
  CHECK(value_of(normal_relative_path("/kubepods/")) == "kubepods");
  CHECK(value_of(normal_relative_path("a/kubepods.slice")) == "a/kubepods.slice");
  CHECK(error_of(normal_relative_path("/")) == "\"/\" names nothing");
  CHECK(error_of(normal_relative_path("..")) == "\"..\" must not contain \"..\"");
}

TEST_CASE("endpoints are unix sockets whose path fits an address") {
  CHECK(value_of(unix_endpoint("unix:///run/x.sock")) == "unix:///run/x.sock");
  CHECK(error_of(unix_endpoint("/run/x.sock")) ==
        "\"/run/x.sock\" is not a unix socket such as unix:///run/containerd/containerd.sock");
  CHECK(error_of(unix_endpoint("unix://run/x.sock")) == "\"run/x.sock\" is not an absolute path");
  const auto fits = "/" + std::string(106, 'x');
  CHECK(value_of(unix_endpoint("unix://" + fits)) == "unix://" + fits);
  CHECK(error_of(unix_endpoint("unix://" + fits + "x")) ==
        "\"" + fits + "x\" is longer than a socket's path may be (107 bytes)");
}

TEST_CASE("a directory has room for the names of sockets") {
  CHECK(value_of(socket_directory.read(written("/run//evictd/"))) == "/run/evictd");
  CHECK(error_of(socket_directory.read(written("run"))) == "a.yaml:1: key: \"run\" is not an absolute path");
  const auto fits = "/" + std::string(107 - 1 - std::string_view("/evictd.sock").size(), 'x');
  CHECK(value_of(socket_directory.read(written(fits))) == fits);
  CHECK(error_of(socket_directory.read(written(fits + "x"))) ==
        "a.yaml:1: key: \"" + fits + "x\" is longer than a directory of sockets may be (95 bytes)");
}

TEST_CASE("a path may be left to be found, or be none") {
  CHECK(value_of(path_or_auto_or_none("auto")) == "auto");
  CHECK(value_of(path_or_auto_or_none("")) == "");
  CHECK(value_of(path_or_auto_or_none("/a//b/")) == "/a/b");
  CHECK_FALSE(path_or_auto_or_none("a").has_value());
}

TEST_CASE("a URL is one of a server") {
  CHECK(value_of(url_or_none("")).empty());
  CHECK(value_of(url_or_none("https://127.0.0.1:10250/")) == "https://127.0.0.1:10250");
  CHECK(value_of(url_or_none("http://[::1]:10255/prefix")) == "http://[::1]:10255/prefix");
  for (const auto* text : {"127.0.0.1:10250", "ftp://x", "https://", "https:///pods", "http://:1", "http://a@b",
                           "http://a?b", "http://a b"})
    CHECK(error_of(url_or_none(text)) == '"' + std::string(text) + "\" is no URL such as https://127.0.0.1:10250");
  CHECK(value_of(path_or_none("")).empty());
  CHECK(value_of(path_or_none("/a//b/")) == "/a/b");
  CHECK(path_or_none("a").error().message == "\"a\" is not an absolute path");
}

}  // namespace evictd::config::kinds::key_kinds_test
