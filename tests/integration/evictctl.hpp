#pragma once
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "testbed/programs.hpp"
#include "testbed/testbed.hpp"

namespace integration {

/// How the real evictctl ended.
struct Evictctl {
  int code = -1;
  std::string out{};
  std::string err{};
  pid_t pid = -1;
};

/// `before`: a program that runs it, such as {"setpriv", "--reuid=65534"}.
inline Evictctl run_evictctl(const testbed::Testbed& testbed, const std::vector<std::string>& arguments,
                             std::vector<std::string> before = {}) {
  auto command = std::move(before);
  command.push_back(testbed::evictctl_program());
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto process = testbed.spawn(command);
  const auto code = process.wait(std::chrono::seconds{60});
  REQUIRE(code.has_value());
  return {.code = *code, .out = process.output(), .err = process.errors(), .pid = process.pid()};
}

}  // namespace integration
