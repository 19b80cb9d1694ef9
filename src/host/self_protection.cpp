#include "host/self_protection.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "os/file_error.hpp"

namespace evictd::host {
namespace {

/// Room for some 500 pods with eight files each, and for as many subscribers as there may be by default.
constexpr rlim_t enough_files = 8192;

/// What the host refused, and what to do about it.
std::optional<std::string> raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return fmt::format("the limit of open files is unknown: {}", os::reason(errno));
  const auto soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (soft != limit.rlim_max && ::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    return fmt::format("no more than {} files may be open: {}; raise LimitNOFILE", soft, os::reason(errno));
  if (limit.rlim_max < enough_files)
    return fmt::format(
        "no more than {} files may be open, too few for many pods and subscribers; raise LimitNOFILE to {} or more",
        limit.rlim_max, enough_files);
  return {};
}

/// Locking everything to come under a limit would let allocations fail once it is reached. Asks the kernel, by locking
/// what is never touched: more than the limit goes only with the privilege.
bool may_lock_without_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return false;
  if (limit.rlim_max == RLIM_INFINITY && limit.rlim_cur != RLIM_INFINITY) {
    limit.rlim_cur = RLIM_INFINITY;
    static_cast<void>(::setrlimit(RLIMIT_MEMLOCK, &limit));
  }
  if (limit.rlim_cur == RLIM_INFINITY) return true;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto size = static_cast<std::size_t>(limit.rlim_cur) / page * page + 2 * page;
  void* probe = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) return false;
  const bool locked = ::mlock2(probe, size, MLOCK_ONFAULT) == 0;
  ::munmap(probe, size);
  return locked;
}

/// A mapping of /proc/self/smaps.
struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string access;        // "r-xp"
  std::string path;          // "[heap]" or nothing where there is no file
  bool has_changed = false;  // pages that are no longer the file's, as after relocation

  [[nodiscard]] void* address() const { return reinterpret_cast<void*>(begin); }  // NOLINT(performance-no-int-to-ptr)
  [[nodiscard]] std::size_t size() const { return end - begin; }
  /// What is given up of it comes back from the file as it was.
  [[nodiscard]] bool is_only_the_file() const { return path.starts_with('/') && access[1] == '-' && !has_changed; }
  [[nodiscard]] bool is_code() const { return access[2] == 'x'; }
};

/// The line that begins a mapping: "7f0000000000-7f0000001000 r-xp 00001000 fe:00 1234    /usr/lib/libc.so.6".
std::optional<Mapping> parse_mapping(const std::string& line) {
  Mapping mapping;
  std::istringstream words(line);
  std::string offset;
  std::string device;
  std::string inode;
  char dash = 0;
  words >> std::hex >> mapping.begin >> dash >> mapping.end >> mapping.access >> offset >> device >> inode;
  if (!words || dash != '-' || mapping.access.size() != 4) return std::nullopt;
  words >> mapping.path;
  return mapping;
}

std::vector<Mapping> mappings() {
  std::vector<Mapping> result;
  std::ifstream smaps("/proc/self/smaps");
  constexpr std::string_view changed_pages = "Anonymous:";
  for (std::string line; std::getline(smaps, line);) {
    if (line.starts_with(changed_pages))
      result.back().has_changed = std::strtol(line.c_str() + changed_pages.size(), nullptr, 10) > 0;
    else if (auto mapping = parse_mapping(line))
      result.push_back(*std::move(mapping));
  }
  return result;
}

/// Gives up what only the start took of libraries and of the program, and has the program's own code read now: on the
/// day it is needed the disk may be too slow. Neither changes what the memory holds, so a failure is none to speak of.
void keep_what_is_needed() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const auto& mapping : mappings()) {
    if (!mapping.is_only_the_file()) continue;
    ::madvise(mapping.address(), mapping.size(), MADV_DONTNEED);
    if (mapping.path == program && mapping.is_code()) ::madvise(mapping.address(), mapping.size(), MADV_POPULATE_READ);
  }
}

/// Has room for what an eviction takes, where the process or the machine gets no more memory: then the heap cannot
/// grow, and a stack that would ends the process without a word.
void reserve_memory() {
  constexpr std::size_t stack = std::size_t{256} * 1024;
  constexpr std::size_t block = std::size_t{64} * 1024;
  constexpr std::size_t blocks = 16;
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, block * blocks);  // a piece of less than that stays where it was freed
  ::mallopt(M_TOP_PAD, block * blocks);
  ::mallopt(M_TRIM_THRESHOLD, 4 * block * blocks);  // what was freed stays
  volatile char touched[stack];
  for (std::size_t i = 0; i < stack; i += 4096) touched[i] = 0;
  static_cast<void>(touched[0]);
  std::vector<std::unique_ptr<char[]>> heap;
  for (std::size_t i = 0; i < blocks; ++i) heap.push_back(std::make_unique_for_overwrite<char[]>(block));
}

}  // namespace

std::optional<std::string> protect_self() {
  reserve_memory();
  return raise_open_files();
}

Result<void> lock_memory() {
  constexpr std::string_view remedy = "give evictd CAP_IPC_LOCK or LimitMEMLOCK=infinity";
  if (!may_lock_without_limit())
    return fail(fmt::format("memory is not locked, RLIMIT_MEMLOCK is too low; {}", remedy));
  keep_what_is_needed();
  if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
    return fail(fmt::format("memory is not locked: mlockall: {}; {}", os::reason(errno), remedy));
  return {};
}

}  // namespace evictd::host
