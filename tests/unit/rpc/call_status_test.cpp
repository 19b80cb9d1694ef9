#include "rpc/call_status.hpp"

#include <doctest/doctest.h>
#include <nghttp2/nghttp2.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace evictd::rpc::call_status_test {
namespace {

using Fields = std::vector<std::pair<std::string_view, std::string_view>>;

grpc::Status status_of(const Fields& fields) {
  CallStatus status;
  for (const auto& [name, value] : fields) status.add(name, value);
  return status.status();
}

}  // namespace

TEST_CASE("the trailers say how a call ended") {
  CHECK(status_of({{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "0"}}).ok());
  const auto refused = status_of({{":status", "200"}, {"grpc-status", "9"}, {"grpc-message", "not now"}});
  CHECK(refused.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(refused.error_message() == "not now");
}

TEST_CASE("a message is decoded where it was encoded, and otherwise as it is") {
  const auto message = [](std::string_view text) {
    return status_of({{"grpc-status", "2"}, {"grpc-message", text}}).error_message();
  };
  CHECK(message("50%25 of %C3%BC") == "50% of \xC3\xBC");
  CHECK(message("%0A") == "\n");
  CHECK(message("50% of it %zz %2") == "50% of it %zz %2");
  CHECK(message("%") == "%");
}

TEST_CASE("a status that gRPC does not know is an unknown one") {
  for (const auto* const code : {"17", "99999", "-1", "", "0x0", "1 ", "99999999999999999999"})
    CHECK(status_of({{"grpc-status", code}}).error_code() == grpc::StatusCode::UNKNOWN);
}

TEST_CASE("what comes twice counts as it was first") {
  CHECK(status_of({{"grpc-status", "5"}, {"grpc-status", "0"}}).error_code() == grpc::StatusCode::NOT_FOUND);
}

TEST_CASE("an interim response is none") {
  CHECK(status_of({{":status", "103"}, {"grpc-status", "5"}, {":status", "503"}}).error_code() ==
        grpc::StatusCode::UNAVAILABLE);
  CHECK(status_of({{":status", "100"}, {":status", "200"}, {"grpc-status", "0"}}).ok());
}

TEST_CASE("without a status of gRPC that of HTTP counts, and without both it is unknown") {
  const auto code = [](std::string_view http) { return status_of({{":status", http}}).error_code(); };
  CHECK(code("400") == grpc::StatusCode::INTERNAL);
  CHECK(code("401") == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(code("403") == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(code("404") == grpc::StatusCode::UNIMPLEMENTED);
  CHECK(code("503") == grpc::StatusCode::UNAVAILABLE);
  CHECK(code("500") == grpc::StatusCode::UNKNOWN);
  CHECK(code("200") == grpc::StatusCode::UNKNOWN);
  CHECK(status_of({}).error_code() == grpc::StatusCode::UNKNOWN);
  CHECK(status_of({{":status", "503"}}).error_message() == "the server answers with HTTP status 503");
}

TEST_CASE("a reset says whether to ask again") {
  CHECK(status_of_reset(NGHTTP2_REFUSED_STREAM).error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(status_of_reset(NGHTTP2_CANCEL).error_code() == grpc::StatusCode::CANCELLED);
  CHECK(status_of_reset(NGHTTP2_ENHANCE_YOUR_CALM).error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(status_of_reset(NGHTTP2_INADEQUATE_SECURITY).error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(status_of_reset(NGHTTP2_PROTOCOL_ERROR).error_code() == grpc::StatusCode::INTERNAL);
  CHECK(status_of_reset(12345).error_code() == grpc::StatusCode::INTERNAL);
}

}  // namespace evictd::rpc::call_status_test
