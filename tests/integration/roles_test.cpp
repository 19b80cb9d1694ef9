#include <doctest/doctest.h>
#include <evictd.grpc.pb.h>
#include <fmt/format.h>
#include <grp.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "callers.hpp"
#include "evictctl.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace integration::roles_test {

// Who may do what on the unix sockets.

using namespace std::chrono_literals;
using evictd::v1::Event;
using integration::operator+;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;
const auto gibi_node = Testbed::Options{.node = {.memory_limit = 1024 * mebi}};
const auto without_runtime =
    Testbed::Options{.node = {.memory_limit = 1024 * mebi}, .containerd = {}, .start_containerd = false};

constexpr auto thresholds = "evictionHard: {memory.available: 300Mi}";
constexpr auto pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main}]}\n";

/// Nobody of this machine, in no group but the given one.
std::vector<std::string> as_stranger(gid_t group) {
  return {"setpriv", "--reuid=65533", fmt::format("--regid={}", group), "--clear-groups"};
}

/// A group that exists on every Linux and has nothing to do with root.
gid_t some_group() {
  const auto* group = ::getgrnam("nogroup");
  if (group == nullptr) group = ::getgrnam("nobody");
  REQUIRE(group != nullptr);
  return group->gr_gid;
}

struct stat look_at(const std::filesystem::path& path) {
  struct stat found{};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  return found;
}

/// A call that changes something, straight to a socket.
grpc::Status reserve(const std::filesystem::path& socket) {
  const auto stub = evictd::v1::EvictionService::NewStub(
      grpc::CreateChannel("unix:" + socket.native(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + testbed::patient(20s));
  evictd::v1::AdmitRequest request;
  request.set_pod(pod);
  request.set_reserve(true);
  evictd::v1::AdmitResponse response;
  return stub->Admit(&context, request, &response);
}

}  // namespace

TEST_CASE("the sockets belong to those who may use them, and there is no other way in") {
  Testbed testbed{without_runtime};
  const auto* usual = ::getgrnam("evictd");
  const auto group = some_group();
  for (const auto& [sections, gid] : {std::pair{std::string(), usual != nullptr ? usual->gr_gid : ::getegid()},
                                      std::pair{fmt::format("api: {{group: \"{}\"}}\n", group), group}}) {
    Agent agent{testbed, {.thresholds = thresholds, .sections = sections, .wait_until_ready = false}};
    const auto readers = look_at(testbed.directory() / "evictd.sock");
    CHECK((readers.st_mode & 07777) == 0660);
    CHECK(readers.st_uid == 0);
    CHECK(readers.st_gid == gid);
    const auto admins = look_at(testbed.directory() / "admin.sock");
    CHECK((admins.st_mode & 07777) == 0600);
    CHECK(admins.st_uid == 0);
    CHECK(tcp_sockets(agent.process().pid(), true) == 0);
    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(30s) == 0);
    CHECK_FALSE(std::filesystem::exists(testbed.directory() / "evictd.sock"));
    CHECK_FALSE(std::filesystem::exists(testbed.directory() / "admin.sock"));
  }
}

TEST_CASE("the group looks and changes nothing, others do neither, and evictctl says why") {
  Testbed testbed{without_runtime};
  const auto group = some_group();
  Agent agent{testbed,
              {.thresholds = thresholds,
               .sections = fmt::format("api: {{group: \"{}\"}}\n", group),
               .wait_until_ready = false}};
  // For strangers to come by: evictctl and the way to the sockets.
  std::filesystem::permissions(testbed.directory(), std::filesystem::perms{0711});
  const auto evictctl = testbed.directory() / "evictctl";
  std::filesystem::copy_file(testbed::evictctl_program(), evictctl);
  const auto file = testbed.directory() / "pod.yaml";
  testbed::replace_file(file, pod);
  std::filesystem::permissions(file, std::filesystem::perms{0644});
  const auto run = [&](gid_t gid, const std::vector<std::string>& arguments) {
    auto process =
        testbed.spawn(as_stranger(gid) + std::vector<std::string>{evictctl, "--address", agent.address()} + arguments);
    const auto code = process.wait(60s);
    REQUIRE(code.has_value());
    return std::pair{*code, process.errors()};
  };
  const auto socket = (testbed.directory() / "evictd.sock").native();
  const auto admin = (testbed.directory() / "admin.sock").native();

  CHECK(run(group, {"status"}) == std::pair{0, std::string()});
  CHECK(
      run(group, {"admit", "-f", file, "--reserve"}) ==
      std::pair{1, fmt::format("evictctl: no access to {} (permission denied): it is for administrators: run as root\n",
                               admin)});
  CHECK(run(group + 1, {"status"}) ==
        std::pair{1, fmt::format("evictctl: no access to {} (permission denied): run as root, or as a member of the "
                                 "group {}\n",
                                 socket, ::getgrgid(group)->gr_name)});

  // Past evictctl it is the agent that refuses, and it tells of it.
  const auto refused = reserve(socket);
  CHECK(refused.error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(refused.error_message() == fmt::format("Admit with reserve is for administrators: use admin.sock ({})", admin));
  const auto audit = wait_for_audit(agent, "evictd.sock").audit();
  CHECK(audit.caller() == fmt::format("uid 0 (root), pid {}, evictd.sock", ::getpid()));
  CHECK(audit.outcome() == "PERMISSION_DENIED: " + refused.error_message());
  CHECK(audit.before_size() == 0);  // its pods are not even read
}

TEST_CASE("a change by the administrators' socket is made, and told with uid, pid and what became of it") {
  Testbed testbed{gibi_node};
  const auto chill = testbed.cri().run_pod({.name = "chill", .containers = {{.args = {"hold", "1Mi"}}}});
  Agent agent{testbed, {.thresholds = thresholds}};
  agent.wait_for_pods(1);  // before it knows them it cannot say anything
  const auto file = testbed.directory() / "pod.yaml";
  testbed::replace_file(file, pod);
  // evictctl finds the socket by itself.
  const auto admitted = run_evictctl(testbed, {"--address", agent.address(), "admit", "-f", file, "--reserve"});
  CHECK(admitted.code == 0);
  const auto event = wait_for_audit(agent, fmt::format("pid {},", admitted.pid));
  CHECK(event.audit().caller() == fmt::format("uid 0 (root), pid {}, admin.sock", admitted.pid));
  CHECK(event.audit().call() == "AdmitBatch");
  CHECK(event.audit().outcome() == "done");
  REQUIRE(event.audit().after_size() == 1);
  CHECK(event.audit().after(0) == "default/web: admitted");
  CHECK(event.message() == fmt::format("uid 0 (root), pid {}, admin.sock: AdmitBatch: done (default/web: undecided "
                                       "-> admitted)",
                                       admitted.pid));
  agent.process().wait_until_says(event.message());

  // Asking changes nothing and is no audit.
  CHECK(run_evictctl(testbed, {"--address", agent.address(), "admit", "-f", file}).code == 0);
  CHECK(reserve(testbed.directory() / "evictd.sock").error_code() == grpc::StatusCode::PERMISSION_DENIED);
  static_cast<void>(wait_for_audit(agent, "evictd.sock"));
  std::size_t audits = 0;
  for (const auto& each : agent.events().all()) audits += each.kind() == Event::AUDIT ? 1 : 0;
  CHECK(audits == 2);
}

}  // namespace integration::roles_test
