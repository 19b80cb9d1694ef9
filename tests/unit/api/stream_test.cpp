#include "api/stream.hpp"

#include <doctest/doctest.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <list>
#include <memory>
#include <vector>

#include "api/raw_call.hpp"
#include "api/running_server.hpp"
#include "fixture/captured_log.hpp"

namespace evictd::api::stream_test {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::events_after;
using test::eventually;
using test::kept_events;
using test::new_events;
using test::RunningServer;
using test::Subscriber;

/// An event that fills a good part of what the transport takes from a peer that does not read (64 KiB at first).
constexpr std::size_t bulky = 32 * 1024;
/// More of them than any transport takes.
constexpr std::size_t many = 400;

TEST_CASE("a subscriber reads what happens after it came, in order") {
  RunningServer running;
  running.append(3);
  const Client client(running.socket);
  Subscriber subscriber(*client.stub, new_events());
  running.append(3);
  for (const std::uint64_t number : {4, 5, 6}) CHECK(subscriber.read().sequence() == number);
}

TEST_CASE("a subscriber resumes where it left off and follows on") {
  RunningServer running;
  running.append(5);
  const Client client(running.socket);
  Subscriber subscriber(*client.stub, events_after(2));
  for (const std::uint64_t number : {3, 4, 5}) CHECK(subscriber.read().sequence() == number);
  running.append(1);
  CHECK(subscriber.read().sequence() == 6);
}

TEST_CASE("a stream that does not follow ends with what had happened") {
  RunningServer running;
  const Client client(running.socket);
  CHECK(Subscriber(*client.stub, kept_events()).finish().ok());

  running.append(2);
  Subscriber subscriber(*client.stub, kept_events());
  CHECK(subscriber.read().sequence() == 1);
  CHECK(subscriber.read().sequence() == 2);
  CHECK(subscriber.finish().ok());
  CHECK(eventually([&] { return running.subscribers() == 0; }));
}

TEST_CASE("a subscriber that asks for numbers no longer kept gets a gap first") {
  RunningServer running({}, {.history = 3});
  running.append(10);
  const Client client(running.socket);
  Subscriber subscriber(*client.stub, kept_events());
  const auto gap = subscriber.read();
  CHECK(gap.kind() == v1::Event::GAP);
  CHECK(gap.gap().from() == 1);
  CHECK(gap.gap().to() == 7);
  CHECK(subscriber.read().sequence() == 8);
}

TEST_CASE("a number that was not reached yet is refused: the agent restarted since") {
  RunningServer running;
  running.append(2);
  const Client client(running.socket);
  const auto status = Subscriber(*client.stub, events_after(3)).finish();
  CHECK(status.error_code() == grpc::StatusCode::OUT_OF_RANGE);
  CHECK(status.error_message() ==
        "event 3 has not happened yet, the newest is 2: numbers begin anew when evictd restarts without its history");
}

TEST_CASE("a subscriber that does not read delays nobody and is told what it missed") {
  RunningServer running({.write_timeout = test::patience}, {.history = 1000, .subscriber_queue = 8});
  const Client slow_client(running.socket);
  const Client quick_client(running.socket);
  Subscriber slow(*slow_client.stub, new_events());
  Subscriber quick(*quick_client.stub, new_events());

  for (std::uint64_t number = 1; number <= many; ++number) {
    running.append(1, bulky);
    CHECK(quick.read().sequence() == number);
  }
  CHECK(running.subscribers() == 2);

  std::uint64_t last = 0;
  int gaps = 0;
  while (last < many) {
    const auto event = slow.read();
    if (event.kind() == v1::Event::GAP) {
      ++gaps;
      CHECK(event.gap().from() == last + 1);
      last = event.gap().to();
    } else {
      CHECK(event.sequence() == last + 1);
      last = event.sequence();
    }
  }
  CHECK(last == many);
  CHECK(gaps > 0);
}

TEST_CASE("a subscriber that leaves an event unread for too long is cut off, and the log says so") {
  const fixture::CapturedLog log;
  RunningServer running({.write_timeout = 200ms});
  const Client client(running.socket);
  Subscriber stuck(*client.stub, new_events());
  CHECK(running.subscribers() == 1);
  running.append(many, bulky);
  CHECK(eventually([&] { return running.subscribers() == 0; }));
  CHECK(stuck.finish().error_code() == grpc::StatusCode::CANCELLED);
  const auto said = log.lines();
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("unread for 200 ms and is cut off") != std::string::npos);
}

TEST_CASE("a subscriber that only has nothing to read is not cut off") {
  RunningServer running({.write_timeout = 1s});
  const Client client(running.socket);
  Subscriber subscriber(*client.stub, new_events());
  running.append(1);
  CHECK(subscriber.read().sequence() == 1);
  std::this_thread::sleep_for(3s);  // several times the limit for a write
  running.append(1);
  CHECK(subscriber.read().sequence() == 2);
}

