#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace evictd::kubelet {

/// A kubelet that runs on this machine, by itself or within its distribution's program.
struct Process {
  std::int64_t pid = 0;
  std::string program;                 ///< "kubelet"; "kubelite" of MicroK8s; "k3s"
  std::vector<std::string> arguments;  ///< behind the program's name

  friend bool operator==(const Process&, const Process&) = default;
};

/// The first one by pid. It has to be root's and must not run in a pod: a pod may call its processes what it likes.
///
/// `proc`: where proc is mounted. Two small files of each process are read: 20 ms for a thousand. From any thread.
[[nodiscard]] std::optional<Process> find_process(const std::filesystem::path& proc);

}  // namespace evictd::kubelet
