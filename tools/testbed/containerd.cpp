#include "testbed/containerd.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <vector>

#include "api.pb.h"
#include "testbed/calls.hpp"
#include "testbed/channel.hpp"
#include "testbed/containerd_config.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/mounts.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace testbed {

namespace fs = std::filesystem;
namespace cri = runtime::v1;
using namespace std::chrono_literals;

Containerd::Containerd(const Options& options)
    : root_(options.root.empty() ? directory() / "root" : options.root / "containerd") {
  const ContainerdPlaces places{.directory = directory(),
                                .root = root_,
                                .socket = socket(),
                                .runc = options.runc.empty() ? oci_runtime() : options.runc};
  write_file(directory() / "config.toml", containerd_config(places, containerd_version()));
}

Containerd::~Containerd() {
  if (is_below(root_, directory())) return;
  // The pods' root file systems are overlays of what is below root_: they end first.
  report_failure([&] {
    remove_work_directory(directory());
    unmount_below(root_);
    fs::remove_all(root_);
  });
}

void Containerd::start() {
  process_.emplace(
      directory_.spawn({"containerd", "--config", directory() / "config.toml"}, {.output = log(), .errors = log()}));
  wait_until_ready();
  if (!has_images_) import_load_images();
}

void Containerd::wait_until_ready() {
  wait_until("containerd listens on " + socket().native(), 60s, [&] {
    if (!process_->running()) fail("containerd ended while it started; its log:\n" + read_file(log()));
    return accepts(socket());
  });
  const Calls calls{channel_to(address())};
  cri::VersionResponse version;
  wait_until("containerd answers CRI", 60s, [&] { return calls.make(cri::VersionRequest{}, version).ok(); });
}

void Containerd::stop() {
  process_->signal(SIGTERM);
  if (!process_->wait(60s)) fail("containerd still runs 60 s after SIGTERM");
}

void Containerd::import_load_images() {
  const fs::path root = directory() / "images" / "root";
  fill_load_root(root);
  import_images(
      {{std::string(load_image), root, {"/bin/load"}}, {std::string(pause_image), root, {"/bin/load", "pause"}}});
  has_images_ = true;
}

void Containerd::import_image(std::string_view name, std::int64_t layer_bytes, int empty_files) {
  const fs::path root = directory() / "images" / "root";
  fill_ballast_root(root, layer_bytes, empty_files);
  import_images({{std::string(name), root}});
}

void Containerd::import_images(const std::vector<Image>& images) {
  const auto archive = write_archive(images, directory() / "images");
  // The directory's own, so that it goes with what a killed test leaves behind.
  auto import = spawn({"ctr", "--address", socket(), "--namespace", "k8s.io", "images", "import", archive});
  const auto code = import.wait(1min);
  if (code != 0)
    fail(fmt::format("ctr images import {}: {}", archive.native(), code ? import.errors() : "takes too long"));
  // CRI learns of a new image by an event, a moment later.
  const Calls calls{channel_to(address())};
  for (const auto& image : images)
    wait_until("CRI knows the image " + image.name, 30s, [&] {
      cri::ImageStatusRequest request;
      request.mutable_image()->set_image(image.name);
      return calls.ask<cri::ImageStatusResponse>(request).has_image();
    });
  fs::remove_all(directory() / "images");
}

}  // namespace testbed
