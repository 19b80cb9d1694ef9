#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "node/cgroup.hpp"
#include "os/directory.hpp"
#include "os/file_error.hpp"

// While a pod is held (node/brake.hpp, node/freezer.hpp) files of its cgroup say something else than before. What they
// said is noted before they are touched, so that whoever comes after an evictd that was killed can put it back.

namespace evictd::node {

/// Which hierarchy a file is in; on v2 there is one for both.
enum class HoldTree : std::uint8_t { memory, freezer };

/// A file of the pod's cgroup, what it said, and what evictd writes into it.
struct HeldValue {
  HoldTree tree = HoldTree::memory;
  std::uint64_t inode = 0;  ///< the cgroup's: one that was made anew under the same name was never touched
  std::string file;
  std::string before;
  std::string now;

  friend bool operator==(const HeldValue&, const HeldValue&) = default;
};

struct HoldNote {
  std::string uid;                  ///< the pod's
  std::string cgroup;               ///< the pod's own, a path below the hierarchies' roots
  std::vector<HeldValue> values{};  ///< in the order in which they are written

  [[nodiscard]] std::string text() const;
  /// Nothing where it is none, or names a file that no hold writes.
  [[nodiscard]] static std::optional<HoldNote> parse(std::string_view uid, std::string_view text);

  friend bool operator==(const HoldNote&, const HoldNote&) = default;
};

/// The notes, one for each pod that is held, in a directory of their own that is there as long as there are any: the
/// unit looks for it when evictd has ended. On a tmpfs, where writing one takes microseconds. Not for two threads at a
/// time.
class HoldNotes {
 public:
  explicit HoldNotes(std::filesystem::path directory) : directory_{std::move(directory)} {}

  [[nodiscard]] Result<void> write(const HoldNote& note) const;
  /// Nothing where there is none, or none that anybody could go by.
  [[nodiscard]] os::FileResult<std::optional<HoldNote>> read(std::string_view uid) const;
  /// The pods that have one.
  [[nodiscard]] std::vector<std::string> uids() const;
  /// No error where there is none. The directory goes with the last one.
  void remove(std::string_view uid) const;
  /// Removes what a write that was broken off has left, and the directory where it holds no note.
  void tidy() const;

 private:
  [[nodiscard]] bool is_name(std::string_view uid) const;

  std::filesystem::path directory_;
};

/// The pod's cgroup in that hierarchy. On v1 the freezer has one of its own beside memory's.
[[nodiscard]] os::FileResult<os::Directory> hold_directory(const CgroupHierarchy& hierarchy, HoldTree tree,
                                                           std::string_view cgroup);
/// The first line without its end; of memory.oom_control the number that can be written.
[[nodiscard]] os::FileResult<std::string> read_held_file(const os::Directory& cgroup, const std::string& file);
/// May wait for the kernel's reclaim: not for the reactor's thread.
[[nodiscard]] os::FileResult<void> write_held_file(const os::Directory& cgroup, const std::string& file,
                                                   std::string_view value);

/// Puts back what the note's pod had before, last written first, and removes the note. What says something else by now
/// is someone else's and stays; a cgroup that is gone has nothing. Error: the note cannot be read now, or the first
/// file that could not be put back; the others are, and the note stays. Raising limits and thawing do not wait.
[[nodiscard]] os::FileResult<void> lift_hold(const CgroupHierarchy& hierarchy, const HoldNotes& notes,
                                             std::string_view uid);
/// The same for all notes, logged: for the start, "evictd disarm" and an evictd that ends. How many pods were let go.
std::size_t lift_all_holds(const CgroupHierarchy& hierarchy, const HoldNotes& notes);

}  // namespace evictd::node
