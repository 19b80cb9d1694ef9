#include "pods/manifest_lifecycle.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <variant>

#include "fixture/pods.hpp"
#include "pods/manifest.hpp"

namespace evictd::pods::manifest_lifecycle_test {
namespace {

using namespace std::chrono_literals;
using fixture::error_of;
using fixture::value_of;

Result<std::vector<core::Pod>> parse(const std::string& container) {
  return parse_pods("metadata: {name: a}\nspec:\n  containers:\n  - name: main\n" + container, "pod.yaml");
}

/// Of a pod's container with these further lines.
std::optional<core::PreStop> hook(const std::string& container) {
  return value_of(parse(container)).at(0).containers.at(0).pre_stop;
}

std::optional<core::PreStop> pre_stop(const std::string& handler) {
  return hook("    lifecycle: {preStop: {" + handler + "}}\n");
}

core::HttpGetHook http_get(const std::string& container) {
  return std::get<core::HttpGetHook>(hook(container).value());
}

}  // namespace

TEST_CASE("a preStop hook is a command, a GET or a sleep") {
  CHECK(pre_stop("exec: {command: [/bin/sh, -c, 'sleep 3']}") ==
        core::PreStop{core::ExecHook{{"/bin/sh", "-c", "sleep 3"}}});
  CHECK(pre_stop("sleep: {seconds: 7}") == core::PreStop{core::SleepHook{7s}});
  CHECK(pre_stop("httpGet: {scheme: HTTPS, host: other, port: 8443, path: '/bye?now', "
                 "httpHeaders: [{name: A, value: b}]}") ==
        core::PreStop{core::HttpGetHook{
            .https = true, .host = "other", .port = "8443", .path = "/bye?now", .headers = {{"A", "b"}}}});
  CHECK(pre_stop("httpGet: {port: 80}") == core::PreStop{core::HttpGetHook{.port = "80"}});
}

TEST_CASE("without a handler that can be run there is no hook") {
  CHECK_FALSE(hook("").has_value());
  CHECK_FALSE(hook("    lifecycle: {postStart: {exec: {command: [/bin/true]}}}\n").has_value());
  CHECK_FALSE(pre_stop("tcpSocket: {port: 80}").has_value());
  CHECK_FALSE(pre_stop("exec: {command: []}").has_value());
  CHECK_FALSE(hook("    lifecycle: null\n").has_value());
}

TEST_CASE("a port's name is the container's own; one that it does not have stays") {
  const std::string ports = "    ports: [{name: web, containerPort: 8080}, {containerPort: 9}]\n";
  const std::string named = "    lifecycle: {preStop: {httpGet: {port: web}}}\n";
  CHECK(http_get(ports + named).port == "8080");
  CHECK(http_get(named + ports).port == "8080");
  CHECK(http_get(named).port == "web");
  CHECK(http_get(ports + "    lifecycle: {preStop: {httpGet: {port: 81}}}\n").port == "81");
  CHECK(http_get(ports + "    lifecycle: {preStop: {httpGet: {path: /}}}\n").port.empty());
}

TEST_CASE("a sleep of any length is one that can be added to a time") {
  CHECK(pre_stop("sleep: {seconds: 9223372036854775807}") == core::PreStop{core::SleepHook{1'000'000'000s}});
  CHECK(pre_stop("sleep: {seconds: 0}") == core::PreStop{core::SleepHook{0s}});
  CHECK(error_of(parse("    lifecycle: {preStop: {sleep: {seconds: -1}}}\n")).find("seconds") != std::string::npos);
  CHECK(error_of(parse("    lifecycle: {preStop: {exec: {command: 3}}}\n")).find("command") != std::string::npos);
}

}  // namespace evictd::pods::manifest_lifecycle_test
