#include "images.hpp"

#include <chrono>
#include <filesystem>
#include <string>

#include "testbed/image.hpp"
#include "testbed/process.hpp"

namespace node_suite {

void import_images() {
  const std::filesystem::path scratch = "/var/tmp/evictd-images";
  const auto known = testbed::run({"ctr", "--namespace", "k8s.io", "images", "list", "--quiet"});
  if (known.find(testbed::load_image) != std::string::npos) return;
  testbed::fill_load_root(scratch / "root");
  const auto archive = testbed::write_archive(
      {{.name = std::string(testbed::load_image), .root = scratch / "root", .entrypoint = {"/bin/load"}},
       {.name = std::string(testbed::pause_image), .root = scratch / "root", .entrypoint = {"/bin/load", "pause"}}},
      scratch);
  testbed::run({"ctr", "--namespace", "k8s.io", "images", "import", archive}, std::chrono::minutes{2});
  std::filesystem::remove_all(scratch);
}

}  // namespace node_suite
