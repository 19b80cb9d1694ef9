#include "benchmarks/subscribers.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <stop_token>
#include <string>

#include "testbed/channel.hpp"
#include "testbed/wait.hpp"

namespace bench {

using namespace std::chrono_literals;
namespace v1 = evictd::v1;

class Subscribers::Stream final : public grpc::ClientReadReactor<v1::Event> {
 public:
  Stream(Subscribers& all, const std::string& address) : all_{all}, stub_{testbed::agent_stub(address)} {
    context_.set_wait_for_ready(true);
    stub_->async()->StreamEvents(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }
  ~Stream() override {
    cancel();
    done_.get_future().wait();
  }

  void cancel() { context_.TryCancel(); }
  [[nodiscard]] bool stands() const { return stands_; }

  void OnReadInitialMetadataDone(bool ok) override { stands_ = ok; }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (event_.kind() == v1::Event::GAP)
      all_.missed_ += event_.gap().to() - event_.gap().from() + 1;
    else
      ++all_.read_;
    StartRead(&event_);
  }
  void OnDone(const grpc::Status&) override {
    if (!all_.leaving_) ++all_.lost_;
    done_.set_value();
  }

 private:
  Subscribers& all_;
  std::unique_ptr<v1::EvictionService::Stub> stub_;
  grpc::ClientContext context_;
  v1::StreamEventsRequest request_;
  v1::Event event_;
  std::atomic<bool> stands_ = false;
  std::promise<void> done_;
};

Subscribers::Subscribers(const testbed::Agent& agent, std::size_t count) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  // A few at a time: the bench is about events, not about who comes first.
  constexpr std::size_t at_once = 50;
  for (std::size_t first = 0; first < count; first += at_once) {
    const auto last = std::min(first + at_once, count);
    for (auto i = first; i < last; ++i) streams_.push_back(std::make_unique<Stream>(*this, agent.address()));
    testbed::wait_until("the subscriptions stand", 2min, [&] {
      return std::all_of(streams_.begin() + static_cast<std::ptrdiff_t>(first), streams_.end(),
                         [](const auto& stream) { return stream->stands(); });
    });
  }
}

Subscribers::~Subscribers() {
  leaving_ = true;
  for (const auto& stream : streams_) stream->cancel();
  streams_.clear();
}

EventLoad::EventLoad(const testbed::Testbed& testbed, const testbed::Agent& agent, int rate) : pods_{testbed, agent} {
  pods_.make_events(1);
  thread_ = std::jthread([this, rate](const std::stop_token& stop) { run(stop, rate); });
}

/// Small requests: one of 256 pods would itself hold up the agent for milliseconds.
void EventLoad::run(const std::stop_token& stop, int rate) {
  constexpr int at_once = 20;
  const std::chrono::nanoseconds interval = std::chrono::nanoseconds(1s) * at_once / rate;
  auto next = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    std::this_thread::sleep_until(next);
    if (const auto status = pods_.reject(at_once, "default", "nobody"); !status.ok())
      return fmt::print(stderr, "bench: no more events: {}\n", status.error_message());
    made_ += at_once;
    next = std::max(next + interval, std::chrono::steady_clock::now() - 100ms);
  }
}

}  // namespace bench
