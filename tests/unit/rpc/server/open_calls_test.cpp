#include "rpc/server/open_calls.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <string>

#include "api/running_server.hpp"

namespace evictd::rpc::open_calls_test {

TEST_CASE("a status becomes one printable line, and a long one is cut, not within a character") {
  CHECK(presentable(grpc::Status::OK).ok());
  const auto status = presentable({grpc::StatusCode::INVALID_ARGUMENT, "a\x1b[2J\nb: größe"});
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(status.error_message() == "a\\x1b[2J\\nb: größe");
  const auto cut = presentable({grpc::StatusCode::ABORTED, std::string(1023, 'x') + "öö"});
  CHECK(cut.error_message() == std::string(1023, 'x') + "…");
}

TEST_CASE("whatever a client has sent, it is told what is wrong with it") {
  test::RunningServer server;
  const test::Client client(server.socket);
  auto request = test::new_events();
  request.mutable_filter()->add_signals(std::string(500, '\x1b'));
  const auto of_stream = test::Subscriber(*client.stub, request).finish();
  CHECK(of_stream.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(of_stream.error_message().starts_with("filter.signals: there is no signal \"\\x1b\\x1b"));
  CHECK(of_stream.error_message().size() < 1100);
}

}  // namespace evictd::rpc::open_calls_test
