#include "kube/url.hpp"

#include <doctest/doctest.h>

#include "fixture/result.hpp"

namespace evictd::kube::url_test {

namespace kube = evictd::kube;
using evictd::fixture::error_of;
using evictd::fixture::value_of;

TEST_CASE("a URL is taken apart, and the port is the scheme's unless it is given") {
  CHECK(value_of(kube::parse_url("https://10.0.0.1:6443")) ==
        kube::Server{.tls = true, .host = "10.0.0.1", .port = "6443"});
  CHECK(value_of(kube::parse_url("https://api.example.org")) ==
        kube::Server{.tls = true, .host = "api.example.org", .port = "443"});
  CHECK(value_of(kube::parse_url("http://localhost/")) ==
        kube::Server{.tls = false, .host = "localhost", .port = "80"});
  CHECK(value_of(kube::parse_url("https://[fd00::1]:6443/k8s/clusters/a/")) ==
        kube::Server{.tls = true, .host = "fd00::1", .port = "6443", .base_path = "/k8s/clusters/a"});
}

TEST_CASE("an error names the server as a URL with its port, a request without the scheme's own") {
  const auto shown = [](const char* text) { return value_of(kube::parse_url(text)).url(); };
  const auto asked = [](const char* text) { return value_of(kube::parse_url(text)).authority(); };
  CHECK(shown("https://api") == "https://api:443");
  CHECK(shown("https://[::1]:6443/x") == "https://[::1]:6443/x");
  CHECK(asked("https://api:443") == "api");
  CHECK(asked("https://api:80") == "api:80");
  CHECK(asked("http://api:80") == "api");
  CHECK(asked("https://[::1]:6443") == "[::1]:6443");
}

TEST_CASE("what is no server's URL is refused") {
  for (const std::string text : {"",
                                 "10.0.0.1:6443",
                                 "ftp://host",
                                 "https://",
                                 "https:///path",
                                 "https://user@host",
                                 "https://host:",
                                 "https://host:0",
                                 "https://host:65536",
                                 "https://host:64x",
                                 "https://host?x=1",
                                 "https://host/a?b",
                                 "https://host/a#b",
                                 "https://ho st",
                                 "https://host\r\nX: y",
                                 "https://[::1",
                                 "https://[::1]x",
                                 "https://[]",
                                 "https://[host]",
                                 "https://host/a b"}) {
    CAPTURE(text);
    CHECK(error_of(kube::parse_url(text)).find("is no server's URL: ") != std::string::npos);
  }
}

TEST_CASE("everything but unreserved characters is percent-encoded") {
  CHECK(kube::percent_encoded("aZ09-._~") == "aZ09-._~");
  CHECK(kube::percent_encoded("spec.nodeName=a b&c/\r\n\xc3\xa4") == "spec.nodeName%3Da%20b%26c%2F%0D%0A%C3%A4");
}

}  // namespace evictd::kube::url_test
