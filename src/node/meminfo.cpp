#include "node/meminfo.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "os/numbers.hpp"

namespace evictd::node {

os::FileResult<Meminfo> Meminfo::open(const os::Directory& proc) {
  auto file = proc.file("meminfo");
  if (!file) return std::unexpected(file.error());
  return Meminfo(*std::move(file));
}

os::FileResult<std::int64_t> Meminfo::bytes(std::string_view table, std::string_view key) const {
  constexpr std::int64_t kib = 1024;  // "kB" to the kernel
  const auto number = os::find_number(table, key);
  if (number && *number <= std::numeric_limits<std::int64_t>::max() / 4 / kib) return *number * kib;
  return std::unexpected(os::content_error(file_.path(), fmt::format("no number behind \"{}\"", key)));
}

os::FileResult<MachineMemory> Meminfo::read() const {
  std::array<char, os::table_size> buffer;
  const auto table = file_.read(buffer);
  if (!table) return std::unexpected(table.error());
  MachineMemory memory;
  for (const auto& [key, target] : {std::pair{"MemTotal:", &memory.total}, std::pair{"MemFree:", &memory.free},
                                    std::pair{"MemAvailable:", &memory.available}}) {
    const auto number = bytes(*table, key);
    if (!number) return std::unexpected(number.error());
    *target = *number;
  }
  return memory;
}

os::FileResult<MachineUse> Meminfo::read_use() const {
  std::array<char, os::table_size> buffer;
  const auto table = file_.read(buffer);
  if (!table) return std::unexpected(table.error());
  std::int64_t total = 0;
  std::int64_t free = 0;
  std::int64_t buffers = 0;
  std::int64_t cached = 0;
  std::int64_t swap_cached = 0;
  MachineUse use;
  for (const auto& [key, target] :
       {std::pair{"MemTotal:", &total}, std::pair{"MemFree:", &free}, std::pair{"Buffers:", &buffers},
        std::pair{"Cached:", &cached}, std::pair{"SwapCached:", &swap_cached},
        std::pair{"Inactive(file):", &use.inactive_file}, std::pair{"AnonPages:", &use.anonymous}}) {
    const auto number = bytes(*table, key);
    if (!number) return std::unexpected(number.error());
    *target = *number;
  }
  use.not_free = total - free;
  use.file = cached + buffers + swap_cached;
  return use;
}

}  // namespace evictd::node
