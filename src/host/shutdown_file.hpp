#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/shutdown_machine.hpp"
#include "os/boot_id.hpp"

namespace evictd::host {

/// Keeps how far a shutdown of the node has come, for an evictd that restarts in the middle of it. The file is of the
/// boot it was made in: its times are of that boot's monotonic clock, and no shutdown outlives a boot. It is replaced
/// by a rename and survives the death of evictd, not that of the machine, and need not.
class ShutdownFile {
 public:
  struct Found {
    std::optional<core::ShutdownProgress> progress{};
    std::string remark{};  ///< a warning about the file, one line; "": none
  };

  /// `boot_id`: the file with the boot's id.
  explicit ShutdownFile(std::filesystem::path file, std::filesystem::path boot_id = os::boot_id_file);

  /// A file of another boot is removed. One that cannot be understood is set aside as FILE.aside.
  [[nodiscard]] Found load() const;
  /// Nothing to keep: the file is removed.
  [[nodiscard]] Result<void> save(const std::optional<core::ShutdownProgress>& progress) const;

 private:
  std::filesystem::path file_;
  std::string boot_;
};

}  // namespace evictd::host
