#include <array>

#include "commands/check.hpp"
#include "commands/cri_proxy.hpp"
#include "commands/disarm.hpp"
#include "commands/inspect.hpp"
#include "commands/run.hpp"
#include "commands/simulate.hpp"

int main(int argc, char** argv) {
  using namespace evictd::commands;
  const std::array commands{
      run_command(), check_command(), simulate_command(), inspect_command(), disarm_command(), cri_proxy_command(),
  };
  return run_command_line(argc, argv, commands);
}
