#include "proxy/metadata.hpp"

#include <doctest/doctest.h>

#include <string>

namespace evictd::proxy::metadata_test {
namespace {

TEST_CASE("what an application puts into a call's metadata passes") {
  CHECK(passes("containerd-namespace", "k8s.io"));
  CHECK(passes("traceparent", ""));
  CHECK(passes("grpc-trace-bin", std::string("\0\xff", 2)));
  CHECK(passes("x-bin", "\x80\n"));
}

TEST_CASE("what belongs to a connection or goes with the status does not") {
  for (const auto* key : {"user-agent", "content-type", "te", "host", "grpc-timeout", "grpc-encoding",
                          "grpc-status-details-bin", "lb-token"})
    CHECK_FALSE(passes(key, "x"));
}

TEST_CASE("what gRPC would refuse to send does not pass: it ends the process of who tries") {
  CHECK_FALSE(passes("x", "\x80"));
  CHECK_FALSE(passes("x", "a\nb"));
  CHECK_FALSE(passes("X", "upper case"));
  CHECK_FALSE(passes(":path", "/"));
  CHECK_FALSE(passes("", "x"));
}

}  // namespace
}  // namespace evictd::proxy::metadata_test
