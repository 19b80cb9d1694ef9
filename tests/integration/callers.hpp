#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "testbed/agent.hpp"

// What tests of callers and of what they may do share.

namespace integration {

inline testbed::Event wait_for_audit(testbed::Agent& agent, const std::string& caller) {
  return agent.events().wait_for("an audit of " + caller, std::chrono::seconds{30}, [&](const testbed::Event& event) {
    return event.kind() == testbed::Event::AUDIT && event.audit().caller().find(caller) != std::string::npos;
  });
}

/// How many TCP sockets the process has that listen, or all others.
inline std::size_t tcp_sockets(pid_t pid, bool that_listen) {
  std::set<std::string> sockets;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid))) {
    std::error_code gone;
    sockets.insert(std::filesystem::read_symlink(entry.path(), gone).native());
  }
  std::size_t count = 0;
  for (const auto* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::istringstream fields(line);
      const std::vector<std::string> all{std::istream_iterator<std::string>(fields), {}};
      constexpr auto listening = "0A";
      if (all.size() > 9 && (all[3] == listening) == that_listen &&
          sockets.contains(fmt::format("socket:[{}]", all[9])))
        ++count;
    }
  }
  return count;
}

inline std::vector<std::string> operator+(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace integration
