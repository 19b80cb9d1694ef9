#include "manifests.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>

#include "testbed/failure.hpp"
#include "testbed/files.hpp"

namespace kubernetes {

namespace fs = std::filesystem;

namespace {

std::string text_of(const YAML::Node& node) { return node ? node.as<std::string>() : ""; }

/// "DaemonSet" is "daemonsets" in a path.
std::string plural(std::string kind) {
  std::ranges::transform(kind, kind.begin(), [](unsigned char c) { return std::tolower(c); });
  return kind + "s";
}

void append(const fs::path& file, std::vector<Manifest>& manifests) {
  constexpr std::string_view separator = "\n---\n";
  const auto text = testbed::read_file(file);
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    auto document = text.substr(begin, end - begin);
    begin = end + separator.size();
    const auto object = YAML::Load(document);
    const auto metadata = object["metadata"];
    manifests.push_back({.kind = text_of(object["kind"]),
                         .name = text_of(metadata["name"]),
                         .name_space = text_of(metadata["namespace"]),
                         .text = std::move(document)});
  }
}

}  // namespace

std::string Manifest::path() const {
  const auto version = YAML::Load(text)["apiVersion"].as<std::string>();
  return fmt::format("{}/{}{}/{}", version == "v1" ? "/api" : "/apis", version,
                     name_space.empty() ? "" : "/namespaces/" + name_space, plural(kind));
}

std::vector<Manifest> read_manifests(const fs::path& path) {
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    std::ranges::sort(files);
  } else {
    files.push_back(path);
  }
  std::vector<Manifest> manifests;
  for (const auto& file : files) append(file, manifests);
  if (manifests.empty()) testbed::fail(path.native() + ": no manifests");
  return manifests;
}

Answer create(const ApiClient& client, const Manifest& manifest, bool dry_run) {
  return client.create(manifest.path() + (dry_run ? "?dryRun=All" : ""), manifest.text);
}

}  // namespace kubernetes
