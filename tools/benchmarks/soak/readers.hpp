#pragma once
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/soak/diary.hpp"
#include "benchmarks/soak/dice.hpp"
#include "benchmarks/soak/evictions.hpp"
#include "benchmarks/soak/findings.hpp"
#include "testbed/agent.hpp"
#include "testbed/channel.hpp"
#include "testbed/rejected_pods.hpp"
#include "testbed/testbed.hpp"

namespace bench::soak {

using namespace std::chrono_literals;
using evictd::v1::Event;

/// Reads all events from the first to the last, and may miss none.
class Chronicle {
 public:
  Chronicle(const testbed::Agent& agent, Ledger& ledger, Findings& findings)
      : findings_{findings}, diary_{ledger}, stub_{testbed::agent_stub(agent.address())}, thread_{[this] { read(); }} {}
  ~Chronicle() {
    leaving_ = true;
    context_.TryCancel();
    thread_.join();
  }
  Chronicle(const Chronicle&) = delete;
  Chronicle& operator=(const Chronicle&) = delete;

  [[nodiscard]] const Evictions& evictions() const { return evictions_; }
  /// The number of the event read last.
  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  void read() {
    evictd::v1::StreamEventsRequest request;
    request.set_after_sequence(0);
    diary_.begin(0);
    context_.set_wait_for_ready(true);
    const auto reader = stub_->StreamEvents(&context_, request);
    for (Event event; reader->Read(&event);) {
      const auto wrong = diary_.read(event);
      if (!wrong.empty()) findings_.add("a hole in the events: " + wrong);
      if (event.kind() == Event::GAP) findings_.add("who reads all was told of a gap: " + event.ShortDebugString());
      evictions_.read(event);
      last_ = event.sequence();
    }
    const auto status = reader->Finish();
    if (!leaving_) findings_.add("the stream of who reads all ended: " + status.error_message());
  }

  Findings& findings_;
  Diary diary_;
  Evictions evictions_;
  std::atomic<std::uint64_t> last_ = 0;
  std::unique_ptr<evictd::v1::EvictionService::Stub> stub_;
  grpc::ClientContext context_;
  std::atomic<bool> leaving_ = false;
  std::thread thread_;
};

enum class Habit : std::uint8_t { at_once, leisurely, not_at_all };

/// One subscriber, who comes again and again.
class Visitor {
 public:
  Visitor(std::string address, Ledger& ledger, Findings& findings, Dice dice, int number)
      : address_{std::move(address)},
        findings_{findings},
        dice_{dice},
        number_{number},
        habit_{number % 10 < 6   ? Habit::at_once
               : number % 10 < 9 ? Habit::leisurely
                                 : Habit::not_at_all},
        ledger_{ledger},
        diary_{ledger} {}

  void run(const std::stop_token& stop) {
    while (pause(stop, dice_.between(0ms, 6000ms))) visit(stop);
  }

