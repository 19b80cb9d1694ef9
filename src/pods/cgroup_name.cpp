#include "pods/cgroup_name.hpp"

#include <algorithm>
#include <utility>

#include "core/printable.hpp"

namespace evictd::pods {
namespace {

constexpr std::string_view slice_suffix = ".slice";

/// A file system would take what is before a NUL for the whole name, and no cgroup of a pod is called by other control
/// characters.
bool has_control_bytes(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

/// Absolute, and no part is empty, "." or "..": nothing in it leads elsewhere.
bool is_plain_path(std::string_view path) {
  if (!path.starts_with('/') || path.size() < 2 || has_control_bytes(path)) return false;
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    path.remove_prefix(part.size());
  }
  return true;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

core::QosClass qos_named(std::string_view name) {
  if (name == "burstable") return core::QosClass::Burstable;
  if (name == "besteffort") return core::QosClass::BestEffort;
  return core::QosClass::Guaranteed;
}

std::optional<PodCgroup> pod_slice(std::string_view slice, std::string_view uid) {
  const auto own_part = "-pod" + escaped_uid(uid) + std::string(slice_suffix);
  if (!slice.ends_with(own_part)) return std::nullopt;

  auto path = expand_slice(slice);
  if (path.empty()) return std::nullopt;
  const auto above = slice.substr(0, slice.size() - own_part.size());
  return PodCgroup{.path = std::move(path), .qos = qos_named(above.substr(above.rfind('-') + 1))};
}

}  // namespace

std::optional<PodCgroup> pod_cgroup(std::string_view cgroup_parent, std::string_view uid) {
  while (cgroup_parent.size() > 1 && cgroup_parent.ends_with('/')) cgroup_parent.remove_suffix(1);
  const auto name = last_part(cgroup_parent);
  if (uid.empty() || uid.find('/') != std::string_view::npos) return std::nullopt;
  if (name.ends_with(slice_suffix)) return pod_slice(name, uid);

  if (name != "pod" + std::string(uid) || !is_plain_path(cgroup_parent)) return std::nullopt;
  const auto above = cgroup_parent.substr(0, cgroup_parent.size() - name.size() - 1);
  return PodCgroup{.path = std::string(cgroup_parent), .qos = qos_named(last_part(above))};
}

std::string escaped_uid(std::string_view uid) {
  std::string escaped(uid);
  std::ranges::replace(escaped, '-', '_');
  return escaped;
}

bool NamedUid::is_of(std::string_view other) const {
  return escaped
             ? std::ranges::equal(
                   uid, other, {}, [](char c) { return c == '_' ? '-' : c; }, [](char c) { return c == '_' ? '-' : c; })
             : uid == other;
}

std::optional<std::string> uid_in_cgroup_name(std::string_view name) {
  auto named = named_uid(name);
  return named ? std::optional(std::move(named->uid)) : std::nullopt;
}

std::optional<NamedUid> named_uid(std::string_view name) {
  constexpr std::string_view prefix = "pod";
  const bool slice = name.ends_with(slice_suffix);
  if (slice) {
    name.remove_suffix(slice_suffix.size());
    name = name.substr(name.rfind('-') + 1);
  }
  if (!name.starts_with(prefix) || name.size() == prefix.size() || core::printable(name) != name) return std::nullopt;
  NamedUid named{.uid = std::string(name.substr(prefix.size())), .escaped = slice};
  if (slice) std::ranges::replace(named.uid, '_', '-');
  return named;
}

std::string container_cgroup(std::string_view cgroups_path) {
  if (is_plain_path(cgroups_path)) return std::string(cgroups_path);

  const auto first = cgroups_path.find(':');
  const auto second = cgroups_path.find(':', first == std::string_view::npos ? first : first + 1);
  if (second == std::string_view::npos) return {};
  const auto slice = expand_slice(cgroups_path.substr(0, first));
  const auto prefix = cgroups_path.substr(first + 1, second - first - 1);
  const auto name = cgroups_path.substr(second + 1);
  if (slice.empty() || name.empty() || name.find_first_of("/:") != std::string_view::npos) return {};
  if (prefix.contains('/') || has_control_bytes(cgroups_path)) return {};
  if (prefix.empty()) return slice + "/" + std::string(name) + ".scope";
  return slice + "/" + std::string(prefix) + "-" + std::string(name) + ".scope";
}

bool is_below(std::string_view cgroup, std::string_view parent) {
  return is_plain_path(cgroup) && is_plain_path(parent) && cgroup.size() > parent.size() &&
         cgroup.starts_with(parent) && cgroup[parent.size()] == '/';
}

std::string expand_slice(std::string_view slice) {
  if (!slice.ends_with(slice_suffix)) return {};
  const auto name = slice.substr(0, slice.size() - slice_suffix.size());
  if (name.empty() || name.find('/') != std::string_view::npos || name.starts_with('-') || name.ends_with('-') ||
      name.find("--") != std::string_view::npos || has_control_bytes(name))
    return {};

  std::string path;
  for (auto end = name.find('-');; end = name.find('-', end + 1)) {
    path += "/" + std::string(name.substr(0, end)) + std::string(slice_suffix);
    if (end == std::string_view::npos) return path;
  }
}

}  // namespace evictd::pods
