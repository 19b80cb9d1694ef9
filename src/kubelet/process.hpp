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
  std::string unit{};                  ///< the service of systemd that it runs in, "k3s.service"; empty: none
  /// Why the arguments do not lead to its configuration: "runs in a container of its own"; empty: they do.
  std::string unusable{};

  friend bool operator==(const Process&, const Process&) = default;
};

/// The first one by pid. A name alone makes none, since everybody may give it to a process: all its user ids must be
/// root's (a setuid program that a user starts has his own among them), it must not run in a pod, and it must have the
/// pid namespace of `proc`, which no pod has that Pod Security's baseline lets through.
///
/// `proc`: where proc is mounted. One small file of each process is read, and some more of those with such a name:
/// 10 ms for a thousand. From any thread; nothing of a process that is not trusted is read that the process could hold
/// up.
[[nodiscard]] std::optional<Process> find_process(const std::filesystem::path& proc);

}  // namespace evictd::kubelet
