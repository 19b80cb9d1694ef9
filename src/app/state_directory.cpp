#include "app/state_directory.hpp"

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "app/admission.hpp"
#include "async/deadline_thread.hpp"
#include "config/agent_configuration.hpp"
#include "os/atomic_file.hpp"
#include "os/log.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace evictd::app {
namespace {

/// A disk that works is through in milliseconds; a very busy one gets a few seconds, for what is lost otherwise.
constexpr auto patience_with_state = 5s;

/// Whether the disk reads and writes: the beginning of what a start reads, and a file that is made and is there. What
/// fails is told by whoever needs it.
bool try_out(const config::StateFiles& files) {
  for (const fs::path path : {files.thresholds, files.allocations, files.events + "/numbers"}) {
    std::error_code error;
    std::array<char, 4096> block;
    if (fs::symlink_status(path, error).type() == fs::file_type::regular)
      std::ifstream{path, std::ios::binary}.read(block.data(), block.size());
  }
  const auto probe = fs::path{files.thresholds}.replace_filename("probe");
  std::error_code ignored;
  if (os::write_atomically(probe, "")) fs::remove(probe, ignored);
  return true;
}

}  // namespace

void leave_out_silent_state(Configuration& configuration) {
  auto& directory = configuration.agent.state_directory;
  if (directory.empty()) return;
  const auto files = config::state_files(configuration.agent);
  if (async::within("trying stateDirectory out", patience_with_state, [files] { return try_out(files); })) return;
  os::log_warning(
      "stateDirectory: {}: the disk does not answer: evictd goes on without it until it is restarted; events are kept "
      "in memory only, and no pod is given CPUs, memory or devices, since what others were given is not known",
      directory);
  configuration.state_is_silent = true;
  directory.clear();
  leave_out_allocation(configuration);
}

}  // namespace evictd::app
