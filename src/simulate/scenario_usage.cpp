#include "simulate/scenario_usage.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/fields.hpp"
#include "core/filesystem_usage.hpp"
#include "core/quantity.hpp"

namespace evictd::simulate {
namespace {

using config::Field;
using config::into;
using config::keep;
using config::read_amount;
using config::read_fields;
using config::UnknownKeys;
using config::Value;

/// What one container has on disk.
struct Disk {
  std::optional<core::Quantity> rootfs{};
  std::optional<core::Quantity> logs{};
  std::optional<core::Quantity> inodes{};
};

struct Usage {
  bool runs = true;
  core::Quantity memory{};
  core::Quantity processes{};
  Disk disk{};
  std::optional<core::Quantity> ephemeral{};
  std::map<std::string, core::Quantity, std::less<>> volumes{};
  std::optional<Value> containers{};
};

Result<void> read_optional(const Value& value, std::optional<core::Quantity>& target) {
  return read_amount(value, target.emplace());
}

template <auto Member>
Result<void> into_disk(const Value& value, Usage& usage) {
  return read_optional(value, usage.disk.*Member);
}

Result<void> read_volumes(const Value& value, std::map<std::string, core::Quantity, std::less<>>& target) {
  return config::read_map<read_amount>(value, target);
}

std::int64_t amount(const std::optional<core::Quantity>& quantity) { return quantity ? quantity->value() : 0; }

core::ContainerUsage container_usage(std::string_view name, const Disk& disk) {
  return {.name = std::string(name),
          .working_set = 0,
          .rootfs = {.bytes = amount(disk.rootfs), .inodes = amount(disk.inodes)},
          .logs = {.bytes = amount(disk.logs), .inodes = 0}};
}

Result<void> read_containers(const Value& value, std::vector<core::ContainerUsage>& target) {
  static constexpr Field<Disk> fields[]{{"rootfs", into<&Disk::rootfs, read_optional>},
                                        {"logs", into<&Disk::logs, read_optional>},
                                        {"inodes", into<&Disk::inodes, read_optional>}};
  const auto entries = value.entries();
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [name, entry] : *entries) {
    Disk disk;
    if (!entry.is_null())
      if (auto result = read_fields(entry, disk, fields, UnknownKeys::reject); !result) return result;
    target.push_back(container_usage(name, disk));
  }
  return {};
}

/// Local volumes that go with the pod: all but those of the host.
std::int64_t ephemeral_usage(const core::Pod& pod, const core::PodUsage& usage) {
  auto local = pod;
  std::erase_if(local.volumes, [](const core::Volume& volume) { return volume.kind == core::Volume::Kind::HostPath; });
  return core::disk_usage(local, usage, {.logs = true, .local_volumes = true, .writable_layers = true}).bytes;
}

}  // namespace

Result<core::PodUsage> read_pod_usage(const Value& value, const core::Pod& pod) {
  using U = Usage;
  static constexpr Field<U> fields[]{{"memory", into<&U::memory, read_amount>},
                                     {"processes", into<&U::processes, read_amount>},
                                     {"runs", into<&U::runs>},
                                     {"rootfs", into_disk<&Disk::rootfs>},
                                     {"logs", into_disk<&Disk::logs>},
                                     {"inodes", into_disk<&Disk::inodes>},
                                     {"ephemeral", into<&U::ephemeral, read_optional>},
                                     {"volumes", into<&U::volumes, read_volumes>},
                                     {"containers", keep<&U::containers>}};
  Usage given;
  if (auto result = read_fields(value, given, fields, UnknownKeys::reject); !result)
    return std::unexpected(result.error());

  core::PodUsage usage{.working_set = given.memory.value(), .runs = given.runs, .processes = given.processes.value()};
  for (const auto& [name, bytes] : given.volumes) usage.volumes[name].bytes = bytes.value();
  const auto& first = pod.containers.front().name;
  if (given.containers) {
    if (auto result = read_containers(*given.containers, usage.containers); !result)
      return std::unexpected(result.error());
  } else {
    usage.containers.push_back(container_usage(first, given.disk));
  }
  for (const auto& container : pod.containers)
    if (std::ranges::find(usage.containers, container.name, &core::ContainerUsage::name) == usage.containers.end())
      usage.containers.push_back(container_usage(container.name, {}));
  std::ranges::find(usage.containers, first, &core::ContainerUsage::name)->working_set = usage.working_set;
  usage.ephemeral = given.ephemeral ? given.ephemeral->value() : ephemeral_usage(pod, usage);
  return usage;
}

}  // namespace evictd::simulate
