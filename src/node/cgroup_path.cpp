#include "node/cgroup_path.hpp"

#include <fmt/format.h>

namespace evictd::node {
namespace {

constexpr std::string_view slice_suffix = ".slice";

/// "a-b.slice" as "/a.slice/a-b.slice".
Result<std::string> expand_slice(std::string_view slice) {
  const auto name = slice.substr(0, slice.size() - slice_suffix.size());
  std::string path;
  for (std::size_t dash = 0; dash != std::string_view::npos;) {
    const auto begin = dash == 0 ? 0 : dash + 1;
    dash = name.find('-', begin);
    if (dash == begin || begin == name.size()) return fail(fmt::format("\"{}\" is not the name of a slice", slice));
    path += fmt::format("/{}{}", name.substr(0, dash), slice_suffix);
  }
  return path;
}

bool leads_up(std::string_view path) {
  return path == ".." || path.starts_with("../") || path.ends_with("/..") ||
         path.find("/../") != std::string_view::npos;
}

}  // namespace

Result<std::string> cgroup_path(std::string_view cgroup_parent) {
  auto name = cgroup_parent;
  while (name.starts_with('/')) name.remove_prefix(1);
  while (name.ends_with('/')) name.remove_suffix(1);
  if (name.empty() || leads_up(name)) return fail(fmt::format("\"{}\" is not the cgroup of a pod", cgroup_parent));
  if (name.ends_with(slice_suffix) && name.find('/') == std::string_view::npos) return expand_slice(name);
  return fmt::format("/{}", name);
}

}  // namespace evictd::node
