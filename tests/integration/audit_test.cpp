#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "agent/eviction_audit.hpp"
#include "fixture/places.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace integration::audit_test {

// A real systemd-journald gets a real eviction's entry, and journalctl shows it.

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;
constexpr auto journald_program = "/usr/lib/systemd/systemd-journald";

/// A journald with a namespace of its own, which evictd finds in place of the machine's.
class Journald {
 public:
  explicit Journald(Testbed& testbed)
      : name_{fmt::format("evictd-test-{}", getpid())},
        process_{testbed.spawn({journald_program, name_}, {.environment = {"SYSTEMD_LOG_TARGET=console"}})} {
    testbed::wait_until("journald listens", 60s, [&] { return std::filesystem::exists(sockets() / "socket"); });
  }
  ~Journald() {
    process_.kill();
    std::error_code ignored;
    std::filesystem::remove_all(sockets(), ignored);
    for (const auto* place : {"/run/log/journal", "/var/log/journal"})
      for (std::filesystem::directory_iterator entry(place, ignored), end; !ignored && entry != end;
           entry.increment(ignored))
        if (entry->path().extension() == "." + name_) std::filesystem::remove_all(entry->path(), ignored);
  }

  /// Runs a program in a mount namespace in which this is the journal.
  [[nodiscard]] std::vector<std::string> wrapper() const {
    return {"unshare",
            "--mount",
            "sh",
            "-c",
            fmt::format("mkdir -p /run/systemd/journal && mount --bind {} /run/systemd/journal && exec \"$@\"",
                        sockets().native()),
            "sh"};
  }
  [[nodiscard]] std::string show(const std::vector<std::string>& what) const {
    std::vector<std::string> command{"journalctl", "--namespace=" + name_, "--no-pager"};
    command.insert(command.end(), what.begin(), what.end());
    return testbed::run(command);
  }

 private:
  [[nodiscard]] std::filesystem::path sockets() const { return "/run/systemd/journal." + name_; }

  std::string name_;
  testbed::Process process_;
};

}  // namespace

TEST_CASE("an eviction is one journal entry, found by its message id, with what, why and how long") {
  REQUIRE_MESSAGE(std::filesystem::exists("/etc/machine-id"), "without it journald does not run");
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  Journald journald{testbed};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}\n", .wrapper = journald.wrapper()}};
  const auto bloat = testbed.cri().run_pod(
      {.name = "bloat", .qos = QosClass::BestEffort, .containers = {{.args = {"grow", "16Mi", "200Mi/s"}}}});
  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "default/bloat", 60s);

  const auto by_id = fmt::format("MESSAGE_ID={}", evictd::agent::eviction_message_id);
  testbed::wait_until("the journal has the entry", 60s,
                      [&] { return journald.show({"-o", "cat", by_id}).find("bloat") != std::string::npos; });
  CHECK(journald.show({"-o", "cat", "--output-fields=EVICTD_POD", by_id}) == "default/bloat\n");
  const auto entry = journald.show({"-o", "export", by_id});
  CAPTURE(entry);
  for (const auto& field :
       {std::string("EVICTD_POD=default/bloat\n"), std::string("EVICTD_SIGNAL=memory.available\n"),
        std::string("EVICTD_AVAILABLE="), std::string("EVICTD_THRESHOLD=memory.available<300Mi\n"),
        std::string("EVICTD_RANKING=default/bloat usage="), std::string("EVICTD_REASON=Evicted\n"),
        std::string("EVICTD_HELD=anon="), std::string("EVICTD_OUTCOME=cleaned up\n"),
        std::string("EVICTD_STAGE_DECIDED_USEC="), std::string("EVICTD_STAGE_KILLED_USEC="),
        std::string("EVICTD_STAGE_CLEANUP_USEC="), fmt::format("EVICTD_EVICTION={}\n", done.eviction_id())})
    CHECK(entry.find(field) != std::string::npos);
}

TEST_CASE("no name of a pod forges an entry's fields, or lines of the journal") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  Journald journald{testbed};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}\n", .wrapper = journald.wrapper()}};
  const std::string name = "x\nEVICTD_OUTCOME=forged\nPRIORITY=0\n\nMESSAGE=forged\x1b[2J";
  static_cast<void>(testbed.cri().run_pod(
      {.name = name, .qos = QosClass::BestEffort, .containers = {{.args = {"grow", "16Mi", "200Mi/s"}}}}));
  static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, "default/" + name, 60s));
  const auto by_id = fmt::format("MESSAGE_ID={}", evictd::agent::eviction_message_id);
  testbed::wait_until("the journal has the entry", 60s,
                      [&] { return journald.show({"-o", "cat", by_id}).find("forged") != std::string::npos; });
  for (const auto* format : {"export", "verbose", "short", "json"}) {
    const auto entry = journald.show({"-o", format, "-a"});
    CAPTURE(entry);
    CHECK(entry.find("\nEVICTD_OUTCOME=forged") == std::string::npos);
    CHECK(entry.find("\nMESSAGE=forged") == std::string::npos);
    CHECK(entry.find('\x1b') == std::string::npos);
  }
  CHECK(journald.show({"-o", "cat", "EVICTD_OUTCOME=forged"}).find("forged") == std::string::npos);
  CHECK(journald.show({"-o", "cat", "EVICTD_OUTCOME=cleaned up"}).find("x\\nEVICTD_OUTCOME") != std::string::npos);
}

TEST_CASE("the catalog explains the entry") {
  Testbed testbed{{.start_containerd = false}};
  const auto root = testbed.directory() / "root";
  std::filesystem::create_directories(root / "usr/lib/systemd/catalog");
  std::filesystem::create_directories(root / "var/lib/systemd/catalog");
  std::filesystem::copy_file(
      std::filesystem::path(evictd::fixture::source_root) / "tools/deploy/systemd/evictd.catalog",
      root / "usr/lib/systemd/catalog/evictd.catalog");
  testbed::run({"journalctl", "--root", root, "--update-catalog"});
  const auto text =
      testbed::run({"journalctl", "--root", root, "--dump-catalog", std::string(evictd::agent::eviction_message_id)});
  CHECK(text.find("Subject: evictd evicted the pod @EVICTD_POD@") != std::string::npos);
}

}  // namespace integration::audit_test
