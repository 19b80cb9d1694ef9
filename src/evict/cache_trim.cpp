#include "evict/cache_trim.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "os/kept_file.hpp"
#include "os/now.hpp"
#include "os/numbers.hpp"
#include "os/timed_write.hpp"

namespace evictd::evict {
namespace {

using node::CgroupVersion;

constexpr std::int64_t page_size = 4096;  // in which refaults are counted; another size only ends a pod's turn sooner
constexpr std::int64_t least_amount = 1 << 20;     // less is not worth a write
constexpr std::int64_t least_progress = 64 << 10;  // counters lag behind by some pages for each processor
constexpr int idle_writes = 2;
/// Of writes that were broken off on v1: each begins with a word to all processors, which may take all of its time.
constexpr int idle_moments = 8;

struct TrimFiles {
  const char* usage;
  const char* reclaim;
  // Lines of memory.stat.
  std::string_view inactive;
  std::string_view active;
  std::string_view anonymous;
  std::string_view shared;
  std::string_view refaults;
};

constexpr TrimFiles trim_files(CgroupVersion version) {
  if (version == CgroupVersion::v1)
    return {.usage = "memory.usage_in_bytes",
            .reclaim = "memory.force_empty",
            .inactive = "total_inactive_file",
            .active = "total_active_file",
            .anonymous = "total_rss",
            .shared = "total_shmem",
            .refaults = "total_workingset_refault_file"};
  return {.usage = "memory.current",
          .reclaim = "memory.reclaim",
          .inactive = "inactive_file",
          .active = "active_file",
          .anonymous = "anon",
          .shared = "shmem",
          .refaults = "workingset_refault_file"};
}

struct CacheReading {
  std::int64_t usage = 0;
  std::int64_t working_set = 0;
  std::int64_t active = 0;    // file cache that counts as used
  std::int64_t own = 0;       // what no reclaim takes without swap: anonymous and shared memory
  std::int64_t refaults = 0;  // pages, since ever
};

os::FileResult<CacheReading> read_cache(const os::Directory& cgroup, const TrimFiles& files) {
  const auto stat = cgroup.file("memory.stat");
  if (!stat) return std::unexpected(stat.error());
  const auto usage_file = cgroup.file(files.usage);
  if (!usage_file) return std::unexpected(usage_file.error());
  std::array<char, os::table_size> buffer;
  const auto table = stat->read(buffer);
  if (!table) return std::unexpected(table.error());
  const auto usage = usage_file->read_number();
  if (!usage) return std::unexpected(usage.error());
  const auto number = [&table](std::string_view key) { return os::find_number(*table, key).value_or(0); };
  return CacheReading{.usage = *usage,
                      .working_set = std::max<std::int64_t>(0, *usage - number(files.inactive)),
                      .active = number(files.active),
                      .own = number(files.anonymous) + number(files.shared),
                      .refaults = number(files.refaults)};
}

/// Where that cannot be seen there may be some.
bool has_swap(const std::string& proc) {
  const auto directory = os::Directory::open(proc);
  if (!directory) return true;
  const auto file = directory->file("meminfo");
  if (!file) return true;
  std::array<char, os::table_size> buffer;
  const auto table = file->read(buffer);
  return !table || os::find_number(*table, "SwapTotal:").value_or(1) != 0;
}

/// One run over all pods.
class CacheTrim {
 public:
  CacheTrim(const TrimPlan& plan, const std::atomic<bool>& stopped, const TrimLimits& limits, TrimTools& tools)
      : plan_{plan},
        stopped_{stopped},
        limits_{limits},
        tools_{tools},
        files_{trim_files(plan.version)},
        began_{now()},
        swaps_{has_swap(plan.proc)} {}

  TrimResult run() {
    if (plan_.version == CgroupVersion::v1 && swaps_)
      return impossible("cgroup v1 has no way to take file cache alone while there is swap");
    for (const auto& target : plan_.pods) {
      if (const auto end = end_of_all(0)) return finish(*end);
      trim(target);
      if (impossible_) return finish(TrimEnd::Impossible);
    }
    return finish(end_of_all(0).value_or(TrimEnd::NoneLeft));
  }

 private:
  [[nodiscard]] core::Instant now() const { return tools_.now(); }

  TrimResult finish(TrimEnd end) {
    result_.end = end;
    result_.duration = now() - began_;
    return std::move(result_);
  }

  TrimResult impossible(std::string why) {
    result_.errors.push_back({std::move(why)});
    return finish(TrimEnd::Impossible);
  }

  /// `gained`: by the pod whose turn it is.
  [[nodiscard]] std::optional<TrimEnd> end_of_all(std::int64_t gained) const {
    if (stopped_.load(std::memory_order_relaxed)) return TrimEnd::Stopped;
    if (result_.bytes + gained >= plan_.wanted) return TrimEnd::Enough;
    if (now() - began_ >= limits_.all) return TrimEnd::Time;
    return std::nullopt;
  }

  /// How much may be asked for; 0: none.
  [[nodiscard]] std::int64_t amount(const TrimTarget& target, const CacheReading& reading) const {
    const auto least = plan_.version == CgroupVersion::v1 ? limits_.margin_v1 : least_amount;
    const auto above = reading.working_set - target.request;
    if (above < least || reading.active < least_amount) return 0;
    return std::min({limits_.amount, above, reading.active});
  }

