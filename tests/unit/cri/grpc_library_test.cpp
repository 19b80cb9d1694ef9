#include "cri/grpc_library.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace evictd::cri::grpc_library_test {
namespace {

using namespace std::chrono_literals;

/// What a file of /proc says of a thread of this process, without the end of its line.
std::string about_thread(const std::string& id, const std::string& file) {
  std::ifstream in{"/proc/" + id + "/" + file};
  std::string line;
  std::getline(in, line);
  return line;
}

std::string slack_of(const std::string& thread) { return about_thread(thread, "timerslack_ns"); }

std::string own_slack() { return slack_of(std::to_string(::gettid())); }

std::vector<std::string> slacks_of_threads_named(const std::string& name) {
  std::vector<std::string> found;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    if (const auto id = thread.path().filename().string(); about_thread(id, "comm") == name)
      found.push_back(slack_of(id));
  return found;
}

}  // namespace

TEST_CASE("the threads of gRPC's timers may be late, and no other, whoever begins it") {
  const auto before = own_slack();
  std::string of_another;
  {
    const GrpcLibrary grpc;
    CHECK(own_slack() == before);
    std::thread([&] { of_another = own_slack(); }).join();
    for (const auto* name : {"grpc_global_tim", "timer_manager"}) {
      CAPTURE(name);
      // A thread names itself, when it gets to run.
      auto slacks = slacks_of_threads_named(name);
      for (int looks = 0; slacks.empty() && looks < 1000; ++looks) {
        std::this_thread::sleep_for(10ms);
        slacks = slacks_of_threads_named(name);
      }
      CHECK_FALSE(slacks.empty());
      for (const auto& slack : slacks) CHECK(slack == "4000000000");
    }
  }
  CHECK(of_another == before);
}

}  // namespace evictd::cri::grpc_library_test
