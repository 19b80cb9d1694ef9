#include "node/allocation_file.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "admission/number_list.hpp"
#include "admission/pod_allocation.hpp"
#include "core/duration.hpp"
#include "core/printable.hpp"

namespace json = boost::json;

namespace evictd::node {
namespace {

using admission::ContainerAllocation;

constexpr std::string_view kind = "evictd.io/allocations";
constexpr std::int64_t version = 1;

/// FNV-1a: against torn and edited files, not against malice.
std::string checksum(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

json::object to_json(const std::map<std::string, std::string>& texts) {
  json::object result;
  for (const auto& [key, value] : texts) result[key] = value;
  return result;
}

/// In nanoseconds since the boot.
json::object to_json(const admission::Coming& coming) {
  json::object result;
  for (const auto& [uid, until] : coming) result[uid] = until.time_since_epoch().count();
  return result;
}

json::object to_json(const admission::DeviceEdits& edits) {
  json::array mounts;
  for (const auto& mount : edits.mounts)
    mounts.push_back(json::object{
        {"containerPath", mount.container_path}, {"hostPath", mount.host_path}, {"readOnly", mount.read_only}});
  json::array devices;
  for (const auto& device : edits.devices)
    devices.push_back(json::object{
        {"containerPath", device.container_path}, {"hostPath", device.host_path}, {"permissions", device.permissions}});
  return {{"environment", to_json(edits.environment)},
          {"mounts", std::move(mounts)},
          {"devices", std::move(devices)},
          {"annotations", to_json(edits.annotations)},
          {"cdiDevices", json::array(edits.cdi_devices.begin(), edits.cdi_devices.end())}};
}

json::object to_json(const ContainerAllocation& container) {
  json::object result;
  if (!container.cpus.empty()) result["cpus"] = admission::print_number_list(container.cpus);
  json::array memory;
  for (const auto& block : container.memory)
    memory.push_back(json::object{
        {"numaNodes", admission::print_number_list(block.numa_nodes)}, {"type", block.type}, {"bytes", block.bytes}});
  if (!memory.empty()) result["memory"] = std::move(memory);
  json::object devices;
  for (const auto& [resource, ids] : container.devices) devices[resource] = json::array(ids.begin(), ids.end());
  if (!devices.empty()) result["devices"] = std::move(devices);
  if (container.edits) result["edits"] = to_json(*container.edits);
  return result;
}

json::object to_json(const KeptAllocations& kept) {
  json::object basis;
  for (const auto& [key, value] : kept.basis) basis[key] = value;
  json::object pods;
  for (const auto& [uid, containers] : kept.allocations) {
    json::object pod;
    for (const auto& [name, container] : containers) pod[name] = to_json(container);
    pods[uid] = std::move(pod);
  }
  json::object content{{"basis", std::move(basis)}, {"pods", std::move(pods)}};
  if (const auto& names = kept.plugin_resources; !names.empty())
    content["pluginResources"] = json::array(names.begin(), names.end());
  if (!kept.coming.empty()) content["coming"] = json::object{{"boot", kept.boot}, {"until", to_json(kept.coming)}};
  return content;
}

bool is_text(const json::value* value, std::string_view text) {
  const auto* found = value == nullptr ? nullptr : value->if_string();
  return found != nullptr && std::string_view(found->data(), found->size()) == text;
}

/// Reads a document that the checksum has vouched for: whatever is wrong with it is told by its place.
class Reader {
 public:
  Result<KeptAllocations> read(const json::object& content) {
    KeptAllocations kept;
    for (const auto& [key, value] : object(content, "basis")) kept.basis[key] = text(value, key);
    for (const auto& [uid, pod] : object(content, "pods"))
      for (const auto& [name, container] : object(pod, uid))
        kept.allocations[uid][name] = read_container(object(container, name));
    if (const auto* names = content.if_contains("pluginResources"))
      for (const auto& name : array(*names, "pluginResources"))
        kept.plugin_resources.insert(text(name, "pluginResources"));
    if (const auto* coming = content.if_contains("coming")) {
      const auto& fields = object(*coming, "coming");
      kept.boot = text(field(fields, "boot"), "boot");
      for (const auto& [uid, until] : object(fields, "until"))
        kept.coming[uid] = core::Instant{core::Duration{number(until, uid)}};
    }
    if (!wrong_.empty()) return fail(core::printable(wrong_) + " is not what it should be");
    return kept;
  }

 private:
  ContainerAllocation read_container(const json::object& container) {
    ContainerAllocation result;
    if (const auto* cpus = container.if_contains("cpus")) result.cpus = numbers(*cpus, "cpus");
    if (const auto* memory = container.if_contains("memory"))
      for (const auto& block : array(*memory, "memory")) {
        const auto& fields = object(block, "memory");
        result.memory.push_back({.numa_nodes = numbers(field(fields, "numaNodes"), "numaNodes"),
                                 .type = text(field(fields, "type"), "type"),
                                 .bytes = number(field(fields, "bytes"), "bytes")});
      }
    if (const auto* devices = container.if_contains("devices"))
      for (const auto& [resource, ids] : object(*devices, "devices"))
        for (const auto& id : array(ids, resource)) result.devices[resource].insert(text(id, resource));
    if (const auto* edits = container.if_contains("edits")) result.edits = read_edits(object(*edits, "edits"));
    return result;
  }

  admission::DeviceEdits read_edits(const json::object& edits) {
    admission::DeviceEdits result{.environment = texts(edits, "environment"),
                                  .annotations = texts(edits, "annotations")};
    for (const auto& mount : array(field(edits, "mounts"), "mounts")) {
      const auto& fields = object(mount, "mounts");
      result.mounts.push_back({.container_path = text(field(fields, "containerPath"), "containerPath"),
                               .host_path = text(field(fields, "hostPath"), "hostPath"),
                               .read_only = truth(field(fields, "readOnly"), "readOnly")});
    }
    for (const auto& device : array(field(edits, "devices"), "devices")) {
      const auto& fields = object(device, "devices");
      result.devices.push_back({.container_path = text(field(fields, "containerPath"), "containerPath"),
                                .host_path = text(field(fields, "hostPath"), "hostPath"),
                                .permissions = text(field(fields, "permissions"), "permissions")});
    }
    for (const auto& name : array(field(edits, "cdiDevices"), "cdiDevices"))
      result.cdi_devices.push_back(text(name, "cdiDevices"));
    return result;
  }

  std::map<std::string, std::string> texts(const json::object& parent, std::string_view key) {
    std::map<std::string, std::string> result;
    for (const auto& [name, value] : object(parent, key)) result[name] = text(value, name);
    return result;
  }

  bool truth(const json::value& value, std::string_view key) {
    if (const auto* found = value.if_bool()) return *found;
    wrong_ = key;
    return false;
  }

  static const json::value& field(const json::object& parent, std::string_view key) {
    static const json::value nothing;
    const auto* found = parent.if_contains(key);
    return found == nullptr ? nothing : *found;
  }

  const json::object& object(const json::value& value, std::string_view key) {
    static const json::object empty;
    if (const auto* found = value.if_object()) return *found;
    wrong_ = key;
    return empty;
  }
  const json::object& object(const json::object& parent, std::string_view key) {
    return object(field(parent, key), key);
  }

  const json::array& array(const json::value& value, std::string_view key) {
    static const json::array empty;
    if (const auto* found = value.if_array()) return *found;
    wrong_ = key;
    return empty;
  }

  std::string text(const json::value& value, std::string_view key) {
    if (const auto* found = value.if_string()) return std::string(*found);
    wrong_ = key;
    return {};
  }

  std::set<int> numbers(const json::value& value, std::string_view key) {
    auto found = admission::parse_number_list(text(value, key));
    if (found) return *std::move(found);
    wrong_ = key;
    return {};
  }

  std::int64_t number(const json::value& value, std::string_view key) {
    if (const auto* found = value.if_int64()) return *found;
    wrong_ = key;
    return 0;
  }

  std::string wrong_{};
};

}  // namespace

std::string print_allocations(const KeptAllocations& kept) {
  const auto content = json::serialize(to_json(kept));
  return fmt::format("{{\"kind\":\"{}\",\"version\":{},\"checksum\":\"{}\",\"content\":{}}}\n", kind, version,
                     checksum(content), content);
}

Result<KeptAllocations> parse_allocations(std::string_view text) {
  constexpr json::parse_options options{.max_depth = 16};
  boost::system::error_code error;
  const auto document = json::parse(text, error, {}, options);
  if (error) return fail("is not JSON: " + error.message());
  const auto* fields = document.if_object();
  const auto of_key = [&](std::string_view key) { return fields == nullptr ? nullptr : fields->if_contains(key); };
  if (!is_text(of_key("kind"), kind)) return fail(fmt::format("is no file of kind {}", kind));
  const auto* of_version = of_key("version");
  const auto* number = of_version == nullptr ? nullptr : of_version->if_int64();
  if (number == nullptr || *number != version)
    return fail(fmt::format("has version {}, this evictd reads {}",
                            of_version == nullptr ? "none" : json::serialize(*of_version), version));
  const auto* content = of_key("content");
  if (content == nullptr || !content->is_object() || !is_text(of_key("checksum"), checksum(json::serialize(*content))))
    return fail("is damaged: its checksum is wrong");
  return Reader{}.read(content->get_object());
}

}  // namespace evictd::node
