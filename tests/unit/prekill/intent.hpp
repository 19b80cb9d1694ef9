#pragma once
#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/pod.hpp"
#include "cri/run.hpp"
#include "evict/kill_hooks.hpp"
#include "os/now.hpp"

namespace evictd::test {

/// A pod named "web" is about to be killed.
inline evict::KillIntent intent(std::chrono::milliseconds time, std::string cgroup = "/kubepods/pod1",
                                std::uint64_t id = 7) {
  core::Pod pod;
  pod.name_space = "default";
  pod.name = "web";
  pod.uid = "u1";
  return {.pod = std::make_shared<const core::Pod>(std::move(pod)),
          .cgroup = std::move(cgroup),
          .id = id,
          .message = "memory is short",
          .until = os::now() + time};
}

/// What those make of it that are asked.
inline std::vector<evict::HookAnswer> answers(boost::asio::io_context& context, evict::KillHooks& hooks,
                                              evict::KillIntent of) {
  const auto answers = of.answers;
  bool done = false;
  boost::asio::co_spawn(context, hooks.ask(std::move(of)), [&done](const std::exception_ptr& thrown) {
    if (thrown) std::rethrow_exception(thrown);
    done = true;
  });
  REQUIRE(run_until(context, [&] { return done; }));
  return *answers;
}

}  // namespace evictd::test
