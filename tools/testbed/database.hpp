#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "testbed/files.hpp"
#include "testbed/testbed.hpp"

namespace testbed {

/// A pod that takes 400 MiB more memory each second, or waits for grow() and then takes it as fast as it can be
/// had; it has 20 MiB to write when it is told to end.
struct Database {
  static constexpr std::int64_t size = 20 << 20;  ///< bytes that it writes

  std::filesystem::path directory;
  RunningPod running;

  explicit Database(Testbed& testbed, const std::string& name = "database", bool waits = false)
      : directory{testbed.directory() / name} {
    std::filesystem::create_directory(directory);
    PodSpec spec{.name = name, .qos = evictd::core::QosClass::BestEffort, .containers = {{}}};
    spec.containers[0].args = {"database", "/data", std::to_string(size), "16Mi", waits ? "100Gi/s" : "400Mi/s"};
    if (waits) spec.containers[0].args.emplace_back("go");
    spec.containers[0].mounts.push_back({.host_path = directory, .container_path = "/data"});
    running = testbed.cri().run_pod(spec);
  }
  /// For one that waits.
  void grow() const { replace_file(directory / "go", ""); }
  /// Bytes that its file has; 0 where it has none.
  [[nodiscard]] std::int64_t written() const {
    std::error_code missing;
    const auto bytes = std::filesystem::file_size(directory / "load.data", missing);
    return missing ? 0 : static_cast<std::int64_t>(bytes);
  }
  /// All of it is written and synced.
  [[nodiscard]] bool ended_in_order() const { return std::filesystem::exists(directory / "clean"); }
};

}  // namespace testbed
