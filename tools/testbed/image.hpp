#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace testbed {

/// What the pods run: busybox and `load`, whose path is the entry point.
inline constexpr std::string_view load_image = "evictd.test/load:1";
/// What containerd runs for each sandbox: the same layer, entered at `load pause`.
inline constexpr std::string_view pause_image = "registry.k8s.io/pause:3.6";

/// An image of one layer.
struct Image {
  std::string name;                       ///< with its tag
  std::filesystem::path root;             ///< the folder that becomes the layer
  std::vector<std::string> entrypoint{};  ///< may be empty where nothing is ever run
};

/// Writes the images into one archive as `docker save` does, which `ctr images import` reads. `scratch` is a folder to
/// work in; the result lies in it.
std::filesystem::path write_archive(const std::vector<Image>& images, const std::filesystem::path& scratch);

/// The folder of load_image and pause_image.
void fill_load_root(const std::filesystem::path& root);
/// A folder with one file of so many random bytes, and so many that are empty.
void fill_ballast_root(const std::filesystem::path& root, std::int64_t bytes, int empty_files);

}  // namespace testbed
