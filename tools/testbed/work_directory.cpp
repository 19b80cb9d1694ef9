#include "testbed/work_directory.hpp"

#include <string_view>
#include <system_error>

#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/leftovers.hpp"
#include "testbed/mounts.hpp"
#include "testbed/process_table.hpp"

namespace testbed {

namespace fs = std::filesystem;

namespace {

/// A shim listens outside of containerd's directories, in /run/containerd/s, and one that was killed leaves its socket
/// there. Its bundle's file "address" tells which it was.
void remove_shim_sockets(const fs::path& directory) {
  constexpr std::string_view scheme = "unix://";
  std::error_code gone;
  for (fs::recursive_directory_iterator entry(directory / "containerd-state", gone), end; !gone && entry != end;
       entry.increment(gone)) {
    if (entry->path().filename() == "rootfs") entry.disable_recursion_pending();
    if (entry->path().filename() != "address") continue;
    const auto address = try_read_file(entry->path());
    if (address && address->starts_with(scheme)) fs::remove(address->substr(scheme.size()), gone);
  }
}

}  // namespace

WorkDirectory::WorkDirectory() : path_(fs::canonical(fs::temp_directory_path()) / unique_name()) {
  fs::create_directory(path_);
}

WorkDirectory::~WorkDirectory() {
  report_failure([&] { remove_work_directory(path_); });
}

Process WorkDirectory::spawn(const std::vector<std::string>& command, Process::Options options) const {
  options.working_directory = path_;
  options.environment.push_back(mark_of(path_));
  return Process(command, options);
}

void remove_work_directory(const fs::path& directory) {
  kill_all([&] { return with_descendants(marked_processes(directory)); });
  remove_shim_sockets(directory);
  unmount_below(directory);
  fs::remove_all(directory);
}

}  // namespace testbed
