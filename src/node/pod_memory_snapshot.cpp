#include "node/pod_memory_snapshot.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "core/printable.hpp"
#include "node/memory_cgroup.hpp"
#include "node/process_sample.hpp"
#include "os/kept_file.hpp"
#include "os/now.hpp"
#include "os/numbers.hpp"

namespace evictd::node {
namespace {

struct RowName {
  std::string_view v2;
  std::string_view v1;  ///< "": v1 does not tell
};

/// The rows by which one sees where a pod's memory went. (cgroup-v2.rst, cgroup-v1/memory.rst)
constexpr std::array row_names{
    RowName{"anon", "total_rss"},
    RowName{"file", "total_cache"},  // with shared memory
    RowName{"shmem", "total_shmem"},
    RowName{"file_mapped", "total_mapped_file"},
    RowName{"inactive_file", "total_inactive_file"},
    RowName{"active_file", "total_active_file"},
    RowName{"unevictable", "total_unevictable"},
    RowName{"kernel", ""},  // from Linux 5.18 on; v1 has a file of its own
    RowName{"slab", ""},
    RowName{"pagetables", ""},
};
constexpr std::size_t shmem_row = 2;
constexpr std::size_t kernel_row = 7;

/// The kernel's names of threads of its own are longer than the 15 bytes that a program's name has, escaped or not.
constexpr std::size_t longest_command = 64;

std::string command_name(std::string_view text) {
  const auto name = core::printable(text);
  return std::string(core::beginning(name, longest_command));
}

/// What stands behind "KEY=" up to the next blank.
std::optional<double> average(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + key.size());
  double value = 0;
  const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), value);
  return code == std::errc{} && value >= 0 && value <= 100 ? std::optional(value) : std::nullopt;
}

std::string_view line_of(std::string_view text, std::string_view beginning) {
  const auto at = text.starts_with(beginning) ? 0 : text.find(fmt::format("\n{}", beginning));
  if (at == std::string_view::npos) return {};
  const auto line = text.substr(text[at] == '\n' ? at + 1 : at);
  return line.substr(0, line.find('\n'));
}

/// Of a line "VmRSS:     1234 kB", in bytes; 0 where there is none.
std::int64_t kibi(std::string_view status, std::string_view key) {
  auto line = line_of(status, key);
  line.remove_prefix(std::min(line.size(), line.find_first_of("0123456789")));
  return os::parse_number(line, false).value_or(0) * 1024;
}

std::optional<MemoryStall> read_stall(const os::FileResult<os::KeptFile>& file) {
  std::array<char, 1024> buffer;
  if (!file) return std::nullopt;
  const auto text = file->read(buffer);  // an error where pressure is not accounted
  if (!text) return std::nullopt;
  const auto some = line_of(*text, "some ");
  const auto full = line_of(*text, "full ");
  const auto some_10 = average(some, "avg10=");
  const auto some_60 = average(some, "avg60=");
  if (!some_10 || !some_60) return std::nullopt;
  return MemoryStall{.some_10 = *some_10,
                     .some_60 = *some_60,
                     .full_10 = average(full, "avg10=").value_or(0),
                     .full_60 = average(full, "avg60=").value_or(0)};
}

void add_row(PodMemorySnapshot& snapshot, std::string_view name, std::int64_t bytes) {
  const auto known = std::ranges::find(snapshot.rows, name, &MemoryRow::name);
  if (known == snapshot.rows.end())
    snapshot.rows.push_back({name, bytes});
  else
    known->bytes += bytes;
}

}  // namespace

std::optional<PodMemorySnapshot> PodMemoryReader::read(std::span<const std::string> cgroups,
                                                       std::size_t& processes_left) const {
  PodMemorySnapshot snapshot{.time = os::now()};
  bool is_there = false;
  for (const auto& cgroup : cgroups) is_there = add_memory(cgroup, snapshot) || is_there;
  if (!is_there) return std::nullopt;
  snapshot.node_stall = read_stall(proc_.file("pressure/memory"));
  if (hierarchy_.version() == CgroupVersion::v2 && cgroups.size() == 1)
    snapshot.pod_stall = read_stall(hierarchy_.memory_file(cgroups.front(), "memory.pressure"));
  add_processes(cgroups, processes_left, snapshot);
  return snapshot;
}

bool PodMemoryReader::add_memory(const std::string& cgroup, PodMemorySnapshot& snapshot) const {
  const auto usage = memory_usage(hierarchy_, cgroup);
  if (!usage) return false;
  snapshot.usage += *usage;
  const bool v1 = hierarchy_.version() == CgroupVersion::v1;
  std::array<char, os::table_size> buffer;
  const auto file = hierarchy_.memory_file(cgroup, "memory.stat");
  const auto stat = file ? file->read(buffer) : std::unexpected(file.error());
  for (const auto& row : row_names) {
    const auto key = v1 ? row.v1 : row.v2;
    if (!stat || key.empty()) continue;
    if (const auto bytes = os::find_number(*stat, key)) add_row(snapshot, row.v2, *bytes);
  }
  if (v1)
    if (const auto kernel = hierarchy_.memory_file(cgroup, "memory.kmem.usage_in_bytes"))
      if (const auto bytes = kernel->read_number()) add_row(snapshot, row_names[kernel_row].v2, *bytes);
  return true;
}

