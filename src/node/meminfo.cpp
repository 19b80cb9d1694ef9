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

os::FileResult<MachineMemory> Meminfo::read() const {
  std::array<char, os::table_size> buffer;
  const auto table = file_.read(buffer);
  if (!table) return std::unexpected(table.error());
  MachineMemory memory;
  for (const auto& [key, target] : {std::pair{"MemTotal:", &memory.total}, std::pair{"MemFree:", &memory.free},
                                    std::pair{"MemAvailable:", &memory.available}}) {
    constexpr std::int64_t kib = 1024;  // "kB" to the kernel
    const auto number = os::find_number(*table, key);
    if (!number || *number > std::numeric_limits<std::int64_t>::max() / kib)
      return std::unexpected(os::content_error(file_.path(), fmt::format("no number behind \"{}\"", key)));
    *target = *number * kib;
  }
  return memory;
}

}  // namespace evictd::node
