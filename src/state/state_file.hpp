#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "events/event_log.hpp"
#include "os/boot_id.hpp"
#include "os/file_descriptor.hpp"
#include "os/saved_slots.hpp"

namespace evictd::state {

/// Up to where the saved events count.
struct EventMark {
  std::uint64_t generation = 0;  ///< of two marks the higher one holds
  std::uint64_t last = 0;        ///< the last number that an event was given
  std::uint64_t reserved = 0;    ///< up to where numbers are reserved on disk (events::EventLog::reserved)
  std::uint64_t end = 0;         ///< of the ring: the bytes ever written to it

  friend bool operator==(const EventMark&, const EventMark&) = default;
};

/// The newest events, serialized, in a ring of fixed size within the state file. An event is written once, however
/// often the rest of the state is saved, and counts from the next mark on: what was written after the mark that holds
/// is not read. So the events of an eviction and the state of it, whose slot has a mark too, become valid together.
///
/// On a tmpfs an event of 1.5 KB takes 5 us.
class SavedEvents {
 public:
  /// Some 200 to 1,500 events.
  static constexpr std::size_t ring_size = std::size_t{512} * 1024;
  /// An event that is larger is not saved, and is a hole after a restart. The largest of an eviction, with 16 ranked
  /// pods whose names are as long as they can be, has 10 KiB.
  static constexpr std::size_t largest = std::size_t{64} * 1024;
  /// Of the two marks, in the first block of the state file, behind its head.
  static constexpr std::size_t marks_offset = 1024;

  /// `file`: the state file, which must stay open. `offset`: of the ring in it.
  SavedEvents(int file, std::size_t offset) : file_{file}, offset_{offset} {}

  /// The mark that was made last; absent: none ever.
  [[nodiscard]] std::optional<EventMark> read_mark() const;
  /// The events before the mark, the oldest first, as many as are whole.
  [[nodiscard]] std::vector<std::string> read(const EventMark& mark) const;
  /// Goes on after the mark. Before anything is added.
  void resume_after(const EventMark& mark);

  /// To be written by the next write().
  void add(std::string_view event);
  /// Error: the file takes nothing. What was added is given up then.
  [[nodiscard]] Result<void> write();
  /// A mark for what was written, to be saved by save() or with other state.
  [[nodiscard]] EventMark next_mark(std::uint64_t last, std::uint64_t reserved);
  [[nodiscard]] Result<void> save(const EventMark& mark);

 private:
  [[nodiscard]] bool read_at(std::uint64_t position, char* target, std::size_t size) const;
  [[nodiscard]] bool write_at(std::uint64_t position, std::string_view bytes);

  int file_;
  std::size_t offset_;
  std::uint64_t end_ = 0;
  std::uint64_t generation_ = 0;
  std::string added_;
};

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
                                          const std::filesystem::path& boot_id = os::boot_id_file);

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

/// Of the mark that was saved with the state and the one beside it the newer one.
[[nodiscard]] std::optional<EventMark> newest_mark(const SavedEvents& saved, const std::optional<EventMark>& of_state);

/// The events before the mark. `saved` goes on after it.
[[nodiscard]] events::RescuedEvents rescue(SavedEvents& saved, const EventMark& mark);

/// Saves what is appended to an event log before anybody is told of it. On the reactor; both must outlive this.
class EventSaver {
 public:
  EventSaver(SavedEvents& saved, events::EventLog& log) : saved_{saved}, log_{log} {}

  /// Writes what was appended since the last time, with a mark of its own. Nothing where there is nothing new.
  [[nodiscard]] Result<void> save();

  /// The same in two steps, for a mark that is saved with other state. First: writes the new events.
  [[nodiscard]] Result<void> write();
  /// Then: the mark that covers them.
  [[nodiscard]] const EventMark& mark() const { return mark_; }
  /// Where the other state could not be saved: the mark by itself.
  [[nodiscard]] Result<void> save_mark() { return saved_.save(mark_); }
  /// At last: they may be told.
  void finish() { log_.saved(); }

 private:
  SavedEvents& saved_;
  events::EventLog& log_;
  EventMark mark_;
};

}  // namespace evictd::state