TEST_CASE("a subscriber that goes away is forgotten, with or without a word") {
  RunningServer running;
  auto client = std::make_unique<Client>(running.socket);
  {
    Subscriber cancels(*client->stub, new_events());
    Subscriber idle(*client->stub, new_events());
    CHECK(running.subscribers() == 2);
    cancels.cancel();
    CHECK(eventually([&] { return running.subscribers() == 1; }));
  }
  client.reset();
  CHECK(eventually([&] { return running.subscribers() == 0; }));
  running.append(3);
  CHECK(running.log.last_sequence() == 3);
}

TEST_CASE("whoever has taken all subscriptions, an administrator has one") {
  const test::TemporaryDirectory directory;
  RunningServer running({.admin_socket = directory / "admin.sock", .subscribers = 1});
  const Client client(running.socket);
  const Client administrator(directory / "admin.sock");
  const Subscriber first(*client.stub, new_events());
  CHECK(Subscriber(*client.stub, new_events()).finish().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  Subscriber admitted(*administrator.stub, new_events());
  running.append(1);
  CHECK(admitted.read().sequence() == 1);
}

/// A subscription that the server has read, and need not have answered.
struct AskedFor {
  explicit AskedFor(const Client& client) {
    context.set_deadline(std::chrono::system_clock::now() + test::patience);
    reader = client.stub->StreamEvents(&context, new_events());
    // On the same connection, and answered by the thread that reads both.
    (void)test::raw_call(client.channel, "/grpc.health.v1.Health/Check", "");
  }
  ~AskedFor() {
    context.TryCancel();
    for (v1::Event event; reader->Read(&event);) {
    }
    (void)reader->Finish();
  }
  AskedFor(const AskedFor&) = delete;
  AskedFor& operator=(const AskedFor&) = delete;

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::Event>> reader;
};

TEST_CASE("an administrator has a subscription while others are being refused") {
  const test::TemporaryDirectory directory;
  RunningServer running({.admin_socket = directory / "admin.sock", .subscribers = 1});
  const Client client(running.socket);
  const Client administrator(directory / "admin.sock");
  std::promise<void> release;
  boost::asio::post(running.reactor.context, [&] { release.get_future().wait(); });
  std::list<AskedFor> readers;  // more than there are places, with those of administrators
  for (int i = 0; i < 18; ++i) readers.emplace_back(client);
  AskedFor admitted(administrator);
  release.set_value();
  admitted.reader->WaitForInitialMetadata();
  CHECK(running.subscribers() == 2);
  running.append(1);
  v1::Event event;
  CHECK(admitted.reader->Read(&event));
  CHECK(event.sequence() == 1);
}

TEST_CASE("a hundred subscribers all read the same events") {
  RunningServer running;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::unique_ptr<Subscriber>> subscribers;
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 0) clients.push_back(std::make_unique<Client>(running.socket));
    subscribers.push_back(std::make_unique<Subscriber>(*clients.back()->stub, new_events()));
  }
  CHECK(running.subscribers() == 100);
  running.append(10);
  for (const auto& subscriber : subscribers)
    for (std::uint64_t number = 1; number <= 10; ++number) CHECK(subscriber->read().sequence() == number);
  subscribers.clear();
  CHECK(eventually([&] { return running.subscribers() == 0; }));
}

TEST_CASE("one subscriber too many is refused, and welcome once another has left") {
  RunningServer running({.subscribers = 2});
  const Client client(running.socket);
  const Subscriber first(*client.stub, new_events());
  auto second = std::make_unique<Subscriber>(*client.stub, new_events());
  const auto refused = Subscriber(*client.stub, new_events()).finish();
  CHECK(refused.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(refused.error_message() == "2 subscribers already: no more are served");

  second.reset();
  CHECK(eventually([&] { return running.subscribers() == 1; }));
  Subscriber third(*client.stub, new_events());
  running.append(1);
  CHECK(third.read().sequence() == 1);
}

TEST_CASE("clients that come and go while events are appended leave nothing behind") {
  RunningServer running;
  constexpr int visits = 25;
  std::vector<std::jthread> clients;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&] {
      const Client client(running.socket);
      for (int visit = 0; visit < visits; ++visit) {
        Subscriber subscriber(*client.stub, visit % 2 == 0 ? new_events() : events_after(0));
        v1::Event event;
        if (visit % 3 == 0)
          subscriber.cancel();
        else
          (void)subscriber.read(event);
      }
    });
  for (int i = 0; i < 4 * visits; ++i) running.append(1);
  // A visitor that came for new events waits for one: keep them coming until all have left.
  std::jthread more([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) running.append(1);
  });
  clients.clear();
  more.request_stop();
  more.join();
  CHECK(eventually([&] { return running.subscribers() == 0; }));
}

}  // namespace
}  // namespace evictd::api::stream_test
