#include "installation.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "deb.hpp"
#include "testbed/files.hpp"
#include "testbed/work_directory.hpp"

namespace package {

namespace fs = std::filesystem;

// There is no systemd running in the bare root: that the service is enabled is seen, that it starts is not.

namespace {

/// What this machine does with a package that it has as a file.
std::string install(const BareRoot& root, const fs::path& deb) {
  const auto name = deb.filename();
  fs::copy_file(deb, root.path() / "root" / name, fs::copy_options::overwrite_existing);
  const auto command = "apt-get install --yes --no-install-recommends /root/" + name.native();
  const auto said = root.done("export DEBIAN_FRONTEND=noninteractive; " + command);
  fs::remove(root.path() / "root" / name);
  return said;
}

/// Everything that is there, but for what every package leaves in the books of dpkg and apt, the lists of users, with
/// the group that has to stay, and man's index.
std::vector<std::string> everything(const BareRoot& root) {
  return lines_of(root.done(R"sh(
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp \
      -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache -o -path /var/log \) -prune -o -print |
      grep -vE '^/etc/g?(shadow|roup|passwd)-?$|^/etc/\.pwd\.lock$' | sort)sh"));
}

std::vector<std::string> only_in(const std::vector<std::string>& some, const std::vector<std::string>& others) {
  std::vector<std::string> result;
  std::ranges::set_difference(some, others, std::back_inserter(result));
  return result;
}

bool exists(const BareRoot& root, const char* path) {
  return fs::exists(fs::symlink_status(root.path() / fs::path(path).relative_path()));
}

void write(const BareRoot& root, const char* path, const char* text) {
  const auto file = root.path() / fs::path(path).relative_path();
  fs::create_directories(file.parent_path());
  testbed::replace_file(file, text);
}

void check_programs(const BareRoot& root, const fs::path& deb) {
  const auto version = field(deb, "Version");
  CHECK(lines_of(root.done("evictd --version")).back() == "evictd " + version);
  CHECK(lines_of(root.done("evictctl --version")).back() == "evictctl " + version);
  CHECK(root.done("evictd check").find("agentConfiguration: \"none: defaults\"") != std::string::npos);
  CHECK(root.done("evictctl --help").find("thresholds") != std::string::npos);
  const auto no_agent = root.run("evictctl status");
  CHECK(no_agent.code == 1);
  CHECK(no_agent.said.find("is evictd running?") != std::string::npos);
  // Guards the machine, with a bare system's libraries; there is no containerd, which it waits for.
  const auto guarding = root.done("timeout --preserve-status 5 evictd run --dry-run");
  CHECK(guarding.find("evictd " + version + " guards /") != std::string::npos);
  CHECK(guarding.find("waiting for it") != std::string::npos);
}

void check_system(const BareRoot& root) {
  CHECK(root.done("getent group evictd").starts_with("evictd:"));
  CHECK(exists(root, "/etc/systemd/system/multi-user.target.wants/evictd.service"));
  CHECK(exists(root, "/etc/evictd/thresholds.d"));
  CHECK(root.done("systemd-tmpfiles --create evictd.conf; stat --format '%a %U:%G' /run/evictd /var/lib/evictd") ==
        "755 root:root\n755 root:root\n");
  CHECK(root.done("journalctl --no-pager --list-catalog 43fd61b8e6b448189951dc079307fbce").find("evicted the pod") !=
        std::string::npos);
  CHECK(root.done("dpkg --verify evictd").empty());
}

void check_manual(const BareRoot& root) {
  root.done("apt-get install --yes --no-install-recommends man-db");
  for (const auto* page : {"8 evictd", "1 evictctl", "5 evictd.conf", "7 evictd-admission", "7 evictd-cluster",
                           "7 evictd-events", "7 evictd-measurements", "7 evictd-node", "7 evictd-security",
                           "7 evictd-thresholds", "7 evictd-troubleshooting", "7 evictd-tuning"}) {
    CAPTURE(page);
    CHECK(root.done(fmt::format("man --where {}", page)).starts_with("/usr/share/man/man"));
    CHECK(root.run(fmt::format("man --warnings --encoding=UTF-8 {} 2>&1 >/dev/null", page)).said.empty());
  }
  CHECK(root.done("man 5 evictd.conf | cat").find("notifier.fallbackInterval (default: 10s)") != std::string::npos);
}

}  // namespace

void check_life_of(const fs::path& deb, const Release& release) {
  const BareRoot root{release};
  root.done("apt-get update");
  // What it depends on stays when it goes, so it is there before.
  root.done("export DEBIAN_FRONTEND=noninteractive; apt-get satisfy --yes --no-install-recommends '" +
            field(deb, "Depends") + "'");
  const auto before = everything(root);
  install(root, deb);
  check_programs(root, deb);
  check_system(root);

  write(root, "/etc/evictd/agent.yaml", "{apiVersion: evictd.io/v1alpha1, kind: AgentConfiguration}");
  write(root, "/var/lib/evictd/thresholds.yaml", "state");
  const auto newer = field(deb, "Version") + "+1";
  const testbed::WorkDirectory directory;
  const auto upgrade = directory.path() / ("evictd_" + newer + ".deb");
  repack(deb, newer, upgrade);
  install(root, upgrade);
  CHECK(root.done("dpkg-query --show --showformat '${Version}' evictd") == newer);
  CHECK(exists(root, "/etc/evictd/agent.yaml"));
  CHECK(exists(root, "/var/lib/evictd/thresholds.yaml"));
  CHECK(exists(root, "/etc/systemd/system/multi-user.target.wants/evictd.service"));

  root.done("apt-get remove --yes evictd");
  CHECK_FALSE(exists(root, "/usr/sbin/evictd"));
  CHECK(exists(root, "/etc/evictd/agent.yaml"));
  CHECK(exists(root, "/var/lib/evictd/thresholds.yaml"));

  root.done("apt-get purge --yes evictd");
  const auto after = everything(root);
  CHECK(only_in(after, before) == std::vector<std::string>{});
  CHECK(only_in(before, after) == std::vector<std::string>{});
  CHECK(root.done("dpkg-query --show --showformat '${Status}\\n' 'evictd*' 2>&1 || :").find("install ok") ==
        std::string::npos);
  CHECK(root.done("getent group evictd").starts_with("evictd:"));

  install(root, deb);  // and back again
  check_manual(root);
}

}  // namespace package
