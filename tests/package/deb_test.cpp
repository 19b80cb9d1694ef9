#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "bare_root.hpp"
#include "deb.hpp"
#include "fixture/places.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/work_directory.hpp"

namespace fs = std::filesystem;

namespace {

using Files = std::vector<std::string>;

Files sorted(Files files) {
  std::ranges::sort(files);
  return files;
}

/// What `meson install` puts below `prefix`, wherever that is.
Files installed_below(const std::string& prefix) {
  Files files;
  for (const auto* file : {"bin/evictctl",
                           "sbin/evictd",
                           "lib/systemd/system/evictd.service",
                           "lib/systemd/catalog/evictd.catalog",
                           "lib/sysusers.d/evictd.conf",
                           "lib/tmpfiles.d/evictd.conf",
                           "share/bash-completion/completions/evictctl",
                           "share/evictd/monitoring/dashboard.json",
                           "share/evictd/monitoring/prometheus.yaml",
                           "share/evictd/monitoring/rules.yaml",
                           "share/fish/vendor_completions.d/evictctl.fish",
                           "share/man/man1/evictctl.1",
                           "share/man/man5/evictd.conf.5",
                           "share/man/man7/evictd-admission.7",
                           "share/man/man7/evictd-cluster.7",
                           "share/man/man7/evictd-events.7",
                           "share/man/man7/evictd-measurements.7",
                           "share/man/man7/evictd-node.7",
                           "share/man/man7/evictd-security.7",
                           "share/man/man7/evictd-thresholds.7",
                           "share/man/man7/evictd-troubleshooting.7",
                           "share/man/man7/evictd-tuning.7",
                           "share/man/man8/evictd.8",
                           "share/zsh/site-functions/_evictctl"})
    files.push_back(prefix + "/" + file);
  return sorted(files);
}

Files files_below(const fs::path& root) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (!entry.is_directory()) files.push_back("/" + entry.path().lexically_relative(root).native());
  return sorted(files);
}

/// As Debian has it: manual pages are compressed, Debian 12 has units in /lib, and zsh looks in a place of its own.
Files in_debian(Files files) {
  for (auto& file : files) {
    if (file.find("/man/") != std::string::npos) file += ".gz";
    if (file == "/usr/lib/systemd/system/evictd.service" && package::is_this_machines(package::debian_12))
      file = "/lib/systemd/system/evictd.service";
    if (file.starts_with("/usr/share/zsh/")) file = "/usr/share/zsh/vendor-completions/_evictctl";
  }
  return files;
}

/// All that is no documentation.
Files working(Files files) {
  std::erase_if(files, [](const std::string& file) { return file.starts_with("/usr/share/doc/"); });
  return files;
}

}  // namespace

TEST_CASE("meson install puts each file below the prefix, and all of them below DESTDIR") {
  const testbed::WorkDirectory directory;
  const auto destination = directory.path() / "destination";
  testbed::run(
      {"meson", "install", "-C", evictd::fixture::build_root, "--no-rebuild", "--quiet", "--destdir", destination});
  CHECK(files_below(destination) == installed_below("/usr/local"));
  const auto unit = testbed::read_file(destination / "usr/local/lib/systemd/system/evictd.service");
  CHECK(unit.find("ExecStart=/usr/local/sbin/evictd run\n") != std::string::npos);
  CHECK(unit.find("ExecStopPost=/usr/local/sbin/evictd disarm --if-noted\n") != std::string::npos);
}

TEST_CASE("the Debian package has all that is installed, and lintian has nothing against it") {
  const auto files = package::files_in(package::deb());  // tools/deploy/deb fails where lintian objects
  CHECK(sorted(working(files)) == sorted(in_debian(installed_below("/usr"))));
  const auto has = [&](const char* file) { return std::ranges::find(files, file) != files.end(); };
  CHECK(has("/usr/share/doc/evictd/copyright"));
  CHECK(has("/usr/share/doc/evictd/README.md.gz"));
  CHECK(has("/usr/share/doc/evictd/CHANGELOG.md.gz"));
  CHECK(has("/usr/share/doc/evictd/examples/kubernetes/30-daemonset.yaml"));
}

TEST_CASE("the version stands in one place: programs, package, image and changelog agree with it") {
  const auto version = package::project_version();
  CHECK(testbed::run({testbed::evictd_program(), "--version"}) == "evictd " + version + "\n");
  CHECK(testbed::run({testbed::evictctl_program(), "--version"}) == "evictctl " + version + "\n");
  CHECK(package::field(package::deb(), "Version") == version);
  const fs::path source = evictd::fixture::source_root;
  CHECK(testbed::read_file(source / "tools/deploy/kubernetes/30-daemonset.yaml")
            .find("evictd.io/evictd:" + version + "\n") != std::string::npos);
  CHECK(testbed::read_file(source / "CHANGELOG.md").find("\n## " + version + " (") != std::string::npos);
}

TEST_CASE("the licence is the whole Apache License, as Debian has it") {
  CHECK(testbed::read_file(fs::path(evictd::fixture::source_root) / "LICENSE") ==
        testbed::read_file("/usr/share/common-licenses/Apache-2.0"));
}
