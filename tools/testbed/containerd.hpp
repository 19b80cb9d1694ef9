#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "testbed/image.hpp"
#include "testbed/process.hpp"
#include "testbed/work_directory.hpp"

namespace testbed {

/// A containerd of the testbed's own: its root, state, socket and configuration lie in a directory that goes away with
/// this object, and with it all pods and their shims. It uses cgroupfs and no CNI: pods run on the host's network. It
/// is the containerd, with the shim, that PATH has: 1.6 to 2.1 have been tried.
class Containerd {
 public:
  struct Options {
    /// An existing directory, say on a small file system, for images and writable layers. Empty: our own.
    std::filesystem::path root{};
    /// What the shims run as runc. Empty: oci_runtime().
    std::filesystem::path runc{};
  };

  /// Prepares all and starts nothing.
  explicit Containerd(const Options& options);
  Containerd(const Containerd&) = delete;
  Containerd& operator=(const Containerd&) = delete;
  ~Containerd();

  /// Returns when CRI answers and the images are there: load_image and pause_image, imported by the first start. Pods
  /// outlive a stop and a kill, as containerd means them to; after the next start they are known again.
  void start();
  /// SIGTERM, and waits for the end.
  void stop();
  /// SIGKILL, and waits for the end.
  void kill9() { process_->kill(); }

  /// An image with a layer of its own, of about so many bytes and so many files besides, that no container uses. `name`
  /// has a tag: "evictd.test/unused:1".
  void import_image(std::string_view name, std::int64_t layer_bytes, int empty_files = 0);

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_.path(); }
  [[nodiscard]] std::filesystem::path socket() const { return directory() / "containerd.sock"; }
  /// "unix:///…", as gRPC and evictd take it.
  [[nodiscard]] std::string address() const { return "unix://" + socket().native(); }
  /// Its log, over all its starts.
  [[nodiscard]] std::filesystem::path log() const { return directory() / "containerd.log"; }
  /// Where images and writable layers are stored.
  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  /// Starts another program that belongs to this testbed, such as the agent under test.
  [[nodiscard]] Process spawn(const std::vector<std::string>& command, const Process::Options& options = {}) const {
    return directory_.spawn(command, options);
  }
  /// Only while it is started.
  [[nodiscard]] pid_t pid() const { return process_->pid(); }

 private:
  void wait_until_ready();
  void import_load_images();
  /// Their folders lie in the folder "images", which goes.
  void import_images(const std::vector<Image>& images);

  WorkDirectory directory_;
  std::filesystem::path root_;
  bool has_images_ = false;
  std::optional<Process> process_;  // ends before the directory goes
};

}  // namespace testbed
