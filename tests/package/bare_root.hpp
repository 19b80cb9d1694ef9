#pragma once
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "testbed/process.hpp"
#include "testbed/work_directory.hpp"

namespace package {

/// Thrown where this machine has no way to Debian's packages.
struct NoWayToPackages : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A release of Debian that evictd is built for.
struct Release {
  const char* name;      ///< "Debian 13"
  const char* codename;  ///< as debootstrap and apt know it
};
inline constexpr Release debian_12{"Debian 12", "bookworm"};
inline constexpr Release debian_13{"Debian 13", "trixie"};

/// The one that this machine is of; Debian 13 where it is another system.
[[nodiscard]] const Release& this_machines_release();
[[nodiscard]] bool is_this_machines(const Release& release);

/// A bare Debian in a directory (tools/debian/make-root), which a test may change as it likes. Debootstrap makes each
/// release once in a run; each test has a copy.
class BareRoot {
 public:
  explicit BareRoot(const Release& release);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// A directory of this machine that is to be in it, under the same name.
  void bind(const std::filesystem::path& directory) { bound_.push_back(directory); }
  /// "NAME=value" for what runs in it.
  void set(const std::string& variable) { environment_.push_back(variable); }

  /// How a script of bash ended, with all it said.
  struct Outcome {
    int code = -1;
    std::string said;
  };
  /// Runs it as root of this system (tools/debian/in-root), in the directory "/".
  [[nodiscard]] Outcome run(const std::string& script,
                            std::chrono::milliseconds deadline = std::chrono::minutes{15}) const;
  /// The same for what has to succeed; returns what it said.
  std::string done(const std::string& script, std::chrono::milliseconds deadline = std::chrono::minutes{15}) const;

 private:
  testbed::WorkDirectory directory_;
  std::filesystem::path path_;
  std::vector<std::filesystem::path> bound_;
  std::vector<std::string> environment_;
};

/// Removes what is kept for copies. At the end of a run.
void forget_bare_roots();

}  // namespace package
