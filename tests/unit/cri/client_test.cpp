#include "cri/client.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>

#include "async/wait_all.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "fixture/no_threads.hpp"

namespace evictd::cri::client_test {

namespace asio = boost::asio;
namespace cri = evictd::cri;
using evictd::test::FakeRuntime;
using evictd::test::patience;
using evictd::test::run;
using evictd::test::run_until;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// A runtime, a reactor and a client; the client goes before the reactor, as the program does it.
struct Fixture : cri::PresenceListener {
  FakeRuntime runtime;
  asio::io_context reactor{1};
  std::optional<cri::Client> client{std::in_place, reactor.get_executor(), runtime.endpoint(), patience};

  std::vector<cri::Presence> told;
  void watch() { client->watch(*this); }
  void presence_changed(const cri::Presence& presence) override { told.push_back(presence); }
  bool wait_until_told(std::size_t count) {
    return run_until(reactor, [&] { return told.size() >= count; });
  }
};

}  // namespace

TEST_CASE("a call yields what the runtime answers") {
  Fixture f;
  f.runtime.start();
  const auto version = run(f.reactor, f.client->version());
  REQUIRE(version);
  CHECK(version->runtime_name() == "fake");
  CHECK(version->version() == "v1");
}

TEST_CASE("without a runtime a call fails at once, and its one line says which socket does not answer") {
  Fixture f;
  const auto begin = Clock::now();
  const auto version = run(f.reactor, f.client->version(patience));
  REQUIRE_FALSE(version);
  CHECK(version.error().failure == cri::Failure::Unavailable);
  CHECK(Clock::now() - begin < patience);
  const auto& line = version.error().error.message;
  CHECK(contains(line, f.runtime.endpoint() + ": Version: "));
  CHECK(contains(line, "is it running?"));
  CHECK(!contains(line, "\n"));
}

TEST_CASE("an observer hears of every call how it ended and how long it took, before the caller does") {
  Fixture f;
  f.runtime.start();
  f.runtime.hang("StopPodSandbox");
  struct Observer final : cri::CallObserver {
    std::vector<cri::ObservedCall> calls;
    void called(const cri::ObservedCall& call) override { calls.push_back(call); }
  };
  Observer observer;
  const auto& calls = observer.calls;
  f.client->observe(&observer);
  REQUIRE(run(f.reactor, f.client->version()));
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].method == "Version");
  CHECK(calls[0].code == "OK");
  CHECK(calls[0].time > 0s);
  REQUIRE_FALSE(run(f.reactor, f.client->stop_container("gone", 0s)));
  CHECK(calls.at(1).method == "StopContainer");
  CHECK(calls.at(1).code == "NOT_FOUND");
  REQUIRE_FALSE(run(f.reactor, f.client->stop_pod_sandbox("s1", 300ms)));
  CHECK(calls.at(2).code == "DEADLINE_EXCEEDED");
  CHECK(calls[2].time >= 150ms);
  f.client->observe(nullptr);
  REQUIRE(run(f.reactor, f.client->version()));
  CHECK(calls.size() == 3);
}

TEST_CASE("a runtime that takes a call and never answers costs the deadline and no more") {
  Fixture f;
  f.runtime.start();
  f.runtime.hang("StopContainer");
  REQUIRE(run(f.reactor, f.client->version()));  // connects
  const auto begin = Clock::now();
  const auto stopped = run(f.reactor, f.client->stop_container("c1", 0s, 300ms));
  const auto waited = Clock::now() - begin;
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().failure == cri::Failure::DeadlineExceeded);
  CHECK(contains(stopped.error().error.message, "StopContainer: no answer within 300ms"));
  CHECK(waited >= 150ms);  // gRPC may fire early by as long as it was preempted while it converted clocks
  CHECK(waited < patience);
  CHECK(f.runtime.calls("StopContainer") == 1);

  SUBCASE("and other calls go through meanwhile and afterwards") { CHECK(run(f.reactor, f.client->version())); }
}

