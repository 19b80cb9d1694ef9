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

/// As the Go world calls it.
std::string architecture() {
  utsname machine{};
  ::uname(&machine);
  const std::string_view name = machine.machine;
  if (name == "x86_64") return "amd64";
  if (name == "aarch64") return "arm64";
  return std::string(name);
}

}  // namespace

fs::path write_archive(const std::vector<Image>& images, const fs::path& scratch) {
  const auto folder = scratch / "archive";
  fs::create_directory(folder);
  std::vector<std::string> entries;
  for (const auto& image : images) {
    const auto layer = fmt::format("layer-{}.tar", entries.size());
    const auto config = fmt::format("config-{}.json", entries.size());
    // One owner, one time, one order: the same folder is the same layer.
    run({"tar", "--create", "--file", folder / layer, "--directory", image.root, "--sort=name", "--owner=0",
         "--group=0", "--numeric-owner", "--mtime=@0", "."});
    const auto digest = run({"sha256sum", folder / layer}).substr(0, 64);
    write_file(folder / config, fmt::format(R"({{"architecture": "{}", "os": "linux", )"
                                            R"("config": {{"Entrypoint": {}, "Env": ["PATH=/bin"]}}, )"
                                            R"("rootfs": {{"type": "layers", "diff_ids": ["sha256:{}"]}}}})",
                                            architecture(), image.entrypoint, digest));
    entries.push_back(
        fmt::format(R"({{"Config": "{}", "RepoTags": ["{}"], "Layers": ["{}"]}})", config, image.name, layer));
  }
  write_file(folder / "manifest.json", fmt::format("[{}]", fmt::join(entries, ", ")));
  fs::path archive = scratch / "images.tar";
  run({"tar", "--create", "--file", archive, "--directory", folder, "."});
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

void fill_ballast_root(const fs::path& root, std::int64_t bytes, int empty_files) {
  fs::create_directories(root);
  run({"dd", "status=none", "if=/dev/urandom", "of=" + (root / "ballast").native(), "bs=1M",
       "iflag=count_bytes,fullblock", fmt::format("count={}", bytes)});
  for (int i = 0; i < empty_files; ++i) write_file(root / fmt::format("empty-{}", i), "");
}

}  // namespace testbed
