#include "kubelet/process.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

namespace evictd::kubelet {
namespace {

namespace fs = std::filesystem;

/// What a process may call itself is as long as it likes.
constexpr std::size_t longest_command_line = std::size_t{1} << 20;

std::string read(const fs::path& file, std::size_t most) {
  std::ifstream in{file, std::ios::binary};
  std::string text(most, '\0');
  in.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  return text;
}

/// By the kernel's name of the process, which k3s changes to "k3s-server" or "k3s-agent".
std::optional<std::string_view> program_of(std::string_view name) {
  for (const std::string_view program : {"kubelet", "kubelite", "k3s"})
    if (name == program) return program;
  return name.starts_with("k3s-") ? std::optional<std::string_view>{"k3s"} : std::nullopt;
}

bool is_roots(const fs::path& directory) {
  struct stat status{};
  return ::stat(directory.c_str(), &status) == 0 && (status.st_uid == 0 || status.st_uid == ::geteuid());
}

bool is_in_a_pod(const fs::path& directory) {
  constexpr std::size_t most = 1 << 16;
  return read(directory / "cgroup", most).find("/kubepods") != std::string::npos;
}

/// Empty of a process that has ended, and of the kernel's threads.
std::vector<std::string> command_line(const fs::path& directory) {
  const auto text = read(directory / "cmdline", longest_command_line);
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::vector<std::int64_t> pids_in(const fs::path& proc) {
  std::vector<std::int64_t> pids;
  std::error_code error;
  for (fs::directory_iterator entry{proc, error}; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
    const auto name = entry->path().filename().native();
    std::int64_t pid = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed == std::errc{} && end == name.data() + name.size()) pids.push_back(pid);
  }
  std::ranges::sort(pids);
  return pids;
}

}  // namespace

std::optional<Process> find_process(const fs::path& proc) {
  constexpr std::size_t longest_name = 64;
  for (const auto pid : pids_in(proc)) {
    const auto directory = proc / std::to_string(pid);
    auto name = read(directory / "comm", longest_name);
    while (name.ends_with('\n')) name.pop_back();
    const auto program = program_of(name);
    if (!program || !is_roots(directory) || is_in_a_pod(directory)) continue;
    auto words = command_line(directory);
    if (words.empty()) continue;
    words.erase(words.begin());
    return Process{.pid = pid, .program = std::string(*program), .arguments = std::move(words)};
  }
  return std::nullopt;
}

}  // namespace evictd::kubelet