TEST_CASE("an unknown error that is heard when the deadline is over is that of the deadline") {
  Fixture f;
  f.runtime.start();
  f.runtime.fail("StopContainer", 2);  // UNKNOWN
  REQUIRE(run(f.reactor, f.client->version()));
  asio::post(f.reactor, [&] {
    // The call has begun; its answer comes in time, and nobody hears of it before its deadline is over.
    asio::post(f.reactor, [] { std::this_thread::sleep_for(3500ms); });
  });
  const auto stopped = run(f.reactor, f.client->stop_container("c1", 0s, 3s));
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().failure == cri::Failure::DeadlineExceeded);
  CHECK(contains(stopped.error().error.message, "StopContainer: no answer within 3s: ordered by the test"));
}

TEST_CASE("a runtime that is slow to greet a new connection gets the time of the deadline for it") {
  Fixture f;
  f.runtime.listen_silently();
  std::optional<bool> answered;
  asio::co_spawn(f.reactor, f.client->version(patience),
                 [&](std::exception_ptr, auto reply) { answered = reply.has_value(); });
  asio::steady_timer late{f.reactor, 500ms};
  late.async_wait([&](auto) { f.runtime.answer_waiting(); });
  REQUIRE(run_until(f.reactor, [&] { return answered.has_value(); }));
  CHECK(*answered);
}

TEST_CASE("the deadline of a stop begins when the grace period is over") {
  Fixture f;
  f.runtime.start();
  f.runtime.hang("StopContainer");
  const auto begin = Clock::now();
  const auto stopped = run(f.reactor, f.client->stop_container("c1", 1s, 200ms));
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().failure == cri::Failure::DeadlineExceeded);
  CHECK(Clock::now() - begin >= 600ms);
}

TEST_CASE("a container's CPUs and memory nodes are set, and what is not given is left out") {
  Fixture f;
  f.runtime.start();
  runtime::v1::Container container;
  container.set_id("c1");
  f.runtime.put(container, "{}");
  CHECK(run(f.reactor, f.client->update_cpuset("c1", "0-1,3", "")));
  CHECK(run(f.reactor, f.client->update_cpuset("c1", "1", "0")));
  CHECK(f.runtime.cpusets() == std::vector<std::string>{"c1 cpus 0-1,3", "c1 cpus 1 mems 0"});
  const auto gone = run(f.reactor, f.client->update_cpuset("gone", "0", ""));
  REQUIRE_FALSE(gone);
  CHECK(gone.error().failure == cri::Failure::NotFound);
}

TEST_CASE("a command is run in a container, and the call ends with its exit code, or at its deadline") {
  Fixture f;
  f.runtime.start();
  runtime::v1::Container container;
  container.set_id("c1");
  f.runtime.put(container, "{}");
  f.runtime.exit_with(3);
  const std::vector<std::string> command{"/bin/sh", "-c", "true"};
  const auto ran = run(f.reactor, f.client->exec_sync("c1", command, 5s));
  REQUIRE(ran);
  CHECK(ran->exit_code() == 3);
  CHECK(f.runtime.commands() == std::vector<std::string>{"c1 /bin/sh -c true"});
  const auto gone = run(f.reactor, f.client->exec_sync("gone", command, 5s));
  REQUIRE_FALSE(gone);
  CHECK(gone.error().failure == cri::Failure::NotFound);
  f.runtime.hang("ExecSync");
  const auto late = run(f.reactor, f.client->exec_sync("c1", command, 0s, 300ms));
  REQUIRE_FALSE(late);
  CHECK(late.error().failure == cri::Failure::DeadlineExceeded);
}

