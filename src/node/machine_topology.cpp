#include "node/machine_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "admission/number_list.hpp"
#include "core/quantity.hpp"
#include "node/meminfo.hpp"
#include "os/directory.hpp"
#include "os/file_error.hpp"
#include "os/numbers.hpp"

namespace evictd::node {
namespace {

using admission::LogicalCpu;
using admission::MachineTopology;
using admission::NumaNode;

/// A page of sysfs is the most that a file of it has.
constexpr std::size_t page = 4096 + 1;

os::FileResult<std::string> read(const os::Directory& directory, std::string_view name) {
  const auto file = directory.file(name);
  if (!file) return std::unexpected(file.error());
  std::array<char, page> buffer;
  const auto text = file->read(buffer);
  if (!text) return std::unexpected(text.error());
  return std::string(*text);
}

os::FileResult<std::set<int>> read_list(const os::Directory& directory, std::string_view name) {
  const auto text = read(directory, name);
  if (!text) return std::unexpected(text.error());
  auto numbers = admission::parse_number_list(*text);
  if (!numbers)
    return std::unexpected(os::content_error(fmt::format("{}/{}", directory.path(), name), numbers.error().message));
  return *std::move(numbers);
}

os::FileResult<std::int64_t> read_number(const os::Directory& directory, std::string_view name) {
  const auto file = directory.file(name);
  if (!file) return std::unexpected(file.error());
  return file->read_number();
}

/// Whether the file says nothing because it is not there. Everything else that goes wrong is an error.
template <class T>
bool is_absent(const os::FileResult<T>& result) {
  return !result && result.error().is_gone();
}

/// The CPUs that share the last-level cache; none where that is not known.
os::FileResult<std::set<int>> cache_mates(const os::Directory& cpus, int cpu) {
  const auto caches = cpus.subdirectory(fmt::format("cpu{}/cache", cpu));
  if (is_absent(caches)) return {};
  if (!caches) return std::unexpected(caches.error());
  const auto names = caches->subdirectories();
  if (!names) return std::unexpected(names.error());
  for (const auto& name : *names) {
    const auto level = read_number(*caches, name + "/level");
    if (!level || *level != 3) continue;
    return read_list(*caches, name + "/shared_cpu_list");
  }
  return {};
}

/// Where a CPU lies, before cores and caches have got their numbers.
struct Found {
  LogicalCpu cpu{};
  std::set<int> core_mates{};
  std::set<int> cache_mates{};
};

os::FileResult<Found> read_cpu(const os::Directory& cpus, int id) {
  Found found{.cpu = {.id = id}};
  const auto socket = read(cpus, fmt::format("cpu{}/topology/physical_package_id", id));
  if (!socket && !is_absent(socket)) return std::unexpected(socket.error());
  if (socket) found.cpu.socket = static_cast<int>(os::parse_number(*socket).value_or(0));

  auto mates = read_list(cpus, fmt::format("cpu{}/topology/core_cpus_list", id));
  if (is_absent(mates)) mates = read_list(cpus, fmt::format("cpu{}/topology/thread_siblings_list", id));
  if (!mates && !is_absent(mates)) return std::unexpected(mates.error());
  found.core_mates = mates ? *std::move(mates) : std::set{id};

  auto cache = cache_mates(cpus, id);
  if (!cache) return std::unexpected(cache.error());
  found.cache_mates = *std::move(cache);
  return found;
}

/// Cores and caches are called after their lowest CPU that is online and in the same socket (a core's also in the same
/// node): so they lie within one, whatever the firmware says.
std::vector<LogicalCpu> numbered(const std::vector<Found>& found) {
  std::vector<LogicalCpu> result;
  for (const auto& one : found) {
    auto cpu = one.cpu;
    cpu.core = cpu.id;
    std::optional<int> cache;
    for (const auto& other : found) {
      if (other.cpu.socket != cpu.socket) continue;
      const bool shares = one.cache_mates.empty() || one.cache_mates.contains(other.cpu.id);
      if (shares && !cache) cache = other.cpu.id;
      if (one.core_mates.contains(other.cpu.id) && other.cpu.numa_node == cpu.numa_node)
        cpu.core = std::min(cpu.core, other.cpu.id);
    }
    cpu.uncore_cache = cache.value_or(cpu.id);
    result.push_back(cpu);
  }
  return result;
}

/// "hugepages-2048kB" holds pages of "hugepages-2Mi".
os::FileResult<void> read_huge_pages(const os::Directory& directory, NumaNode& node) {
  const auto names = directory.subdirectories();
  if (!names) return std::unexpected(names.error());
  constexpr std::string_view prefix = "hugepages-";
  for (const auto& name : *names) {
    std::int64_t kibibytes = 0;
    if (!name.starts_with(prefix)) continue;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), kibibytes);
    const auto pages = read_number(directory, name + "/nr_hugepages");
    if (!pages) return std::unexpected(pages.error());
    const auto size = kibibytes * 1024;
    node.memory[std::string(prefix) + core::Quantity::bytes(size).to_string()] = *pages * size;
  }
  return {};
}

