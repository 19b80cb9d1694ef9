#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "api_client.hpp"

namespace kubernetes {

/// One object of a YAML file.
struct Manifest {
  std::string kind;
  std::string name;
  std::string name_space;  ///< empty where the kind has none
  std::string text;

  /// Where objects of this kind are created: "/apis/apps/v1/namespaces/evictd/daemonsets".
  [[nodiscard]] std::string path() const;
};

/// All objects of a file, or of each .yaml file of a directory in the order of the names, as `kubectl apply -f` takes
/// them.
[[nodiscard]] std::vector<Manifest> read_manifests(const std::filesystem::path& path);

/// Creates it; with `dry_run` the server checks everything and stores nothing.
[[nodiscard]] Answer create(const ApiClient& client, const Manifest& manifest, bool dry_run = false);

}  // namespace kubernetes
