#pragma once
#include <dirent.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"

// The removal of what pods have written, or had a hand in. No symbolic link is followed, nothing that is mounted there
// is entered, and where the kernel cannot see to that (os/beneath.hpp) nothing is removed. All of it blocks.
namespace evictd::evict {

/// What was removed, and what stood in the way.
struct Removed {
  std::size_t files = 0;                 ///< and links, sockets, …; no directories
  std::optional<os::FileError> error{};  ///< the first
  bool out_of_time = false;              ///< there was no time for all of it, which may be the error (ETIME)
};

/// A directory below another one that is open, for those who remove what is in it. `path`: as errors name it.
[[nodiscard]] os::FileResult<os::FileDescriptor> open_for_removal(int parent, const std::string& relative,
                                                                  const std::string& path);

/// The names in a directory that is open, at most `most`, of those that begin with `prefix`.
[[nodiscard]] os::FileResult<std::vector<std::string>> names_in(int directory, const std::string& path,
                                                                std::size_t most, std::string_view prefix = {});

/// Removes directories with all that is in them, for as long as there is time. However many files there are and however
/// deep they lie, it takes little memory and few descriptors. A directory of somebody else's is made evictd's own where
/// that is what forbids the removal: CAP_CHOWN is enough for it, and CAP_DAC_OVERRIDE is not needed.
class TreeRemoval {
 public:
  /// `removed` outlives this.
  TreeRemoval(Removed& removed, core::Instant give_up) : removed_{removed}, give_up_{give_up} {}

  /// The directory itself goes, too. One that is gone is no error.
  void remove_directory(int parent, const std::string& name, const std::string& path);
  /// What is in a directory that is open.
  void clear(int directory, const std::string& path);

 private:
  /// One that is being cleared.
  struct Level {
    int directory;
    const std::string& path;
    int depth;  ///< below `top_`
    bool is_own = false;
  };

  bool clear(Level level);
  bool remove_all_of(DIR* listing, Level& level);
  bool remove(Level& level, const std::string& name);
  bool remove_below(Level& level, const std::string& name, const std::string& path);
  bool move_to_top(Level& level, const std::string& name, const std::string& path);
  bool unlink(Level& level, const std::string& name, int flags);
  bool failed(os::FileError error);
  bool failed_for_time(const std::string& path);

  Removed& removed_;
  core::Instant give_up_;
  int top_ = -1;
};

}  // namespace evictd::evict