TEST_CASE(
    "of what a command writes no more is taken than an agent can spare, and the runtime is still there after it") {
  Fixture f;
  f.runtime.start();
  runtime::v1::Container container;
  container.set_id("c1");
  f.runtime.put(container, "{}");
  const std::vector<std::string> command{"/bin/sh", "-c", "yes"};
  f.runtime.write_bytes(200'000);
  CHECK(run(f.reactor, f.client->exec_sync("c1", command, 5s, patience)));
  for (const auto bytes : {300'000, 16'000'000}) {
    f.runtime.write_bytes(bytes);
    const auto ran = run(f.reactor, f.client->exec_sync("c1", command, 5s, patience));
    REQUIRE_FALSE(ran);
    CHECK(ran.error().failure == cri::Failure::Refused);
    CHECK(ran.error().too_large);
    CHECK(run(f.reactor, f.client->version()));
  }
}

TEST_CASE("a pod's address is part of its sandbox's status") {
  Fixture f;
  f.runtime.start();
  runtime::v1::PodSandbox sandbox;
  sandbox.set_id("s1");
  f.runtime.put(sandbox, "{}");
  f.runtime.set_address("s1", "10.1.2.3");
  const auto status = run(f.reactor, f.client->pod_sandbox_status("s1"));
  REQUIRE(status);
  CHECK(status->status().network().ip() == "10.1.2.3");
}

TEST_CASE("what the runtime does not know is told from what it refuses") {
  Fixture f;
  f.runtime.start();
  const auto stopped = run(f.reactor, f.client->stop_container("gone", 7s));
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().failure == cri::Failure::NotFound);
  CHECK(contains(stopped.error().error.message, "gone"));
  CHECK(f.runtime.last_grace() == 7s);

  f.runtime.fail("ListContainers", 13);
  const auto listed = run(f.reactor, f.client->list_containers());
  REQUIRE_FALSE(listed);
  CHECK(listed.error().failure == cri::Failure::Refused);
  CHECK(contains(listed.error().error.message, "ListContainers: ordered by the test (gRPC code 13)"));
}

TEST_CASE("a runtime that is starting is one that is not there yet") {
  Fixture f;
  f.runtime.start();
  constexpr auto starting = "server is not initialized yet";  // as containerd says it
  f.runtime.fail("StopContainer", 2, starting);
  const auto stopped = run(f.reactor, f.client->stop_container("c1", 7s));
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().failure == cri::Failure::Unavailable);
  CHECK(contains(stopped.error().error.message,
                 "StopContainer: the container runtime is starting (server is not initialized yet)"));

  f.runtime.fail("StopContainer", 2, "c1 said: server is not initialized yet");
  const auto refused = run(f.reactor, f.client->stop_container("c1", 7s));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().failure == cri::Failure::Refused);
  CHECK_FALSE(refused.error().too_large);

  f.runtime.fail("Version", 2, starting);
  f.watch();
  REQUIRE(f.wait_until_told(1));
  CHECK_FALSE(f.told[0].present);
  f.runtime.recover("Version");
  REQUIRE(f.wait_until_told(2));
  CHECK(f.told[1].present);
}

TEST_CASE("an answer of more than 4 MiB, gRPC's default limit, arrives") {
  Fixture f;
  f.runtime.start();
  runtime::v1::Image large;
  large.set_id("sha256:1");
  large.set_pinned(true);
  for (int i = 0; i < 5; ++i) large.add_repo_digests(std::string(1 << 20, 'x'));
  f.runtime.put(std::move(large));
  const auto images = run(f.reactor, f.client->list_images());
  REQUIRE(images);
  CHECK(images->ByteSizeLong() > 5U << 20);
  CHECK(images->images(0).pinned());
}

