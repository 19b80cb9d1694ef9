#include "benchmarks/soak/readers.hpp"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "testbed/channel.hpp"

namespace bench::soak {

namespace v1 = evictd::v1;
using namespace std::chrono_literals;
using v1::Event;

namespace {

enum class Habit : std::uint8_t { at_once, leisurely, not_at_all };

/// One subscriber, who comes again and again.
class Visitor {
 public:
  Visitor(std::string address, Ledger& ledger, Findings& findings, VisitorFigures& figures, Dice dice, int number)
      : address_{std::move(address)},
        findings_{findings},
        figures_{figures},
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
  void visit(const std::stop_token& stop);
  [[nodiscard]] v1::StreamEventsRequest next_request();
  void read_one(const Event& event);
  void judge(const grpc::Status& status, bool due);

  std::string address_;
  Findings& findings_;
  VisitorFigures& figures_;
  Dice dice_;
  int number_;
  Habit habit_;
  Ledger& ledger_;
  Diary diary_;
  bool behind_ = false;  ///< it came for the whole history, whose begin may be lost before it was read
};

v1::StreamEventsRequest Visitor::next_request() {
  v1::StreamEventsRequest request;
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
    ++figures_.resumed;
  } else {
    diary_.begin(std::nullopt);
    behind_ = false;
  }
  if (dice_.percent(20)) request.mutable_heartbeat()->set_nanos(200'000'000);
  return request;
}

void Visitor::visit(const std::stop_token& stop) {
  const auto stub = testbed::agent_stub(address_);
  const auto stay = dice_.between(200ms, 30'000ms) + (habit_ == Habit::not_at_all ? 10s : 0s);
  const auto most = dice_.percent(30) ? dice_.between(1, 500) : std::numeric_limits<std::int64_t>::max();
  const auto end = std::chrono::system_clock::now() + stay;
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(end);
  const std::stop_callback leave{stop, [&] { context.TryCancel(); }};
  const auto request = next_request();
  ++figures_.visits;
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

/// How a stream ended that was not left. `due`: it was to end about now.
void Visitor::judge(const grpc::Status& status, bool due) {
  if (due && (status.error_code() == grpc::DEADLINE_EXCEEDED || status.error_code() == grpc::CANCELLED)) return;
  if (status.error_code() == grpc::CANCELLED && habit_ != Habit::at_once)
    ++figures_.cut_off;
  else
    findings_.add(fmt::format("subscriber {}: the stream ended with status {}: {}", number_,
                              static_cast<int>(status.error_code()), status.error_message()));
}

void Visitor::read_one(const Event& event) {
  const auto wrong = diary_.read(event);
  if (!wrong.empty()) findings_.add(fmt::format("subscriber {}: {}", number_, wrong));
  if (event.kind() == Event::GAP) {
    ++figures_.gaps;
    if (habit_ == Habit::at_once && !behind_)
      findings_.add(
          fmt::format("subscriber {} reads at once and was told of a gap: {}", number_, event.ShortDebugString()));
  } else if (event.kind() != Event::HEARTBEAT) {
    ++figures_.events;
  }
  constexpr std::uint64_t a_burst = 256;
  if (event.sequence() + a_burst >= ledger_.newest()) behind_ = false;
}

}  // namespace

Chronicle::Chronicle(const testbed::Agent& agent, Ledger& ledger, Findings& findings)
    : findings_{findings}, diary_{ledger}, stub_{testbed::agent_stub(agent.address())}, thread_{[this] { read(); }} {}

Chronicle::~Chronicle() {
  leaving_ = true;
  context_.TryCancel();
  thread_.join();
}

void Chronicle::read() {
  v1::StreamEventsRequest request;
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

boost::json::object VisitorFigures::told() const {
  return {{"visits", visits.load()},
          {"resumed", resumed.load()},
          {"told", events.load()},
          {"gaps", gaps.load()},
          {"cutOff", cut_off.load()}};
}

Visitors::Visitors(const testbed::Agent& agent, Ledger& ledger, Findings& findings, VisitorFigures& figures,
                   std::uint64_t seed, int count) {
  for (int number = 0; number < count; ++number)
    threads_.emplace_back(
        [visitor = std::make_shared<Visitor>(agent.address(), ledger, findings, figures, Dice{seed, "visitor", number},
                                             number)](const std::stop_token& stop) { visitor->run(stop); });
}

Visitors::~Visitors() {
  for (auto& thread : threads_) thread.request_stop();
}

Chatter::Chatter(const testbed::Testbed& testbed, const testbed::Agent& agent, Findings& findings, std::uint64_t seed)
    : pods_{testbed, agent}, findings_{findings}, dice_{seed, "chatter"} {
  pods_.make_events(1);
}

void Chatter::fill_history(const std::function<void()>& pause) {
  for (int events = 0; events < 4096; events += 256) {
    pods_.make_events(256);
    pause();
  }
}

void Chatter::run(const std::stop_token& stop) {
  while (pause(stop, dice_.between(100ms, 4000ms))) {
    const auto status = pods_.reject(static_cast<int>(dice_.between(1, 100)), "default", "nobody");
    if (!status.ok()) findings_.add("evictd does not answer whether a pod may run: " + status.error_message());
  }
}

}  // namespace bench::soak
