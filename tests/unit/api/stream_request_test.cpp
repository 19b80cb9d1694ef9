#include "api/stream_request.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "evictd.pb.h"
#include "fixture/result.hpp"

namespace evictd::api::stream_request_test {
namespace {

using namespace std::chrono_literals;
using fixture::error_of;
using fixture::value_of;

TEST_CASE("an empty request follows new events") {
  const auto plan = value_of(read_stream_request({}));
  CHECK(plan.follow);
  CHECK_FALSE(plan.after);
  CHECK_FALSE(plan.snapshot);
  CHECK_FALSE(plan.heartbeat);
}

TEST_CASE("what was asked for is in the plan") {
  v1::StreamEventsRequest request;
  request.set_after_sequence(0);
  request.set_follow(false);
  request.mutable_heartbeat()->set_nanos(250'000'001);
  const auto plan = value_of(read_stream_request(request));
  CHECK(plan.after == 0);
  CHECK_FALSE(plan.follow);
  CHECK(plan.heartbeat == 251ms);
}

TEST_CASE("a snapshot and a number to resume from exclude each other") {
  v1::StreamEventsRequest request;
  request.set_snapshot(true);
  CHECK(value_of(read_stream_request(request)).snapshot);
  request.set_after_sequence(17);
  CHECK(error_of(read_stream_request(request)) ==
        "snapshot and after_sequence (17) exclude each other: what follows a snapshot begins after it");
}

TEST_CASE("a heartbeat is between 100 ms and a day") {
  const auto heartbeat = [](std::int64_t seconds, std::int32_t nanos) {
    v1::StreamEventsRequest request;
    request.mutable_heartbeat()->set_seconds(seconds);
    request.mutable_heartbeat()->set_nanos(nanos);
    return read_stream_request(request);
  };
  CHECK(value_of(heartbeat(0, 100'000'000)).heartbeat == 100ms);
  CHECK(value_of(heartbeat(86'400, 0)).heartbeat == 24h);
  CHECK(error_of(heartbeat(0, 99'999'999)) == "heartbeat: 0 s and 99999999 ns are less than 100 ms");
  CHECK(error_of(heartbeat(0, 0)) == "heartbeat: 0 s and 0 ns are less than 100 ms");
  CHECK(error_of(heartbeat(-5, 0)) == "heartbeat: -5 s and 0 ns are less than 100 ms");
  CHECK(error_of(heartbeat(0, std::numeric_limits<std::int32_t>::min())).ends_with("are less than 100 ms"));
  CHECK(error_of(heartbeat(std::numeric_limits<std::int64_t>::min(), 0)).ends_with("are less than 100 ms"));
  CHECK(error_of(heartbeat(86'401, 0)) == "heartbeat: 86401 s is more than a day: leave it out for none");
  CHECK(error_of(heartbeat(std::numeric_limits<std::int64_t>::max(), 0)).ends_with("leave it out for none"));
}

TEST_CASE("what is wrong with the filter is said") {
  v1::StreamEventsRequest request;
  request.mutable_filter()->add_signals("memory");
  CHECK(error_of(read_stream_request(request)) == "filter.signals: there is no signal \"memory\"");
}

}  // namespace
}  // namespace evictd::api::stream_request_test
