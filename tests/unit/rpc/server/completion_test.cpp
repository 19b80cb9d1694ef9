#include "rpc/server/completion.hpp"

#include <doctest/doctest.h>
#include <grpcpp/alarm.h>

#include <chrono>
#include <optional>
#include <thread>

namespace evictd::rpc::completion_test {
namespace {

/// Two operations of one owner.
struct Owner {
  void first(bool ok) { first_ok = ok; }
  void second(bool ok) {
    second_ok = ok;
    thread = std::this_thread::get_id();
  }

  std::optional<bool> first_ok;
  std::optional<bool> second_ok;
  std::thread::id thread;
  OwnCompletion<Owner> first_completion{*this, &Owner::first};
  OwnCompletion<Owner> second_completion{*this, &Owner::second};
};

TEST_CASE("each operation completes by its own function, on the queue's thread, before that ends") {
  Owner owner;
  grpc::Alarm never;
  grpc::Alarm now;
  grpc::CompletionQueue queue;
  {
    const CompletionThread thread(queue, "a test");
    const auto time = std::chrono::system_clock::now();
    never.Set(&queue, time + std::chrono::hours(1), owner.first_completion.tag());
    now.Set(&queue, time, owner.second_completion.tag());
    never.Cancel();
  }
  CHECK(owner.first_ok == false);
  CHECK(owner.second_ok == true);
  CHECK(owner.thread != std::this_thread::get_id());
}

}  // namespace
}  // namespace evictd::rpc::completion_test
