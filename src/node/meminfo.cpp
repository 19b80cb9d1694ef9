#include "node/meminfo.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "node/numbers.hpp"

namespace evictd::node {

FileResult<Meminfo> Meminfo::open(const Directory& proc) {
  auto file = proc.file("meminfo");
  if (!file) return std::unexpected(file.error());
  return Meminfo(*std::move(file));
}

FileResult<MachineMemory> Meminfo::read() const {
  std::array<char, table_size> buffer;
  const auto table = file_.read(buffer);
  if (!table) return std::unexpected(table.error());
  MachineMemory memory;
  for (const auto& [key, target] : {std::pair{"MemTotal:", &memory.total}, std::pair{"MemFree:", &memory.free},
                                    std::pair{"MemAvailable:", &memory.available}}) {
    constexpr std::int64_t kib = 1024;  // "kB" to the kernel
    const auto number = find_number(*table, key);
    if (!number || *number > std::numeric_limits<std::int64_t>::max() / kib)
      return std::unexpected(content_error(file_.path(), fmt::format("no number behind \"{}\"", key)));
    *target = *number * kib;
  }
  return memory;
}

}  // namespace evictd::node
