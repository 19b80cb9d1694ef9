#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "testbed/cri.hpp"
#include "testbed/process.hpp"
#include "testbed/testbed.hpp"

namespace testbed {

/// The real evictd cri-proxy before a testbed's containerd, with its configuration in the testbed's directory. It asks
/// the agent that `Agent` runs there, if there is one.
class CriProxy {
 public:
  struct Options {
    std::string undecided = "admit";         ///< criProxy.undecided
    std::vector<std::string> environment{};  ///< "NAME=value"
  };

  /// Returns when it takes calls.
  explicit CriProxy(Testbed& testbed) : CriProxy(testbed, Options{}) {}
  CriProxy(Testbed& testbed, const Options& options);

  [[nodiscard]] const std::filesystem::path& socket() const { return socket_; }
  /// CRI as its clients have it.
  [[nodiscard]] Cri& cri() { return cri_; }
  [[nodiscard]] Process& process() { return process_; }

 private:
  [[nodiscard]] Process start(Testbed& testbed, const Options& options) const;

  std::filesystem::path socket_;
  Process process_;
  Cri cri_;
};

}  // namespace testbed
