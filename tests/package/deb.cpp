#include "deb.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "fixture/places.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/work_directory.hpp"

namespace package {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

struct Made {
  testbed::WorkDirectory directory;
  fs::path deb;

  Made() {
    if (const auto* given = std::getenv("EVICTD_DEB"); given != nullptr) {
      deb = given;
      return;
    }
    // Where nothing of it is in ccache, it compiles evictd.
    auto process =
        directory.spawn({fs::path(evictd::fixture::source_root) / "tools/deploy/deb", "--output", directory.path()});
    if (process.wait(45min) != 0) testbed::fail("tools/deploy/deb: " + process.errors());
    deb = lines_of(process.output()).back();
  }
};

std::unique_ptr<Made> made;

const Made& made_package() {
  if (!made) made = std::make_unique<Made>();
  return *made;
}

}  // namespace

const fs::path& deb() { return made_package().deb; }

std::string field(const fs::path& deb, const std::string& name) {
  return lines_of(testbed::run({"dpkg-deb", "--field", deb, name})).at(0);
}

std::vector<std::string> files_in(const fs::path& deb) {
  std::vector<std::string> files;
  // "-rw-r--r-- root/root  1234 2026-01-01 00:00 ./usr/sbin/evictd"
  for (const auto& line : lines_of(testbed::run({"dpkg-deb", "--contents", deb}))) {
    const auto path = line.find(" ./");
    if (line.starts_with("-") && path != std::string::npos) files.push_back(line.substr(path + 2));
  }
  std::ranges::sort(files);
  return files;
}

void repack(const fs::path& deb, const std::string& version, const fs::path& result) {
  const testbed::WorkDirectory directory;
  const auto tree = directory.path() / "tree";
  testbed::run({"dpkg-deb", "--raw-extract", deb, tree});
  auto control = testbed::read_file(tree / "DEBIAN/control");
  const std::string key = "\nVersion: ";
  const auto begin = control.find(key) + key.size();
  control.replace(begin, control.find('\n', begin) - begin, version);
  testbed::replace_file(tree / "DEBIAN/control", control);
  testbed::run({"dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, result});
}

void forget_deb() { made.reset(); }

std::string project_version() {
  const std::string key = "  version: '";
  const auto text = testbed::read_file(fs::path(evictd::fixture::source_root) / "meson.build");
  const auto begin = text.find(key);
  if (begin == std::string::npos) testbed::fail("meson.build says no version");
  return text.substr(begin + key.size(), text.find('\'', begin + key.size()) - begin - key.size());
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace package