TEST_CASE("a large answer arrives where no thread is to be had for it") {
  Fixture f;
  f.runtime.start();
  runtime::v1::Image large;
  large.set_id(std::string(100'000, 'x'));
  f.runtime.put(std::move(large));
  std::optional<cri::Reply<runtime::v1::ListImagesResponse>> images;
  std::exception_ptr thrown;
  asio::co_spawn(f.reactor, f.client->list_images(patience), [&](std::exception_ptr exception, auto reply) {
    thrown = exception;
    images = std::move(reply);
  });
  f.reactor.poll();
  for (int wait = 0; wait < 1000 && f.runtime.calls("ListImages") < 1; ++wait) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(200ms);  // the runtime needs no more threads
  const evictd::fixture::NoThreads none;
  REQUIRE(run_until(f.reactor, [&] { return images.has_value(); }));
  CHECK(thrown == nullptr);
  REQUIRE(*images);
  CHECK((*images)->images(0).id().size() == 100'000);
}

namespace {

/// Has work done beside the reactor.
struct ReadOn {
  std::optional<cri::Reply<void>> reply{};
  std::exception_ptr thrown{};
  std::optional<std::thread::id> done_by{};
  asio::cancellation_signal cancel{};

  void begin(Fixture& f) {
    auto work = [this] { done_by = std::this_thread::get_id(); };
    auto done = [this](std::exception_ptr exception, cri::Reply<void> result) {
      thrown = exception;
      reply = std::move(result);
    };
    asio::co_spawn(f.reactor, f.client->read_on(std::move(work)),
                   asio::bind_cancellation_slot(cancel.slot(), std::move(done)));
  }
  [[nodiscard]] bool is_cancelled() const {
    return thrown == nullptr && reply && !*reply && reply->error().failure == cri::Failure::Cancelled;
  }
};

}  // namespace

TEST_CASE("who reads on in a large answer does so on another thread, and here where there is none") {
  Fixture f;
  ReadOn beside;
  beside.begin(f);
  REQUIRE(run_until(f.reactor, [&] { return beside.reply.has_value(); }));
  CHECK(*beside.reply);
  REQUIRE(beside.done_by);
  CHECK(*beside.done_by != std::this_thread::get_id());

  Fixture without;
  const evictd::fixture::NoThreads none;
  ReadOn here;
  here.begin(without);
  REQUIRE(run_until(without.reactor, [&] { return here.reply.has_value(); }));
  CHECK(*here.reply);
  REQUIRE(here.done_by);
  CHECK(*here.done_by == std::this_thread::get_id());
}

TEST_CASE("who reads on in a large answer is cancelled, and the client waits for what is under way alone") {
  Fixture f;
  std::promise<void> begun;
  std::promise<void> go_on;
  std::optional<cri::Reply<void>> first;
  auto work = [&begun, wait = go_on.get_future()]() mutable {
    begun.set_value();
    wait.get();
  };
  asio::co_spawn(f.reactor, f.client->read_on(std::move(work)),
                 [&](std::exception_ptr, cri::Reply<void> reply) { first = std::move(reply); });
  f.reactor.poll();
  begun.get_future().get();
  ReadOn cancelled;
  ReadOn queued;
  cancelled.begin(f);
  queued.begin(f);
  f.reactor.restart();
  f.reactor.poll();
  cancelled.cancel.emit(asio::cancellation_type::terminal);
  std::jthread later{[&] {
    std::this_thread::sleep_for(20ms);
    go_on.set_value();
  }};
  f.client.reset();
  REQUIRE(run_until(f.reactor, [&] { return first && cancelled.reply && queued.reply; }));
  CHECK(first->error().failure == cri::Failure::Cancelled);
  CHECK(cancelled.is_cancelled());
  CHECK(queued.is_cancelled());
  CHECK_FALSE(queued.done_by);  // it had not begun
}

TEST_CASE("a hundred calls run side by side and answer in order") {
  Fixture f;
  f.runtime.start();
  for (int i = 0; i < 100; ++i) {
    runtime::v1::Container container;
    container.set_id("c" + std::to_string(i));
    f.runtime.put(container, "{}");
  }
  std::vector<cri::Awaitable<runtime::v1::ContainerStatusResponse>> calls;
  for (int i = 0; i < 100; ++i) calls.push_back(f.client->container_status("c" + std::to_string(i)));

  const auto statuses = run(f.reactor, evictd::async::wait_all(std::move(calls)));
  REQUIRE(statuses.size() == 100);
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    REQUIRE(statuses[i]);
    CHECK(statuses[i]->status().id() == "c" + std::to_string(i));
  }
  CHECK(f.runtime.calls("ContainerStatus") == 100);
}

TEST_CASE("cancelling a coroutine ends its call, and its call alone") {
  Fixture f;
  f.runtime.start();
  f.runtime.hang("StopContainer");
  f.runtime.hang("RemoveContainer");

  asio::cancellation_signal cancel;
  std::optional<cri::Reply<runtime::v1::StopContainerResponse>> stopped;
  std::optional<cri::Reply<runtime::v1::RemoveContainerResponse>> removed;
  asio::co_spawn(
      f.reactor, f.client->stop_container("c1", 0s, patience),
      asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr, auto reply) { stopped = std::move(reply); }));
  asio::co_spawn(f.reactor, f.client->remove_container("c2", patience),
                 [&](std::exception_ptr, auto reply) { removed = std::move(reply); });
  REQUIRE(run_until(f.reactor,
                    [&] { return f.runtime.calls("StopContainer") == 1 && f.runtime.calls("RemoveContainer") == 1; }));

  cancel.emit(asio::cancellation_type::terminal);
  REQUIRE(run_until(f.reactor, [&] { return stopped.has_value(); }));
  REQUIRE_FALSE(*stopped);
  CHECK(stopped->error().failure == cri::Failure::Cancelled);
  CHECK_FALSE(removed.has_value());
}

