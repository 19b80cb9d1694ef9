#include "testbed/image.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <random>

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

std::string sha256(const fs::path& file) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), EVP_MD_CTX_free};
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  bool ok = context && stream && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  while (ok && stream) {
    stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    ok = EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(stream.gcount())) == 1;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  if (!ok || EVP_DigestFinal_ex(context.get(), digest.data(), &length) != 1) fail("sha256 of " + file.native());
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + length, ""));
}

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
    const std::string digest = sha256(fresh());
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

void fill_ballast_root(const fs::path& root, std::string_view name, std::int64_t bytes) {
  fs::create_directories(root);
  std::mt19937_64 random(std::hash<std::string_view>{}(name));
  std::ofstream file(root / "ballast", std::ios::binary);
  for (std::int64_t left = bytes; left > 0;) {
    const auto word = random();
    const auto length = std::min<std::int64_t>(left, sizeof word);
    file.write(reinterpret_cast<const char*>(&word), length);
    left -= length;
  }
  if (!file.flush()) fail("writing " + (root / "ballast").native());
}

}  // namespace testbed
