#include "testbed/programs.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace testbed {

namespace {

std::filesystem::path from_environment(const char* variable, const char* built) {
  const char* given = std::getenv(variable);
  return given != nullptr ? given : built;
}

}  // namespace

std::filesystem::path evictd_program() { return from_environment("EVICTD_PROGRAM", BUILT_EVICTD); }
std::filesystem::path crashing_evictd() { return from_environment("EVICTD_CRASHING_PROGRAM", BUILT_CRASHING_EVICTD); }
std::filesystem::path evictctl_program() { return from_environment("EVICTCTL_PROGRAM", BUILT_EVICTCTL); }
std::filesystem::path bench_program() { return from_environment("EVICTD_BENCH_PROGRAM", BUILT_BENCH); }
std::filesystem::path demo_program() { return from_environment("EVICTD_DEMO_PROGRAM", BUILT_DEMO); }
std::filesystem::path load_program() { return from_environment("EVICTD_LOAD_PROGRAM", BUILT_LOAD); }

std::filesystem::path oci_runtime() { return from_environment("EVICTD_TEST_OCI_RUNTIME", "runc"); }

std::optional<std::filesystem::path> find_program(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "");
  for (std::string directory; std::getline(directories, directory, ':');) {
    auto program = std::filesystem::path(directory) / name;
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return std::nullopt;
}

}  // namespace testbed
