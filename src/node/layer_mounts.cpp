#include "node/layer_mounts.hpp"

#include <chrono>
#include <cstddef>
#include <fstream>
#include <utility>
#include <vector>

namespace evictd::node {
namespace {

/// The kernel writes blanks and backslashes in paths as \040.
std::string unescape(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::optional<LayerMount> parse_layer_mount(std::string_view line) {
  constexpr std::string_view end = "/rootfs";
  constexpr std::string_view option = "upperdir=";
  constexpr std::size_t mount_point = 4;  // fields before it
  const auto dash = line.find(" - overlay ");
  if (dash == std::string_view::npos) return std::nullopt;
  const auto fields = split(line.substr(0, dash), ' ');
  if (fields.size() <= mount_point || !fields[mount_point].ends_with(end)) return std::nullopt;
  auto container = fields[mount_point];
  container.remove_suffix(end.size());
  container.remove_prefix(container.rfind('/') + 1);
  if (container.empty()) return std::nullopt;
  for (const auto part : split(line.substr(line.rfind(' ') + 1), ','))
    if (part.starts_with(option) && part.substr(option.size()).starts_with('/'))
      return LayerMount{std::string(container), unescape(part.substr(option.size()))};
  return std::nullopt;
}

std::optional<std::filesystem::path> LayerMounts::find(std::string_view container) {
  const std::scoped_lock lock{mutex_};
  const auto now = core::Instant::clock::now();
  if (!layers_.contains(container) && (read_ == core::Instant{} || now - read_ >= std::chrono::seconds(1))) {
    read_ = now;
    layers_.clear();
    read("/proc/self/mountinfo", "");
    read(proc_ / "1/mountinfo", proc_ / "1/root");
  }
  const auto found = layers_.find(container);
  return found == layers_.end() ? std::nullopt : std::optional{found->second};
}

/// `root`: before the paths that the table names.
void LayerMounts::read(const std::filesystem::path& table, const std::filesystem::path& root) {
  std::ifstream in{table};
  for (std::string line; std::getline(in, line);)
    if (auto mount = parse_layer_mount(line))
      layers_.try_emplace(std::move(mount->container), root.native() + mount->upper.native());
}

}  // namespace evictd::node