/// "Node 0 MemTotal:  23947468 kB".
os::FileResult<std::int64_t> read_node_memory(const os::Directory& directory) {
  const auto text = read(directory, "meminfo");
  if (!text) return std::unexpected(text.error());
  const auto start = text->find("MemTotal:");
  const auto kibibytes =
      start == std::string::npos ? std::nullopt : os::find_number(std::string_view(*text).substr(start), "MemTotal:");
  if (!kibibytes)
    return std::unexpected(os::content_error(directory.path() + "/meminfo", "no number behind \"MemTotal:\""));
  return *kibibytes * 1024;
}

/// One number for each node that is online, in their order.
os::FileResult<void> read_distances(const os::Directory& directory, const std::set<int>& nodes, NumaNode& node) {
  const auto text = read(directory, "distance");
  if (is_absent(text)) return {};
  if (!text) return std::unexpected(text.error());
  const char* at = text->data();
  const char* const end = at + text->size();
  for (const int other : nodes) {
    while (at != end && *at == ' ') ++at;
    int distance = 0;
    const auto [next, error] = std::from_chars(at, end, distance);
    if (error != std::errc{})
      return std::unexpected(os::content_error(directory.path() + "/distance", "too few numbers"));
    node.distances[other] = distance;
    at = next;
  }
  return {};
}

os::FileResult<NumaNode> read_node(const os::Directory& directory, int id, const std::set<int>& nodes) {
  NumaNode node{.id = id};
  const auto memory = read_node_memory(directory);
  if (!memory) return std::unexpected(memory.error());
  node.memory["memory"] = *memory;
  if (auto read = read_distances(directory, nodes, node); !read) return std::unexpected(read.error());
  const auto huge = directory.subdirectory("hugepages");
  if (is_absent(huge)) return node;
  if (!huge) return std::unexpected(huge.error());
  if (auto read = read_huge_pages(*huge, node); !read) return std::unexpected(read.error());
  return node;
}

/// Fills the nodes in, and tells the CPUs where they belong.
os::FileResult<std::vector<NumaNode>> read_nodes(const os::Directory& directory, std::vector<Found>& cpus) {
  const auto ids = read_list(directory, "online");
  if (!ids) return std::unexpected(ids.error());
  std::vector<NumaNode> result;
  for (const int id : *ids) {
    const auto here = directory.subdirectory(fmt::format("node{}", id));
    if (!here) return std::unexpected(here.error());
    auto node = read_node(*here, id, *ids);
    if (!node) return std::unexpected(node.error());
    result.push_back(*std::move(node));
    const auto inside = read_list(*here, "cpulist");
    if (!inside) return std::unexpected(inside.error());
    for (auto& cpu : cpus)
      if (inside->contains(cpu.cpu.id)) cpu.cpu.numa_node = id;
  }
  return result;
}

Result<NumaNode> whole_machine(const os::Directory& sys, const std::filesystem::path& proc) {
  const auto directory = os::Directory::open(proc);
  if (!directory) return std::unexpected(directory.error());
  const auto meminfo = Meminfo::open(*directory);
  if (!meminfo) return std::unexpected(meminfo.error());
  const auto memory = meminfo->read();
  if (!memory) return std::unexpected(memory.error());
  NumaNode node{.id = 0, .memory = {{"memory", memory->total}}, .distances = {{0, 10}}};
  const auto huge = sys.subdirectory("kernel/mm/hugepages");
  if (is_absent(huge)) return node;
  if (!huge) return std::unexpected(huge.error());
  if (auto read = read_huge_pages(*huge, node); !read) return std::unexpected(read.error());
  return node;
}

}  // namespace

Result<MachineTopology> read_machine_topology(const std::filesystem::path& sys, const std::filesystem::path& proc) {
  const auto root = os::Directory::open(sys);
  if (!root) return std::unexpected(root.error());
  const auto directory = root->subdirectory("devices/system/cpu");
  if (!directory) return std::unexpected(directory.error());
  const auto online = read_list(*directory, "online");
  if (!online) return std::unexpected(online.error());
  std::vector<Found> cpus;
  for (const int id : *online) {
    auto cpu = read_cpu(*directory, id);
    if (!cpu) return std::unexpected(cpu.error());
    cpus.push_back(*std::move(cpu));
  }

  MachineTopology topology;
  const auto nodes = root->subdirectory("devices/system/node");
  if (nodes) {
    auto read = read_nodes(*nodes, cpus);
    if (!read) return std::unexpected(read.error());
    topology.numa_nodes = *std::move(read);
  } else if (is_absent(nodes)) {
    auto node = whole_machine(*root, proc);
    if (!node) return std::unexpected(node.error());
    topology.numa_nodes = {*std::move(node)};
  } else {
    return std::unexpected(nodes.error());
  }
  topology.cpus = numbered(cpus);
  auto right = admission::checked(std::move(topology));
  if (!right) return fail(right.error(), directory->path());
  return right;
}

Result<std::map<std::string, std::int64_t, std::less<>>> read_huge_pages(const std::filesystem::path& sys) {
  const auto directory = os::Directory::open(sys / "kernel/mm/hugepages");
  if (is_absent(directory)) return {};
  if (!directory) return std::unexpected(directory.error());
  NumaNode machine;
  if (auto read = read_huge_pages(*directory, machine); !read) return std::unexpected(read.error());
  return std::move(machine.memory);
}

}  // namespace evictd::node
