// What a subscriber may ask for beside the plain events: a filter, a snapshot, heartbeats.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "api/running_server.hpp"
#include "api/stream.hpp"

namespace evictd::api::stream_kinds_test {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::events_after;
using test::eventually;
using test::kept_events;
using test::new_events;
using test::RunningServer;
using test::Subscriber;

void append(RunningServer& running, v1::Event::Kind kind, const std::string& pod = {}) {
  running.reactor.run([&] {
    v1::Event event;
    event.set_kind(kind);
    if (!pod.empty()) event.mutable_pod()->set_name(pod);
    running.log.append(std::move(event));
  });
}

v1::StreamEventsRequest with_kind(v1::StreamEventsRequest request, v1::Event::Kind kind) {
  request.mutable_filter()->add_kinds(kind);
  return request;
}

v1::StreamEventsRequest with_heartbeat(v1::StreamEventsRequest request, std::chrono::milliseconds time) {
  request.mutable_heartbeat()->set_nanos(static_cast<std::int32_t>(std::chrono::nanoseconds(time).count()));
  return request;
}

v1::StreamEventsRequest with_snapshot(v1::StreamEventsRequest request = {}) {
  request.set_snapshot(true);
  return request;
}

TEST_CASE("a subscriber with a filter gets what fits, and the numbers stay those of the log") {
  RunningServer running;
  const Client client(running.socket);
  auto request = with_kind(events_after(0), v1::Event::EVICTION_INTENDED);
  request.mutable_filter()->add_pods("web");
  append(running, v1::Event::EVICTION_INTENDED, "web");
  append(running, v1::Event::EVICTION_INTENDED, "mail");
  Subscriber subscriber(*client.stub, request);
  CHECK(subscriber.read().sequence() == 1);
  append(running, v1::Event::RECOVERED);
  append(running, v1::Event::CLEANUP_DONE, "web");
  append(running, v1::Event::EVICTION_INTENDED, "web");
  CHECK(subscriber.read().sequence() == 5);
}

TEST_CASE("a stream that does not follow ends although nothing fits") {
  RunningServer running;
  running.append(3000);
  const Client client(running.socket);
  Subscriber subscriber(*client.stub, with_kind(kept_events(), v1::Event::AUDIT));
  v1::Event event;
  CHECK_FALSE(subscriber.read(event));
  CHECK(subscriber.finish().ok());
  CHECK(eventually([&] { return running.subscribers() == 0; }));
}

TEST_CASE("a gap is told whatever the filter") {
  RunningServer running({}, {.history = 3});
  running.append(10);
  const Client client(running.socket);
  Subscriber subscriber(*client.stub, with_kind(events_after(0), v1::Event::AUDIT));
  CHECK(subscriber.read().gap().to() == 7);
  append(running, v1::Event::AUDIT);
  auto event = subscriber.read();
  if (event.kind() == v1::Event::GAP) event = subscriber.read();  // the eighth may have gone before it was looked at
  CHECK(event.sequence() == 11);
}

TEST_CASE("an event behind a hundred thousand that do not fit is found, turn by turn, while others are served") {
  constexpr int many = 100'000;
  RunningServer running({}, {.history = many + 1});
  running.reactor.run([&] {
    v1::Event event;
    event.set_kind(v1::Event::RECOVERED);
    for (int i = 0; i < many; ++i) running.log.append(event);
    event.set_kind(v1::Event::AUDIT);
    running.log.append(event);
  });
  const Client client(running.socket);
  std::vector<std::unique_ptr<Subscriber>> subscribers;
  for (int i = 0; i < 5; ++i)
    subscribers.push_back(std::make_unique<Subscriber>(*client.stub, with_kind(events_after(0), v1::Event::AUDIT)));
  Subscriber quick(*client.stub, events_after(many));
  CHECK(quick.read().sequence() == many + 1);
  for (const auto& subscriber : subscribers) CHECK(subscriber->read().sequence() == many + 1);
}

TEST_CASE("a snapshot comes first, says up to where, and all that follows comes after it") {
  RunningServer running;
  running.node.set_version("1.2.3");
  running.node.set_pods(12);
  auto& pressure = *running.node.add_conditions();
  pressure.set_type("MemoryPressure");
  pressure.set_status(true);
  running.append(5);
  const Client client(running.socket);
  Subscriber subscriber(*client.stub, with_kind(with_snapshot(), v1::Event::AUDIT));
  running.append(1);
  append(running, v1::Event::AUDIT);
  const auto snapshot = subscriber.read();
  CHECK(snapshot.kind() == v1::Event::SNAPSHOT);
  CHECK(snapshot.sequence() == 5);
  CHECK(snapshot.snapshot().version() == "1.2.3");
  CHECK(snapshot.snapshot().last_event_sequence() == 5);
  CHECK(snapshot.message() == "MemoryPressure; 12 pods, 0 evictions under way");
  CHECK(snapshot.has_time());
  CHECK(subscriber.read().sequence() == 7);

  auto once = with_snapshot();
  once.set_follow(false);
  Subscriber brief(*client.stub, once);
  CHECK(brief.read().sequence() == 7);
  CHECK(brief.finish().ok());
}

TEST_CASE("a snapshot is of the very moment that its number says, however much happens") {
  RunningServer running({}, {.history = 100'000, .subscriber_queue = 50'000});
  std::jthread busy([&](const std::stop_token& stop) {
    while (!stop.stop_requested())
      running.reactor.run([&] {
        for (int i = 0; i < 3; ++i) {
          v1::Event event;
          event.set_kind(v1::Event::RECOVERED);
          running.log.append(std::move(event));
          running.node.set_passes(running.log.last_sequence());  // what the snapshot is held against
        }
      });
  });
  const Client client(running.socket);
  for (int i = 0; i < 50; ++i) {
    Subscriber subscriber(*client.stub, with_snapshot());
    const auto snapshot = subscriber.read();
    CHECK(snapshot.snapshot().passes() == snapshot.sequence());
    for (std::uint64_t next = 1; next <= 3; ++next) CHECK(subscriber.read().sequence() == snapshot.sequence() + next);
  }
}

TEST_CASE("who hears nothing for so long gets heartbeats, with the number to resume from") {
  RunningServer running;
  running.append(2);
  const Client client(running.socket);
  Subscriber subscriber(*client.stub, with_heartbeat(with_kind(new_events(), v1::Event::AUDIT), 100ms));
  auto heartbeat = subscriber.read();
  CHECK(heartbeat.kind() == v1::Event::HEARTBEAT);
  CHECK(heartbeat.sequence() == 2);
  CHECK(heartbeat.has_time());
  running.append(3);  // nothing that fits
  std::uint64_t last = 2;
  while (last < 5) {
    heartbeat = subscriber.read();
    CHECK(heartbeat.kind() == v1::Event::HEARTBEAT);
    CHECK(heartbeat.sequence() >= last);
    last = heartbeat.sequence();
  }
  CHECK(last == 5);
  append(running, v1::Event::AUDIT);
  auto event = subscriber.read();
  while (event.kind() == v1::Event::HEARTBEAT) event = subscriber.read();  // of the time before it
  CHECK(event.kind() == v1::Event::AUDIT);
  CHECK(event.sequence() == 6);
  CHECK(subscriber.read().kind() == v1::Event::HEARTBEAT);

  Subscriber resumed(*client.stub, with_kind(events_after(last), v1::Event::AUDIT));
  CHECK(resumed.read().sequence() == 6);
}

TEST_CASE("who hears enough gets no heartbeat") {
  RunningServer running;
  const Client client(running.socket);
  Subscriber subscriber(*client.stub, with_heartbeat(new_events(), 900ms));
  const auto begin = std::chrono::steady_clock::now();
  auto heard = begin;
  std::uint64_t number = 0;
  while (heard - begin < 2s) {
    running.append(1);
    const auto event = subscriber.read();
    const auto silence = std::chrono::steady_clock::now() - std::exchange(heard, std::chrono::steady_clock::now());
    if (event.kind() == v1::Event::HEARTBEAT && silence > 400ms) return;  // this very thread did not run
    CHECK(event.sequence() == ++number);
    std::this_thread::sleep_for(20ms);
  }
}

TEST_CASE("what cannot be is refused before anything is subscribed") {
  RunningServer running;
  running.append(3);
  const Client client(running.socket);
  const auto refusal = [&](const v1::StreamEventsRequest& request) {
    const auto status = Subscriber(*client.stub, request).finish();
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  CHECK(refusal(with_snapshot(events_after(2))) ==
        "snapshot and after_sequence (2) exclude each other: what follows a snapshot begins after it");
  CHECK(refusal(with_heartbeat(new_events(), 99ms)) == "heartbeat: 0 s and 99000000 ns are less than 100 ms");
  CHECK(refusal(with_kind(new_events(), static_cast<v1::Event::Kind>(77))) ==
        "filter.kinds: 77 is no kind of event that this evictd knows");
  CHECK(running.subscribers() == 0);
}

TEST_CASE("five hundred that come at once, want different things and leave, leave nothing behind") {
  RunningServer running({.subscribers = 400}, {.history = 100});
  running.append(150);
  std::vector<std::jthread> clients;
  std::atomic<int> served = 0;
  std::atomic<int> refused = 0;
  for (int thread = 0; thread < 5; ++thread)
    clients.emplace_back([&, thread] {
      const Client client(running.socket);
      std::vector<std::unique_ptr<Subscriber>> subscribers;
      for (int i = 0; i < 100; ++i) {
        auto request = i % 3 == 0   ? with_snapshot()
                       : i % 3 == 1 ? events_after(0)
                                    : with_heartbeat(new_events(), 100ms);
        subscribers.push_back(std::make_unique<Subscriber>(*client.stub, request));
      }
      for (auto& subscriber : subscribers) {
        v1::Event event;
        ++(subscriber->read(event) ? served : refused);
        if (thread % 2 == 0) subscriber->cancel();
      }
    });
  clients.clear();
  CHECK(served + refused == 500);
  CHECK(served >= 400);  // more where some had left before others came
  CHECK(eventually([&] { return running.subscribers() == 0; }));
}

}  // namespace
}  // namespace evictd::api::stream_kinds_test
