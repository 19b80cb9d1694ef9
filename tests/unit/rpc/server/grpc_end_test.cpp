#include "rpc/server/grpc_end.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <latch>
#include <memory>
#include <thread>

#include "async/deadline_thread.hpp"
#include "fixture/no_threads.hpp"

namespace evictd::rpc::grpc_end_test {
namespace {

using namespace std::chrono_literals;

/// In place of a server whose end gRPC holds up.
struct Last {
  explicit Last(std::latch& held) : hold{held} {}
  ~Last() { hold.wait(); }
  Last(const Last&) = delete;
  Last& operator=(const Last&) = delete;

  std::latch& hold;
};

bool is_left_behind() {
  const auto left = async::left_behind();
  return std::ranges::find(left, "gRPC, for a client that does not read") != left.end();
}

}  // namespace

TEST_CASE("a gRPC that does not end is left to itself until it does") {
  std::latch hold{1};
  end_grpc(std::make_unique<Last>(hold));
  CHECK(is_left_behind());
  hold.count_down();
  for (int look = 0; look < 60'000 && is_left_behind(); ++look) std::this_thread::sleep_for(1ms);
  CHECK_FALSE(is_left_behind());
}

TEST_CASE("where no thread is to be had gRPC ends all the same") {
  std::latch open{0};
  const auto last = std::make_shared<Last>(open);
  {
    const fixture::NoThreads none;
    end_grpc(std::make_unique<std::shared_ptr<Last>>(last));
  }
  CHECK(last.use_count() == 1);
}

}  // namespace evictd::rpc::grpc_end_test
