#include "host/self_protection.hpp"

#include <doctest/doctest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

namespace evictd::host::self_protection_test {
namespace {

using Lines = std::vector<std::string>;

/// What the function says in a process of its own: protection is for life.
Lines in_a_child(const std::function<Lines()>& function) {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const auto& line : function())
      if (::write(pipe[1], (line + '\n').data(), line.size() + 1) < 0) std::_Exit(1);
    std::_Exit(0);
  }
  ::close(pipe[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t size = 0; (size = ::read(pipe[0], buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(size));
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// A number of /proc/self/status, in KiB.
long status_number(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == key) {
      long number = 0;
      status >> number;
      return number;
    }
  return -1;
}

}  // namespace

TEST_CASE("a host that refuses everything is told in one line each, with what to do about it") {
  const auto lines = in_a_child([] {
    const rlimit little{.rlim_cur = 65536, .rlim_max = 65536};
    const rlimit few{.rlim_cur = 100, .rlim_max = 200};
    ::setrlimit(RLIMIT_MEMLOCK, &little);
    ::setrlimit(RLIMIT_NOFILE, &few);
    if (::geteuid() == 0 && ::setuid(65534) != 0) std::_Exit(1);
    Lines refused;
    if (auto line = protect_self()) refused.push_back(*std::move(line));
    if (const auto locked = lock_memory(); !locked) refused.push_back(locked.error().message);
    return refused;
  });
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("no more than 200 files") != std::string::npos);
  CHECK(lines[0].find("LimitNOFILE") != std::string::npos);
  CHECK(lines[1].find("CAP_IPC_LOCK") != std::string::npos);
}

TEST_CASE("what a pass takes for thousands of pods is not asked of the kernel each time") {
  const auto lines = in_a_child([]() -> Lines {
    static_cast<void>(protect_self());
    const auto mapped = ::mallinfo2().hblkhd;
    const auto all_there_is = std::make_unique_for_overwrite<char[]>(900'000);
    const auto usages = std::make_unique_for_overwrite<char[]>(900'000);
    return {std::to_string(::mallinfo2().hblkhd - mapped)};
  });
  CHECK(lines == Lines{"0"});
}

TEST_CASE("memory is locked where it was touched, and memory that is only reserved stays untouched") {
  const auto lines = in_a_child([]() -> Lines {
    if (!lock_memory()) return {};
    const auto before = status_number("VmRSS:");
    constexpr std::size_t size = 64 << 20;
    auto* memory =
        static_cast<char*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) return {"a mapping was refused"};
    Lines wrong;
    if (status_number("VmLck:") <= 0) wrong.emplace_back("nothing is locked");
    if (status_number("VmRSS:") - before > 32 * 1024) wrong.emplace_back("what was never touched is resident");
    memory[0] = 1;
    ::madvise(memory, 4096, MADV_DONTNEED);
    if (memory[0] != 1) wrong.emplace_back("a touched page was given up: it is not locked");
    return wrong;
  });
  CHECK(lines == Lines{});
}

TEST_CASE("files may be opened up to the hard limit") {
  const auto lines = in_a_child([]() -> Lines {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 64;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    static_cast<void>(protect_self());
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur == limit.rlim_max ? Lines{} : Lines{"the soft limit was not raised"};
  });
  CHECK(lines == Lines{});
}

}  // namespace evictd::host::self_protection_test
