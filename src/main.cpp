#include <array>

#include "commands/inspect.hpp"
#include "commands/simulate.hpp"

int main(int argc, char** argv) {
  using namespace evictd::commands;
  const std::array commands{
      simulate_command(),
      inspect_command(),
  };
  return run_command_line(argc, argv, commands);
}
