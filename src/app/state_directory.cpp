#include "app/state_directory.hpp"

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "app/admission.hpp"
#include "async/deadline_thread.hpp"
#include "os/atomic_file.hpp"
#include "os/log.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace evictd::app {
namespace {

/// A disk that works is through in milliseconds; a very busy one gets a few seconds, for what is lost otherwise.
constexpr auto patience_with_state = 5s;

void read_whole(const fs::path& path) {
  std::array<char, 65536> block;
  for (std::ifstream file{path, std::ios::binary}; file.read(block.data(), block.size());) {
  }
}

/// Does what a start does with the directory: reads all files, makes one and waits until it is written. What fails is
/// told by whoever needs it.
bool try_out(const fs::path& directory) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry{directory, error}, end; !error && entry != end; entry.increment(error))
    if (entry->is_regular_file(error)) read_whole(entry->path());
  const auto probe = directory / "probe";
  if (os::write_atomically(probe, "")) fs::remove(probe, error);
  return true;
}

}  // namespace

void leave_out_silent_state(Configuration& configuration) {
  auto& directory = configuration.agent.state_directory;
  if (directory.empty()) return;
  if (async::within("reading stateDirectory", patience_with_state, [directory] { return try_out(directory); })) return;
  os::log_warning(
      "stateDirectory: {}: the disk does not answer: evictd goes on without it until it is restarted; events are kept "
      "in memory only, and no pod is given CPUs, memory or devices, since what others were given is not known",
      directory);
  directory.clear();
  leave_out_allocation(configuration);
}

}  // namespace evictd::app
