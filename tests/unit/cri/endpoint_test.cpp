#include "cri/endpoint.hpp"

#include <doctest/doctest.h>

namespace evictd::cri::endpoint_test {

using evictd::cri::parse_endpoint;

TEST_CASE("the three ways to write a runtime's endpoint mean the same") {
  for (const auto* text : {"unix:///run/containerd/containerd.sock", "unix:/run/containerd/containerd.sock",
                           "/run/containerd/containerd.sock"}) {
    CAPTURE(text);
    CHECK(parse_endpoint(text) == evictd::cri::default_endpoint);
  }
}

TEST_CASE("an endpoint that is not an absolute unix socket path is refused in one line that shows the right form") {
  for (const auto* text : {"", "unix:", "unix://", "unix://run/containerd.sock", "run/containerd.sock",
                           "tcp://127.0.0.1:1234", "unix:////run/x"}) {
    CAPTURE(text);
    const auto endpoint = parse_endpoint(text);
    REQUIRE_FALSE(endpoint);
    CHECK(endpoint.error().message.find("unix:///") != std::string::npos);
    CHECK(endpoint.error().message.find('\n') == std::string::npos);
  }
}

TEST_CASE("a socket path may have 107 bytes and no more") {
  const std::string longest = "/" + std::string(106, 's');
  CHECK(parse_endpoint(longest) == "unix://" + longest);
  REQUIRE_FALSE(parse_endpoint(longest + "s"));
  CHECK(parse_endpoint(longest + "s").error().message.find("108 bytes") != std::string::npos);
}

}  // namespace evictd::cri::endpoint_test
