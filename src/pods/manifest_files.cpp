#include "pods/manifest_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <system_error>
#include <utility>

#include "config/yaml.hpp"
#include "pods/manifest.hpp"
#include "pods/static_name.hpp"

namespace evictd::pods {
namespace {

namespace fs = std::filesystem;

Error cannot(std::string_view do_it, const fs::path& path, int code) {
  return {fmt::format("{}: cannot be {}: {}", path.native(), do_it, std::generic_category().message(code))};
}

Result<std::vector<std::string>> names_in(const fs::path& directory) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entries{directory, error}; !error && entries != end(entries); entries.increment(error))
    if (auto name = entries->path().filename().native(); !name.starts_with('.')) names.push_back(std::move(name));
  if (error) return std::unexpected(cannot("listed", directory, error.value()));
  return names;
}

ManifestFile::Stamp stamp_of(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = status.st_size,
          .modified_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

/// A file may be written again within the tick of the kernel's clock in which it was read, and look unchanged: one that
/// is this young is read again.
bool is_settled(const ManifestFile::Stamp& stamp) {
  constexpr auto young = std::chrono::seconds(1);
  const auto modified = std::chrono::system_clock::time_point{} + std::chrono::nanoseconds(stamp.modified_ns);
  return modified + young < std::chrono::system_clock::now();
}

Result<std::vector<core::PodPtr>> parse_file(std::string_view text, const fs::path& path, std::string_view node_name) {
  auto parsed = parse_pods(text, path.native());
  if (!parsed) return std::unexpected(parsed.error());
  std::vector<core::PodPtr> pods;
  for (auto& pod : *parsed) {
    pod.name += static_suffix(node_name);
    pods.push_back(std::make_shared<const core::Pod>(std::move(pod)));
  }
  return pods;
}

}  // namespace

Result<ManifestFiles> read_manifests(const fs::path& directory, std::string_view node_name,
                                     const ManifestFiles& known) {
  const auto names = names_in(directory);
  if (!names) return std::unexpected(names.error());
  ManifestFiles files;
  for (const auto& name : *names) {
    const auto path = directory / name;
    const auto earlier = known.find(name);
    struct stat status{};
    const bool found = ::stat(path.c_str(), &status) == 0;
    if (!found && errno == ENOENT) continue;  // gone since it was listed, or a link to nowhere
    if (found && !S_ISREG(status.st_mode)) continue;

    auto& file = files[name];
    if (earlier != known.end()) file = earlier->second;
    if (!found) {
      file.error = cannot("read", path, errno);
      file.stamp = {};
      continue;
    }
    const auto stamp = stamp_of(status);
    if (earlier != known.end() && stamp == file.stamp) continue;
    file.stamp = is_settled(stamp) ? stamp : ManifestFile::Stamp{};
    file.error.reset();
    const auto text = config::read_text_file(path);
    if (!text) {  // which may be over without the file's being modified
      file.error = text.error();
      file.stamp = {};
      continue;
    }
    if (auto pods = parse_file(*text, path, node_name))
      file.pods = *std::move(pods);
    else
      file.error = pods.error();
  }
  return files;
}

}  // namespace evictd::pods