TEST_CASE("a client that goes cancels its calls, and their coroutines still end") {
  Fixture f;
  f.runtime.start();
  f.runtime.hang("StopContainer");
  f.watch();
  std::vector<cri::Failure> failures;
  for (int i = 0; i < 20; ++i)
    asio::co_spawn(f.reactor, f.client->stop_container("c", 0s, patience), [&](std::exception_ptr, auto reply) {
      if (!reply) failures.push_back(reply.error().failure);
    });
  REQUIRE(run_until(f.reactor, [&] { return f.runtime.calls("StopContainer") == 20 && f.told.size() == 1; }));

  SUBCASE("when the reactor runs on") {
    f.client.reset();
    f.reactor.restart();
    f.reactor.run();  // returns: neither a call nor the watch is left to keep it
    CHECK(failures == std::vector(20, cri::Failure::Cancelled));
    CHECK(f.told.size() == 1);
  }
  SUBCASE("and when it does not, nothing is left behind") {
    f.client.reset();
    CHECK(failures.empty());
  }
}

TEST_CASE("a client may go before the runtime has even seen its call") {
  Fixture f;
  f.runtime.start();
  f.runtime.hang("Version");
  std::optional<cri::Failure> failure;
  asio::co_spawn(f.reactor, f.client->version(patience), [&](std::exception_ptr, auto reply) {
    failure = reply ? std::nullopt : std::optional{reply.error().failure};
  });
  f.reactor.poll_one();
  f.client.reset();
  REQUIRE(run_until(f.reactor, [&] { return f.reactor.stopped(); }));
  CHECK(failure == cri::Failure::Cancelled);
}

TEST_CASE("the reactor does not run out of work before the answer") {
  Fixture f;
  f.runtime.start();
  bool answered = false;
  asio::co_spawn(f.reactor, f.client->version(), [&](std::exception_ptr, auto reply) { answered = reply.has_value(); });
  while (!answered && f.reactor.run_one() > 0) continue;
  CHECK(answered);
}

TEST_CASE("a stream yields what the runtime tells, one after the other, and waits as long as there is nothing") {
  Fixture f;
  f.runtime.start();
  const auto events = f.client->container_events();
  std::vector<std::string> told;
  bool ended = false;
  const auto listen = [&]() -> asio::awaitable<void> {
    for (;;) {
      const auto event = co_await events->next();
      if (!event) break;
      told.push_back(event->container_id());
    }
    ended = true;
  };
  asio::co_spawn(f.reactor, listen(), asio::detached);
  REQUIRE(run_until(f.reactor, [&] { return f.runtime.listeners() == 1; }));
  CHECK(told.empty());
  f.runtime.tell(300);
  REQUIRE(run_until(f.reactor, [&] { return told.size() == 300; }));
  CHECK(told.front() == "c1");
  CHECK(run(f.reactor, f.client->version()));  // beside it

  SUBCASE("until we end it") { events->cancel(); }
  SUBCASE("until the runtime ends it") { f.runtime.end_streams(0); }
  SUBCASE("until the runtime goes") { f.runtime.stop(); }
  SUBCASE("until the client goes") { f.client.reset(); }
  CHECK(run_until(f.reactor, [&] { return ended; }));
}

TEST_CASE("what a stream ended by is told, and it does not begin again") {
  Fixture f;
  f.runtime.start();
  const auto ended_by = [&](int code) {
    f.runtime.fail("GetContainerEvents", code);
    const auto events = f.client->container_events();
    const auto event = run(f.reactor, events->next());
    REQUIRE_FALSE(event);
    const auto after = run(f.reactor, events->next());
    REQUIRE_FALSE(after);
    CHECK(after.error().failure == cri::Failure::Cancelled);
    return event.error().failure;
  };
  CHECK(ended_by(12) == cri::Failure::Unimplemented);
  CHECK(ended_by(14) == cri::Failure::Unavailable);
  CHECK(ended_by(0) == cri::Failure::Unavailable);
  CHECK(ended_by(13) == cri::Failure::Refused);
  CHECK(f.runtime.calls("GetContainerEvents") == 4);
}

