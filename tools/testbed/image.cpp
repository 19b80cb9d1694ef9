#include "testbed/image.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"

namespace testbed {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view index_type = "application/vnd.oci.image.index.v1+json";
constexpr std::string_view manifest_type = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view config_type = "application/vnd.oci.image.config.v1+json";
constexpr std::string_view layer_type = "application/vnd.oci.image.layer.v1.tar";

/// How OCI documents refer to a blob.
struct Blob {
  std::string digest;
  std::uintmax_t size;

  [[nodiscard]] std::string descriptor(std::string_view type) const {
    return fmt::format(R"("mediaType": "{}", "digest": "{}", "size": {})", type, digest, size);
  }
};

/// The folder blobs/sha256, in which each file's name is its digest.
class BlobStore {
 public:
  explicit BlobStore(const fs::path& layout) : directory_(layout / "blobs" / "sha256") {
    fs::create_directories(directory_);
  }

  [[nodiscard]] Blob add(std::string_view text) const {
    write_file(fresh(), text);
    return add_fresh();
  }

  /// One owner, one time, one order: the same folder gives the same digest.
  [[nodiscard]] Blob add_layer(const fs::path& root) const {
    run({"tar", "--create", "--file", fresh(), "--directory", root, "--sort=name", "--owner=0", "--group=0",
         "--numeric-owner", "--mtime=@0", "."});
    return add_fresh();
  }

 private:
  [[nodiscard]] fs::path fresh() const { return directory_ / "fresh"; }

  [[nodiscard]] Blob add_fresh() const {
    const std::string digest = run({"sha256sum", fresh()}).substr(0, 64);
    const auto size = fs::file_size(fresh());
    fs::rename(fresh(), directory_ / digest);
    return {.digest = "sha256:" + digest, .size = size};
  }

  fs::path directory_;
};

/// As the Go world calls it.
std::string architecture() {
  utsname machine{};
  ::uname(&machine);
  const std::string_view name = machine.machine;
  if (name == "x86_64") return "amd64";
  if (name == "aarch64") return "arm64";
  return std::string(name);
}

std::string quoted(const std::vector<std::string>& words) {
  return words.empty() ? "" : fmt::format("\"{}\"", fmt::join(words, "\", \""));
}

/// Adds what makes up the image and returns its entry in the index.
std::string add_image(const BlobStore& blobs, const Image& image) {
  const Blob layer = blobs.add_layer(image.root);
  const Blob config = blobs.add(
      fmt::format(R"({{"architecture": "{}", "os": "linux", "config": {{"Entrypoint": [{}], "Env": ["PATH=/bin"]}}, )"
                  R"("rootfs": {{"type": "layers", "diff_ids": ["{}"]}}}})",
                  architecture(), quoted(image.entrypoint), layer.digest));
  const Blob manifest =
      blobs.add(fmt::format(R"({{"schemaVersion": 2, "mediaType": "{}", "config": {{{}}}, "layers": [{{{}}}]}})",
                            manifest_type, config.descriptor(config_type), layer.descriptor(layer_type)));
  return fmt::format(R"({{{}, "annotations": {{"io.containerd.image.name": "{}"}}}})",
                     manifest.descriptor(manifest_type), image.name);
}

}  // namespace

fs::path write_oci_archive(const std::vector<Image>& images, const fs::path& scratch) {
  const fs::path layout = scratch / "layout";
  const BlobStore blobs(layout);
  std::vector<std::string> entries;
  entries.reserve(images.size());
  for (const auto& image : images) entries.push_back(add_image(blobs, image));

  write_file(layout / "oci-layout", R"({"imageLayoutVersion": "1.0.0"})");
  write_file(layout / "index.json", fmt::format(R"({{"schemaVersion": 2, "mediaType": "{}", "manifests": [{}]}})",
                                                index_type, fmt::join(entries, ", ")));
  fs::path archive = scratch / "images.tar";
  run({"tar", "--create", "--file", archive, "--directory", layout, "."});
  return archive;
}

void fill_load_root(const fs::path& root) {
  const auto busybox = find_program("busybox");
  if (!busybox) fail("busybox is not installed");
  for (const char* folder : {"bin", "data", "dev", "etc", "proc", "sys", "tmp"}) fs::create_directories(root / folder);
  fs::copy_file(load_program(), root / "bin" / "load");
  fs::copy_file(*busybox, root / "bin" / "busybox");
  for (const char* applet : {"cat", "dd", "df", "du", "echo", "ls", "rm", "sh", "sleep"}) {
    fs::create_symlink("busybox", root / "bin" / applet);
  }
}

void fill_ballast_root(const fs::path& root, std::int64_t bytes) {
  fs::create_directories(root);
  run({"dd", "status=none", "if=/dev/urandom", "of=" + (root / "ballast").native(), "bs=1M", "iflag=count_bytes",
       fmt::format("count={}", bytes)});
}

}  // namespace testbed