 private:
  void visit(const std::stop_token& stop) {
    const auto stub = testbed::agent_stub(address_);
    const auto stay = dice_.between(200ms, 30'000ms) + (habit_ == Habit::not_at_all ? 10s : 0s);
    const auto most = dice_.percent(30) ? dice_.between(1, 500) : std::numeric_limits<std::int64_t>::max();
    const auto end = std::chrono::system_clock::now() + stay;
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(end);
    const std::stop_callback leave{stop, [&] { context.TryCancel(); }};
    const auto request = next_request();
    findings_.happened("events", "visits");
    const auto reader = stub->StreamEvents(&context, request);
    if (habit_ == Habit::not_at_all) pause(stop, stay - 10s);
    Event event;
    std::int64_t count = 0;
    while (count < most && reader->Read(&event)) {
      ++count;
      read_one(event);
      if (habit_ == Habit::leisurely) pause(stop, dice_.between(20ms, 400ms));
    }
    const bool left = count == most;
    if (left) context.TryCancel();
    const auto status = reader->Finish();
    if (!left && !stop.stop_requested()) judge(status, std::chrono::system_clock::now() + 500ms > end);
  }
  [[nodiscard]] evictd::v1::StreamEventsRequest next_request() {
    evictd::v1::StreamEventsRequest request;
    const auto way = dice_.between(1, 100);
    if (way <= 2) {
      request.set_after_sequence(0);
      diary_.begin(0);
      behind_ = true;
    } else if (way <= 15) {
      request.set_snapshot(true);
      diary_.begin(std::nullopt);
      behind_ = false;
    } else if (way <= 85 && diary_.last()) {
      request.set_after_sequence(*diary_.last());
      findings_.happened("events", "resumed");
    } else {
      diary_.begin(std::nullopt);
      behind_ = false;
    }
    if (dice_.percent(20)) request.mutable_heartbeat()->set_nanos(200'000'000);
    return request;
  }
  void read_one(const Event& event) {
    const auto wrong = diary_.read(event);
    if (!wrong.empty()) findings_.add(fmt::format("subscriber {}: {}", number_, wrong));
    if (event.kind() == Event::GAP) {
      findings_.happened("events", "gaps");
      if (habit_ == Habit::at_once && !behind_)
        findings_.add(
            fmt::format("subscriber {} reads at once and was told of a gap: {}", number_, event.ShortDebugString()));
    } else if (event.kind() != Event::HEARTBEAT) {
      findings_.happened("events", "told");
    }
    constexpr std::uint64_t a_burst = 256;
    if (event.sequence() + a_burst >= ledger_.newest()) behind_ = false;
  }
  /// How a stream ended that was not left. `due`: it was to end about now.
  void judge(const grpc::Status& status, bool due) {
    if (due && (status.error_code() == grpc::DEADLINE_EXCEEDED || status.error_code() == grpc::CANCELLED)) return;
    if (status.error_code() == grpc::CANCELLED && habit_ != Habit::at_once)
      findings_.happened("events", "cutOff");
    else
      findings_.add(fmt::format("subscriber {}: the stream ended with status {}: {}", number_,
                                static_cast<int>(status.error_code()), status.error_message()));
  }

  std::string address_;
  Findings& findings_;
  Dice dice_;
  int number_;
  Habit habit_;
  Ledger& ledger_;
  Diary diary_;
  bool behind_ = false;  ///< it came for the whole history, whose begin may be lost before it was read
};

/// Subscribers that come and go, each on a connection of its own for each visit: some read at once, some at their
/// leisure, some not at all. They leave with this object.
class Visitors {
 public:
  Visitors(const testbed::Agent& agent, Ledger& ledger, Findings& findings, std::uint64_t seed, int count) {
    for (int number = 0; number < count; ++number)
      threads_.emplace_back(
          [visitor = std::make_shared<Visitor>(agent.address(), ledger, findings, Dice{seed, "visitor", number},
                                               number)](const std::stop_token& stop) { visitor->run(stop); });
  }
  ~Visitors() {
    for (auto& thread : threads_) thread.request_stop();
  }
  Visitors(const Visitors&) = delete;
  Visitors& operator=(const Visitors&) = delete;

 private:
  std::vector<std::jthread> threads_;
};

/// Makes events at random moments, some dozens a second on average, until it is asked to stop.
class Chatter {
 public:
  Chatter(const testbed::Testbed& testbed, const testbed::Agent& agent, Findings& findings, std::uint64_t seed)
      : pods_{testbed, agent}, findings_{findings}, dice_{seed, "chatter"} {
    pods_.make_events(1);
  }

  /// As many as the history has room for, with `pause` after each few: what it takes when it is full is no growth
  /// later.
  void fill_history(const std::function<void()>& pause) {
    for (int events = 0; events < 4096; events += 256) {
      pods_.make_events(256);
      pause();
    }
  }
  void run(const std::stop_token& stop) {
    while (pause(stop, dice_.between(100ms, 4000ms))) {
      const auto status = pods_.reject(static_cast<int>(dice_.between(1, 100)), "default", "nobody");
      if (!status.ok()) findings_.add("evictd does not answer whether a pod may run: " + status.error_message());
    }
  }

 private:
  testbed::RejectedPods pods_;
  Findings& findings_;
  Dice dice_;
};

}  // namespace bench::soak