TEST_CASE("a stream that nobody reads makes the runtime wait, and may go at any time") {
  Fixture f;
  f.runtime.start();
  auto events = f.client->container_events();
  asio::co_spawn(f.reactor, events->next(), asio::detached);
  REQUIRE(run_until(f.reactor, [&] { return f.runtime.listeners() == 1; }));
  f.runtime.tell(100'000, std::string(4096, 'c'));  // more than the windows and the sockets hold
  CHECK(run(f.reactor, f.client->version()));
  CHECK(f.runtime.told() < 100'000);
  SUBCASE("before the client") { events.reset(); }
  SUBCASE("after the client") {
    f.client.reset();
    events.reset();
  }
  CHECK(run_until(f.reactor, [&] { return f.runtime.listeners() == 0; }));
}

TEST_CASE("the watch tells once each that the runtime is absent, there, gone and there again") {
  Fixture f;
  f.watch();
  REQUIRE(f.wait_until_told(1));
  CHECK_FALSE(f.told[0].present);
  CHECK(contains(f.told[0].detail, f.runtime.endpoint()));
  CHECK_FALSE(f.client->connected());

  f.runtime.start();
  REQUIRE(f.wait_until_told(2));
  CHECK(f.told[1].present);
  CHECK(f.told[1].detail == "fake 1.0");
  CHECK(f.client->connected());

  f.runtime.stop();
  REQUIRE(f.wait_until_told(3));
  CHECK_FALSE(f.told[2].present);
  CHECK_FALSE(f.client->connected());

  f.runtime.start();
  REQUIRE(f.wait_until_told(4));
  CHECK(f.told[3].present);
  CHECK(run(f.reactor, f.client->version()));
  CHECK(f.told.size() == 4);
}

TEST_CASE("a socket that takes connections is no runtime until it answers") {
  Fixture f;
  f.runtime.fail("Version", 12);
  f.runtime.start();
  f.watch();
  REQUIRE(f.wait_until_told(1));
  CHECK_FALSE(f.told[0].present);
  CHECK(contains(f.told[0].detail, "gRPC code 12"));

  // It keeps looking, without a word until there is something new.
  REQUIRE(run_until(f.reactor, [&] { return f.runtime.calls("Version") >= 4; }));
  CHECK(f.told.size() == 1);

  f.runtime.recover("Version");
  REQUIRE(f.wait_until_told(2));
  CHECK(f.told[1].present);
}

TEST_CASE("after a restart of the runtime calls work again without a word to the client") {
  Fixture f;
  f.runtime.start();
  REQUIRE(run(f.reactor, f.client->version()));
  f.runtime.stop();
  f.runtime.start();
  CHECK(run(f.reactor, f.client->version()));
}

TEST_CASE("a coroutine that is cancelled as its answer comes ends as cancelled, and nothing is thrown") {
  Fixture f;
  f.runtime.start();
  REQUIRE(run(f.reactor, f.client->version()));
  asio::cancellation_signal cancel;
  std::optional<cri::Failure> failure;
  std::exception_ptr thrown;
  std::atomic<bool> sent = false;
  // An answer that comes while the reactor still sends would be taken at once.
  f.runtime.meanwhile("Version", [&] { sent.wait(false); });
  asio::co_spawn(f.reactor, f.client->version(patience),
                 asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr exception, auto reply) {
                   thrown = exception;
                   failure = reply ? std::nullopt : std::optional{reply.error().failure};
                 }));
  f.reactor.restart();
  f.reactor.poll();
  sent = true;
  sent.notify_all();
  for (int wait = 0; wait < 1000 && f.runtime.calls("Version") < 2; ++wait) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(100ms);  // the answer is there, and the reactor has not looked
  cancel.emit(asio::cancellation_type::terminal);
  REQUIRE(run_until(f.reactor, [&] { return failure.has_value() || thrown != nullptr; }));
  CHECK(thrown == nullptr);
  CHECK(failure == cri::Failure::Cancelled);
}

}  // namespace evictd::cri::client_test