/// Only processes that are in the pod before and after they are read count: an id that was given to another pod's
/// process meanwhile would show what that one holds.
void PodMemoryReader::add_processes(std::span<const std::string> cgroups, std::size_t& left,
                                    PodMemorySnapshot& snapshot) const {
  const auto pids = list(cgroups, snapshot.all_read);
  struct Read {
    pid_t pid;
    HeldByProcess held;
  };
  std::vector<Read> read;
  for (const auto pid : pids) {
    if (left == 0) {
      snapshot.all_read = false;
      break;
    }
    --left;
    ++snapshot.processes_read;
    if (auto held = held_by(pid)) read.push_back({pid, *std::move(held)});
  }
  bool complete = true;
  const auto still = list(cgroups, complete);
  std::erase_if(read, [&](const Read& each) { return !std::ranges::binary_search(still, each.pid); });
  std::ranges::stable_sort(read, std::ranges::greater{}, [](const Read& each) { return each.held.resident; });
  std::int64_t mapped = 0;
  for (const auto& each : read) mapped += each.held.shared;
  const auto shmem = std::ranges::find(snapshot.rows, row_names[shmem_row].v2, &MemoryRow::name);
  if (snapshot.all_read && shmem != snapshot.rows.end())
    snapshot.staying = std::max<std::int64_t>(0, shmem->bytes - mapped);
  if (read.size() > PodMemorySnapshot::most_shown) read.erase(read.begin() + PodMemorySnapshot::most_shown, read.end());
  for (auto& each : read) snapshot.processes.push_back(std::move(each.held));
}

/// In rising order.
std::vector<pid_t> PodMemoryReader::list(std::span<const std::string> cgroups, bool& complete) const {
  constexpr std::size_t most_cgroups = 64;
  std::vector<pid_t> pids;
  for (const auto& cgroup : cgroups) {
    auto directory = hierarchy_.pids(cgroup);
    if (!directory) directory = hierarchy_.memory(cgroup);
    if (!directory) continue;
    auto sample = sample_processes(*std::move(directory), most_from_each, most_cgroups);
    complete = complete && sample.complete;
    pids.insert(pids.end(), sample.pids.begin(), sample.pids.end());
  }
  std::ranges::sort(pids);
  pids.erase(std::ranges::unique(pids).begin(), pids.end());
  return pids;
}

/// Nothing of one that is gone, or has ended and holds nothing any more.
std::optional<HeldByProcess> PodMemoryReader::held_by(pid_t pid) const {
  std::array<char, os::table_size> buffer;
  const auto file = proc_.file(fmt::format("{}/status", pid));
  if (!file) return std::nullopt;
  const auto status = file->read(buffer);
  // It may have as many groups as it likes, which stand before what it holds.
  if (!status) return status.error().code == EFBIG ? held_in_pages(pid) : std::nullopt;
  auto name = line_of(*status, "Name:");
  name.remove_prefix(std::min(name.size(), std::string_view("Name:\t").size()));
  HeldByProcess held{.command = command_name(name),
                     .resident = kibi(*status, "VmRSS:"),
                     .anonymous = kibi(*status, "RssAnon:"),
                     .shared = kibi(*status, "RssShmem:")};
  return held.resident > 0 ? std::optional(std::move(held)) : std::nullopt;
}

/// statm does not tell shared memory from mapped files: of such a process all of that counts as files.
std::optional<HeldByProcess> PodMemoryReader::held_in_pages(pid_t pid) const {
  std::array<char, 256> buffer;
  const auto statm = proc_.file(fmt::format("{}/statm", pid));
  const auto text = statm ? statm->read(buffer) : std::unexpected(statm.error());
  if (!text) return std::nullopt;
  std::array<std::int64_t, 3> pages{};
  std::string_view rest = *text;
  for (auto& number : pages) {
    number = os::parse_number(rest, false).value_or(0);
    rest.remove_prefix(
        std::min(rest.size(), rest.find(' ') == std::string_view::npos ? rest.size() : rest.find(' ') + 1));
  }
  const auto page = static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
  const auto comm = proc_.file(fmt::format("{}/comm", pid));
  std::array<char, 256> name_buffer;
  const auto name = comm ? comm->read(name_buffer) : std::unexpected(comm.error());
  HeldByProcess held{.command = name ? command_name(name->substr(0, name->find_last_not_of('\n') + 1)) : "?",
                     .resident = pages[1] * page,
                     .anonymous = std::max<std::int64_t>(0, pages[1] - pages[2]) * page};
  return held.resident > 0 ? std::optional(std::move(held)) : std::nullopt;
}

}  // namespace evictd::node
