#pragma once
#include <compare>
#include <filesystem>
#include <string>

namespace testbed {

/// What a containerd of the testbed is configured with.
struct ContainerdPlaces {
  std::filesystem::path directory;  ///< its state, its CNI configuration, and what runc keeps
  std::filesystem::path root;       ///< images and writable layers
  std::filesystem::path socket;
  std::filesystem::path runc;  ///< what the shims run
};

struct Version {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const Version&, const Version&) = default;
};

/// Of the containerd in PATH, asked once. Fails where there is none.
[[nodiscard]] Version containerd_version();

/// A containerd's config.toml, with what this version calls things.
[[nodiscard]] std::string containerd_config(const ContainerdPlaces& places, Version version);

}  // namespace testbed
