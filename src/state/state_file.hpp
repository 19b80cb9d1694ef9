#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "host/boot_id.hpp"
#include "os/file_descriptor.hpp"
#include "os/saved_slots.hpp"
#include "state/saved_events.hpp"

namespace evictd::state {

/// Keeps a few KiB, and the newest events, for the evictd that starts after this one, however this one ends.
///
/// It has two slots (os::SavedSlots), so that at whatever moment evictd is killed one of them holds. All blocks are
/// there from the start, so a full file system takes nothing away. On a tmpfs, where it belongs, a write is a copy of
/// some microseconds: it never waits and may stand between a decision and the kill. Its head names the boot, for
/// the times in it are of that boot's monotonic clock. It survives the death of evictd, not that of the machine, and
/// need not.
class StateFile {
 public:
  struct Found;

  /// Reads what is kept and makes the file where there is none that can go on being used: one that is torn, foreign or
  /// of a newer version is renamed to "PATH.aside", one of another boot is written over. `inherited`: a descriptor of
  /// the file that an earlier evictd has left with systemd, for where the directory is removed between the two; or
  /// none.
  [[nodiscard]] static Result<Found> open(const std::filesystem::path& path, os::FileDescriptor inherited = {},
                                          const std::filesystem::path& boot_id = host::boot_id_file);

  /// The next one reads this. Error: it is too long for a slot, or cannot be written; what was stored before holds.
  [[nodiscard]] Result<void> store(std::string_view content);

  /// The events in the same file, behind the slots.
  [[nodiscard]] SavedEvents& events() { return events_; }

  [[nodiscard]] const os::FileDescriptor& descriptor() const { return file_; }

  static constexpr std::size_t slot_size = std::size_t{512} * 1024;
  /// What a slot holds: some 500 evictions under way.
  static constexpr std::size_t largest_content = slot_size - os::SavedSlots::head_size;
  /// Where the first slot lies in the file; before it are the head and the events' marks.
  static constexpr std::size_t slots_offset = 4096;

 private:
  StateFile(std::filesystem::path path, os::FileDescriptor file);
  [[nodiscard]] Result<void> make(std::string_view boot);
  [[nodiscard]] Result<void> copy(const os::FileDescriptor& from);
  [[nodiscard]] Error cannot(std::string_view what) const;

  std::filesystem::path path_;
  os::FileDescriptor file_;
  SavedEvents events_;
  os::SavedSlots slots_{{.offset = slots_offset, .slot_size = slot_size}};
};

struct StateFile::Found {
  StateFile file;
  std::string content{};  ///< "": nothing was kept, or nothing that can be used
  std::string remark{};   ///< what was wrong with what was there, one line; "": nothing
};

}  // namespace evictd::state
