#include "kubelet/process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/number.hpp"
#include "os/directory.hpp"

namespace evictd::kubelet {
namespace {

namespace fs = std::filesystem;

/// As long as the kernel lets a command line be, for all that a process may write there.
constexpr std::size_t longest_command_line = std::size_t{6} << 20;
constexpr std::size_t longest_name = 64;
constexpr std::size_t longest_file = std::size_t{1} << 20;

std::string read(const fs::path& file, std::size_t most) {
  std::ifstream in{file, std::ios::binary};
  std::string text;
  std::array<char, 16384> buffer{};
  while (in && text.size() < most) {
    in.read(buffer.data(), static_cast<std::streamsize>(std::min(buffer.size(), most - text.size())));
    text.append(buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  return text;
}

/// By the kernel's name of the process, which is that of its file. k3s runs as "k3s-server" or "k3s-agent".
std::optional<std::string_view> program_of(std::string_view name) {
  for (const std::string_view program : {"kubelet", "kubelite"})
    if (name == program) return program;
  if (name == "k3s-server" || name == "k3s-agent") return "k3s";
  return std::nullopt;
}

/// The numbers behind a name in /proc/PID/status: "Uid:	0	0	0	0".
std::vector<std::uint64_t> numbers_of(const std::string& status, std::string_view name) {
  std::istringstream lines{status};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream words{line.substr(name.size())};
    return {std::istream_iterator<std::uint64_t>{words}, {}};
  }
  return {};
}

bool is_the_systems(const fs::path& directory) {
  constexpr std::size_t ids = 4;  // real, effective, saved, of the file system
  const auto status = read(directory / "status", longest_file);
  const auto users = numbers_of(status, "Uid:");
  const bool is_roots = users == std::vector<std::uint64_t>(ids, 0);
  const bool is_own = users == std::vector<std::uint64_t>(ids, ::geteuid());
  return (is_roots || is_own) && numbers_of(status, "NSpid:").size() <= 1;
}

/// Where the processes' root directories lie: "254:1 /", the device and the directory in it.
std::string root_of(const fs::path& directory) {
  std::istringstream mounts{read(directory / "mountinfo", longest_file)};
  std::string root;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words{line};
    std::string id, parent, device, from, mounted_on;
    words >> id >> parent >> device >> from >> mounted_on;
    if (mounted_on == "/") root = device + ' ' + from;  // the last one covers the others
  }
  return root;
}

/// The service in a path of cgroups: "0::/system.slice/k3s.service/init" has "k3s.service".
std::string unit_in(const std::string& cgroups) {
  constexpr std::string_view suffix = ".service";
  const auto end = cgroups.find(suffix);
  if (end == std::string::npos) return {};
  const auto begin = cgroups.rfind('/', end);
  return begin == std::string::npos ? std::string{} : cgroups.substr(begin + 1, end + suffix.size() - begin - 1);
}

std::vector<std::string> words_of(const std::string& text) {
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
    if (const auto pid = core::whole_number(name)) pids.push_back(*pid);
  }
  std::ranges::sort(pids);
  return pids;
}

/// A few system calls, since it is asked of each process of a node, and a pod may have tens of thousands.
std::optional<std::string_view> program_in(const os::Directory& proc, std::int64_t pid) {
  std::array<char, longest_name> buffer;
  const auto file = proc.file(fmt::format("{}/comm", pid));
  if (!file) return std::nullopt;
  const auto name = file->read(buffer);
  return name ? program_of(name->substr(0, name->find('\n'))) : std::nullopt;
}

/// The kubelet in this directory of proc, if it is one. What is read of memory that is the process's own, its command
/// line, is read last: a process may have that wait for a disk.
std::optional<Process> process_in(const fs::path& directory, std::string_view program, const std::string& roots_root) {
  if (!is_the_systems(directory)) return std::nullopt;
  const auto cgroups = read(directory / "cgroup", longest_file);
  if (cgroups.find("kubepods") != std::string::npos) return std::nullopt;
  Process process{.pid = 0, .program = std::string(program), .arguments = {}, .unit = unit_in(cgroups)};
  if (root_of(directory) != roots_root)
    process.unusable = "runs in a container of its own: its files cannot be found from here";
  const auto command_line = read(directory / "cmdline", longest_command_line);
  process.arguments = words_of(command_line);
  if (process.arguments.empty()) return std::nullopt;  // it has ended
  process.arguments.erase(process.arguments.begin());
  if (command_line.size() == longest_command_line) process.unusable = "has a command line without an end";
  return process;
}

}  // namespace

std::optional<Process> find_process(const fs::path& proc) {
  const auto directory = os::Directory::open(proc);
  if (!directory) return std::nullopt;
  const auto root = root_of(proc / "1");
  for (const auto pid : pids_in(proc)) {
    const auto program = program_in(*directory, pid);
    if (!program) continue;
    auto process = process_in(proc / std::to_string(pid), *program, root);
    if (!process) continue;
    process->pid = pid;
    return process;
  }
  return std::nullopt;
}

}  // namespace evictd::kubelet
