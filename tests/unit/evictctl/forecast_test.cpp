#include "evictctl/forecast.hpp"

#include <doctest/doctest.h>

#include "evictctl/text.hpp"

namespace evictd::ctl::forecast_test {
namespace {

using namespace std::chrono_literals;

v1::SignalStatus memory(std::int64_t available, double rate) {
  v1::SignalStatus signal;
  signal.set_signal("memory.available");
  signal.set_unit("bytes");
  signal.set_available(available);
  signal.set_capacity(1000);
  signal.set_fill_rate(rate);
  return signal;
}

v1::ThresholdStatus& add(v1::SignalStatus& signal, std::int64_t value, bool hard = true) {
  auto& status = *signal.add_thresholds();
  status.mutable_threshold()->set_resolved(value);
  if (!hard) status.mutable_threshold()->mutable_grace_period()->set_seconds(1);
  return status;
}

TEST_CASE("the next threshold is the highest that is not met, and the time goes until there") {
  auto signal = memory(500, 10);
  add(signal, 100);
  add(signal, 300, false);
  const auto ahead = forecast(signal);
  REQUIRE(ahead.next != nullptr);
  CHECK(ahead.next->threshold().resolved() == 300);
  CHECK(ahead.left == 20s);
  CHECK_FALSE(ahead.met);
}

TEST_CASE("one that is met is past") {
  auto signal = memory(200, 10);
  add(signal, 100);
  add(signal, 300, false).mutable_met_since()->set_seconds(1);
  auto ahead = forecast(signal);
  CHECK(ahead.next->threshold().resolved() == 100);
  CHECK(ahead.left == 10s);
  CHECK(ahead.met);
  CHECK_FALSE(ahead.hard_met);
  signal.mutable_thresholds(0)->mutable_met_since()->set_seconds(1);
  ahead = forecast(signal);
  CHECK(ahead.next == nullptr);
  CHECK(ahead.hard_met);
  CHECK_FALSE(ahead.left.has_value());
}

TEST_CASE("nothing is foretold of what comes back, stands still or is not known") {
  for (const double rate : {-10.0, 0.0, 1e-9}) {
    auto signal = memory(500, rate);
    add(signal, 100);
    CHECK_FALSE(forecast(signal).left.has_value());
  }
  auto signal = memory(500, 10);
  add(signal, 100);
  signal.clear_fill_rate();
  CHECK_FALSE(forecast(signal).left.has_value());
  signal.set_fill_rate(10);
  signal.clear_available();
  CHECK_FALSE(forecast(signal).left.has_value());
}

TEST_CASE("rates have the signal's unit") {
  CHECK(rate_text(memory(0, 12.3 * 1048576)) == "12.3Mi/s");
  CHECK(rate_text(memory(0, -512)) == "-512/s");
  CHECK(rate_text(memory(0, 0.2)) == "0");
  auto pids = memory(0, 1234);
  pids.set_unit("pids");
  CHECK(rate_text(pids) == "1.23k/s");
  pids.clear_fill_rate();
  CHECK(rate_text(pids) == "-");
}

TEST_CASE("counts have three digits") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(733) == "733");
  CHECK(count_text(999.6) == "1k");
  CHECK(count_text(5200) == "5.2k");
  CHECK(count_text(1'460'000) == "1.46M");
  CHECK(count_text(-4) == "-4");
}

}  // namespace
}  // namespace evictd::ctl::forecast_test
