#pragma once
#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>

namespace bench {

/// Answers the CRI calls that evictd makes, on a unix socket, for pods that are mere cgroups with a process inside. A
/// stand-in, used by `bench scale` alone: a real containerd needs minutes and gigabytes for a thousand pods, and the
/// bench asks what evictd costs, not what containerd does. What it cannot show is how long a real runtime takes. As
/// containerd does from 1.7 on it tells of pods that come and go, so evictd lists them once a minute.
class RuntimeStandIn {
 public:
  struct Pod {
    std::string name;                 ///< also its uid and its ids
    std::string cgroup;               ///< as CRI says it; the container's is below it: CGROUP/NAME
    std::filesystem::path directory;  ///< of the cgroup in the memory hierarchy; a stop kills what runs there
  };

  /// `images`: a directory, empty at first, for the images and layers that there are none of.
  RuntimeStandIn(const std::filesystem::path& socket, const std::filesystem::path& images);
  ~RuntimeStandIn();

  void add(const Pod& pod);
  void remove(const std::string& name);

 private:
  class State;
  class Runtime;
  class Images;
  struct Server;

  std::unique_ptr<State> state_;
  std::unique_ptr<Server> server_;
};

}  // namespace bench