  /// 0 or errno. `above`: bytes that the pod holds above its request.
  int ask(const os::FileDescriptor& file, std::int64_t bytes, std::int64_t above) {
    const auto write = [&](std::string_view text, core::Duration patience) {
      return tools_.write(file.get(), text, patience);
    };
    if (plan_.version == CgroupVersion::v1) {
      constexpr int longer = 4;  // where the moments went by before anything was taken
      return write("0", limits_.write_v1 * (idle_ > 0 && above >= longer * limits_.margin_v1 ? longer : 1));
    }
    if (takes_swappiness_) {
      const int error = write(fmt::format("{} swappiness=0", bytes), limits_.write);
      if (error != EINVAL) return error;
      takes_swappiness_ = false;
    }
    return swaps_ ? EOPNOTSUPP : write(fmt::format("{}", bytes), limits_.write);
  }

  void trim(const TrimTarget& target) {
    auto before = read_cache(target.cgroup, files_);
    if (!before) return remember(target, 0, before.error());
    auto last = *before;
    const os::FileDescriptor file{::openat(target.cgroup.descriptor(), files_.reclaim, O_WRONLY | O_CLOEXEC)};
    if (!file) return refused(target, 0, errno);
    idle_ = 0;
    for (;;) {
      const auto gained = gain(*before, last);
      if (const auto end = end_of_all(gained)) return remember(target, gained, std::string(name(*end)));
      const auto bytes = amount(target, last);
      if (bytes == 0) return remember(target, gained, "nothing left above its request");
      const int error = ask(file, bytes, last.working_set - target.request);
      const auto after = read_cache(target.cgroup, files_);
      if (!after) return remember(target, gained, after.error());
      const auto progress = std::max(last.usage - after->usage, last.working_set - after->working_set);
      last = *after;
      const auto total = gain(*before, last);
      if (error != 0 && error != EAGAIN && error != EINTR && error != EBUSY) return refused(target, total, error);
      idle_ = progress < least_progress ? idle_ + 1 : 0;
      const bool no_time = plan_.version == CgroupVersion::v1 && error == EINTR;
      if (idle_ >= (no_time ? idle_moments : idle_writes)) return remember(target, total, "no progress");
      if (reads_back(*before, last)) return remember(target, total, "it reads back what was taken");
    }
  }

  /// Neither what the pod gave back by itself meanwhile counts, nor what it has taken again. Not by the cache itself:
  /// usage is exact, and all lines of memory.stat can be two seconds old (Trimmer::counts_lag).
  [[nodiscard]] static std::int64_t gain(const CacheReading& before, const CacheReading& now) {
    const auto given_back = std::max<std::int64_t>(0, before.own - now.own);
    return std::max<std::int64_t>(0, before.working_set - now.working_set - given_back);
  }

  /// More than a quarter of what was taken, and more than chance.
  [[nodiscard]] static bool reads_back(const CacheReading& before, const CacheReading& now) {
    const auto back = (now.refaults - before.refaults) * page_size;
    return back > std::max<std::int64_t>(least_amount, (before.usage - now.usage) / 4);
  }

  /// The file cannot be opened or written to. Where the pod is there, that is so with all pods.
  void refused(const TrimTarget& target, std::int64_t gained, int error) {
    if (const auto there = target.cgroup.file("memory.stat"); !there || error == ENODEV)
      return remember(target, gained, "its cgroup has gone");
    remember(target, gained, os::reason(error));
    const auto path = fmt::format("{}/{}", target.cgroup.path(), files_.reclaim);
    if (error == ENOENT)
      result_.errors.push_back({fmt::format("{}: this kernel has no such file: Linux 5.19 does", path)});
    else if (error == EOPNOTSUPP && swaps_)
      result_.errors.push_back({"this kernel cannot take file cache alone while there is swap: Linux 6.9 can"});
    else
      result_.errors.push_back(os::system_error(error, path));
    impossible_ = true;
  }

  void remember(const TrimTarget& target, std::int64_t bytes, std::string ended_by) {
    result_.bytes += bytes;
    result_.pods.push_back({.pod = target.pod, .bytes = bytes, .ended_by = std::move(ended_by)});
  }
  void remember(const TrimTarget& target, std::int64_t bytes, const os::FileError& error) {
    if (!error.is_gone()) result_.errors.push_back(error);
    remember(target, bytes, error.is_gone() ? std::string("its cgroup has gone") : error.message);
  }

  const TrimPlan& plan_;
  const std::atomic<bool>& stopped_;
  const TrimLimits& limits_;
  TrimTools& tools_;
  TrimFiles files_;
  core::Instant began_;
  bool swaps_;
  bool takes_swappiness_ = true;
  bool impossible_ = false;
  int idle_ = 0;  // writes that came to nothing, one after the other
  TrimResult result_;
};

}  // namespace

std::string_view name(TrimEnd end) {
  switch (end) {
    case TrimEnd::Enough: return "enough";
    case TrimEnd::NoneLeft: return "nothing left";
    case TrimEnd::Time: return "time";
    case TrimEnd::Stopped: return "stopped";
    case TrimEnd::Impossible: return "impossible";
  }
  return "";
}

core::Instant TrimTools::now() const { return os::now(); }

int TrimTools::write(int descriptor, std::string_view text, core::Duration patience) {
  return os::write_within(descriptor, text, patience);
}

TrimResult trim_cache(const TrimPlan& plan, const std::atomic<bool>& stopped, const TrimLimits& limits,
                      TrimTools& tools) {
  return CacheTrim{plan, stopped, limits, tools}.run();
}

}  // namespace evictd::evict
