#include <cstdlib>
#include <iostream>

#include "evictctl/command_line.hpp"

int main(int argc, char** argv) {
  ::setenv("GRPC_VERBOSITY", "NONE", 0);  // what went wrong is told in our own words
  return evictd::ctl::run(argc, argv, std::cout, std::cerr);
}
