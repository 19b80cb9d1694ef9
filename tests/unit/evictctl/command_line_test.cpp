#include "evictctl/command_line.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/util/json_util.h>
#include <sys/socket.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <sstream>
#include <vector>

#include "api/running_server.hpp"
#include "os/unix_address.hpp"

namespace evictd::ctl::command_line_test {
namespace {

using test::RunningServer;
using test::TemporaryDirectory;

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome run(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "evictctl");
  std::ostringstream out;
  std::ostringstream err;
  const int code = ctl::run(static_cast<int>(arguments.size()), arguments.data(), out, err);
  return {code, out.str(), err.str()};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("wrong usage is exit code 2 and one line on stderr") {
  const auto error_of = [](std::vector<const char*> arguments) {
    const auto outcome = run(std::move(arguments));
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(lines_of(outcome.err).size() == 1);
    return outcome.err;
  };
  const auto missing = error_of({});
  CHECK(missing.starts_with("evictctl: a subcommand is missing: status, "));
  CHECK(missing.ends_with(", completion (see evictctl --help)\n"));
  CHECK(error_of({"thresholds"}) ==
        "evictctl: a subcommand is missing: get, set, apply, suggest (see evictctl thresholds --help)\n");
  CHECK(error_of({"thresholds", "gte"}).find("not expected: gte") != std::string::npos);
  CHECK(error_of({"stauts"}) == "evictctl: The following argument was not expected: stauts (see evictctl --help)\n");
  CHECK(error_of({"status", "--nonsense"}).starts_with("evictctl: The following argument was not expected"));
  CHECK(error_of({"-o", "xml", "status"}) ==
        "evictctl: --output: \"xml\" is none of table, wide, json, yaml (see evictctl --help)\n");
  for (const char* since : {"-1", "x", "", "18446744073709551616"})
    CHECK(error_of({"events", "--since", since}).find("is not the number of an event") != std::string::npos);
  CHECK(error_of({"--address", "x.sock", "status"}).find("is not a unix socket") != std::string::npos);
  CHECK(error_of({"--address", "localhost:80", "--ca", "x", "status"}) ==
        "evictctl: --address localhost:80 is asked by mutual TLS: it needs --ca, --cert and --key (see evictctl "
        "--help)\n");
  CHECK(error_of({"--color", "red", "status"}).find("\"red\" is none of auto, always, never") != std::string::npos);
  CHECK(error_of({"pods", "--signal", "memory"}).find("\"memory\" is none of memory.available, ") != std::string::npos);
  for (const char* interval : {"--watch=0s", "--watch=50ms", "--watch=2", "--watch=-1s", "--watch=x"})
    CHECK(error_of({"status", interval}).find("is no time of at least 100ms") != std::string::npos);
  CHECK(error_of({"completion"}).find("required") != std::string::npos);
  CHECK(error_of({"completion", "csh"}).find("\"csh\" is none of bash, zsh, fish") != std::string::npos);
  CHECK(error_of({"a\nb"}).find("a\\nb") != std::string::npos);
}

TEST_CASE("help and version are no errors") {
  CHECK(run({"--version"}).out.starts_with("evictctl "));
  for (const auto& outcome : {run({"--help"}), run({"events", "--help"})}) {
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.out.find("Usage: evictctl") != std::string::npos);
  }
}

TEST_CASE("no agent, no socket, no listener: exit code 1 and what to do") {
  const TemporaryDirectory directory;
  const auto path = directory / "s";
  CHECK(run({"--address", path.c_str(), "status"}).code == 1);
  CHECK(run({"--address", path.c_str(), "events"}).err ==
        "evictctl: no agent answers at " + path + " (no such file): is evictd running?\n");

  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(os::bind_to(fd, path) == 0);
  ::close(fd);
  const auto refused = run({"--address", path.c_str(), "status"});
  CHECK(refused.code == 1);
  CHECK(refused.err == "evictctl: no agent answers at " + path + " (connection refused): is evictd running?\n");
}

TEST_CASE("a file for TLS that cannot be read is wrong input, and so are a directory and what has no end") {
  const TemporaryDirectory directory;
  const auto missing = directory / "ca.pem";
  const auto error_of = [](const std::string& ca) {
    const auto outcome =
        run({"--address", "localhost:1", "--ca", ca.c_str(), "--cert", "/dev/null", "--key", "/dev/null", "status"});
    CHECK(outcome.code == 2);
    return outcome.err;
  };
  CHECK(error_of(missing) == "evictctl: --ca " + missing + ": No such file or directory\n");
  CHECK(error_of("/") == "evictctl: --ca /: Is a directory\n");
  CHECK(error_of("/dev/zero") == "evictctl: --ca /dev/zero: is larger than 1 MiB\n");
}

TEST_CASE("the status comes as a table, as JSON and as YAML") {
  RunningServer running;
  running.node.set_version("1.2.3");
  running.node.set_passes(9);
  const auto address = "unix://" + running.socket;

  const auto table = run({"--address", address.c_str(), "status"});
  CHECK(table.code == 0);
  CHECK(table.out.starts_with("evictd    1.2.3\n"));

  const auto json = run({"--address", address.c_str(), "-o", "json", "status"});
  v1::NodeStatus parsed;
  REQUIRE(google::protobuf::util::JsonStringToMessage(json.out, &parsed).ok());
  CHECK(parsed.passes() == 9);

  const auto yaml = run({"status", "-o", "yaml", "--address", address.c_str()});
  CHECK(YAML::Load(yaml.out)["version"].as<std::string>() == "1.2.3");
}

TEST_CASE("pods are those of the signal that was asked for") {
  RunningServer running;
  const auto add = [&](const char* signal, const char* name) {
    auto& ranking = running.rankings[signal];
    ranking.set_signal(signal);
    ranking.add_pods()->mutable_pod()->set_name(name);
  };
  add("memory.available", "hog");
  add("pid.available", "forks");
  const auto address = "unix://" + running.socket;
  const auto memory = run({"--address", address.c_str(), "pods"});
  CHECK(memory.code == 0);
  CHECK(memory.out.find("/hog") != std::string::npos);
  CHECK(run({"--address", address.c_str(), "pods", "-s", "pid.available"}).out.find("/forks") != std::string::npos);
  const auto wide = run({"--address", address.c_str(), "pods", "-o", "wide"});
  CHECK(wide.out.find("UID") != std::string::npos);
  const auto json = run({"--address", address.c_str(), "pods", "-o", "json"});
  v1::RankPodsResponse parsed;
  REQUIRE(google::protobuf::util::JsonStringToMessage(json.out, &parsed).ok());
  CHECK(parsed.pods(0).pod().name() == "hog");

  const auto unknown = run({"--address", address.c_str(), "pods", "--signal", "nodefs.available"});
  CHECK(unknown.code == 1);
  CHECK(unknown.err == "evictctl: no pods are known\n");
}

TEST_CASE("colours are for terminals, unless told") {
  RunningServer running;
  running.node.add_warnings("careful");
  const auto address = "unix://" + running.socket;
  const auto has_colour = [&](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), {"--address", address.c_str()});
    const auto outcome = run(std::move(arguments));
    CHECK(outcome.code == 0);
    return outcome.out.find('\x1b') != std::string::npos;
  };
  CHECK_FALSE(has_colour({"status"}));
  CHECK_FALSE(has_colour({"status", "--color", "auto"}));
  CHECK_FALSE(has_colour({"status", "--color=never"}));
  CHECK(has_colour({"status", "--color=always"}));
  CHECK_FALSE(has_colour({"status", "--color=always", "-o", "json"}));
  running.append(1);
  CHECK_FALSE(has_colour({"events"}));
  CHECK(has_colour({"events", "--color=always"}));
}

TEST_CASE("top needs a terminal") {
  const auto outcome = run({"top"});
  CHECK(outcome.code == 2);
  CHECK(outcome.err.find("top needs a terminal") != std::string::npos);
}

TEST_CASE("health is told by the exit code alone") {
  RunningServer running;
  const auto address = "unix://" + running.socket;
  const auto starting = run({"--address", address.c_str(), "health"});
  CHECK(starting.code == 1);
  CHECK(starting.err == "evictctl: the agent's health is NOT_SERVING\n");

  running.server->set_serving(true);
  const auto serving = run({"--address", address.c_str(), "health"});
  CHECK(serving.code == 0);
  CHECK(serving.out.empty());
  CHECK(serving.err.empty());
}

TEST_CASE("events without --follow are what the agent remembers, and end") {
  RunningServer running({}, {.history = 3});
  const auto address = "unix://" + running.socket;
  const auto none = run({"--address", address.c_str(), "events"});
  CHECK(none.code == 0);
  CHECK(none.out.empty());

  running.append(5);
  const auto json = run({"--address", address.c_str(), "events", "-o", "json"});
  CHECK(json.code == 0);
  std::vector<std::uint64_t> sequences;
  for (const auto& line : lines_of(json.out)) {
    v1::Event event;
    REQUIRE(google::protobuf::util::JsonStringToMessage(line, &event).ok());
    sequences.push_back(event.sequence());
  }
  CHECK(sequences == std::vector<std::uint64_t>{2, 3, 4, 5});  // 2 is the gap from 1 to 2

  const auto since = run({"--address", address.c_str(), "events", "--since", "4"});
  REQUIRE(lines_of(since.out).size() == 2);
  CHECK(lines_of(since.out)[1].starts_with("     5  "));

  const auto yaml = YAML::LoadAll(run({"--address", address.c_str(), "events", "-o", "yaml"}).out);
  REQUIRE(yaml.size() == 4);
  CHECK(yaml[3]["kind"].as<std::string>() == "RECOVERED");

  running.append(7);
  const auto padded = run({"--address", address.c_str(), "events", "--since", "0010"});
  REQUIRE(lines_of(padded.out).size() == 3);
  CHECK(lines_of(padded.out)[1].starts_with("    11  "));
}

TEST_CASE("events are chosen by kind, namespace, pod and signal") {
  RunningServer running;
  const auto append = [&](v1::Event::Kind kind, const std::string& name_space, const std::string& signal) {
    running.reactor.run([&] {
      v1::Event event;
      event.set_kind(kind);
      event.mutable_pod()->set_namespace_(name_space);
      event.mutable_pod()->set_name("web");
      event.set_signal(signal);
      running.log.append(std::move(event));
    });
  };
  append(v1::Event::EVICTION_INTENDED, "shop", "memory.available");
  append(v1::Event::CLEANUP_DONE, "shop", "memory.available");
  append(v1::Event::EVICTION_INTENDED, "mail", "nodefs.available");
  append(v1::Event::EVICTION_INTENDED, "mail", "preemption");
  append(v1::Event::EVICTION_INTENDED, "mail", "emptydirfs.limit");
  const auto address = "unix://" + running.socket;
  const auto chosen = [&](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), {"--address", address.c_str(), "-o", "json", "events"});
    const auto outcome = run(arguments);
    CHECK(outcome.err.empty());
    std::string sequences;
    for (const auto& line : lines_of(outcome.out)) {
      v1::Event event;
      REQUIRE(google::protobuf::util::JsonStringToMessage(line, &event).ok());
      sequences += std::to_string(event.sequence());
    }
    return sequences;
  };
  CHECK(chosen({}) == "12345");
  CHECK(chosen({"--kind", "EVICTION_INTENDED"}) == "1345");
  CHECK(chosen({"--kind", "eviction-intended", "--kind", "CLEANUP_DONE"}) == "12345");
  CHECK(chosen({"--namespace", "shop"}) == "12");
  CHECK(chosen({"-n", "shop", "-n", "mail", "--kind", "CLEANUP_DONE"}) == "2");
  CHECK(chosen({"--pod", "mail/web"}) == "345");
  CHECK(chosen({"--signal", "nodefs.available", "--signal", "pid.available"}) == "3");
  CHECK(chosen({"--signal", "preemption", "--signal", "emptydirfs.limit"}) == "45");
  for (const char* cause : {"shutdown", "ephemeralpodfs.limit", "ephemeralcontainerfs.limit"})
    CHECK(chosen({"--signal", cause}).empty());
  CHECK(chosen({"--pod", "db"}).empty());

  const auto wrong = run({"--address", address.c_str(), "events", "--signal", "memory"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("\"memory\" is none of memory.available, ") != std::string::npos);
  const auto refused = run({"--address", address.c_str(), "events", "--pod", ""});
  CHECK(refused.code == 2);
  CHECK(refused.err.find("filter.pods") != std::string::npos);
  const auto unknown = run({"--address", address.c_str(), "events", "--kind", "EVICTED"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err.find("\"EVICTED\" is none of THRESHOLD_CROSSED, ") != std::string::npos);
}

TEST_CASE("a pod's latest eviction is explained, found by name, namespace and name, or uid") {
  RunningServer running;
  const auto append = [&](v1::Event::Kind kind, std::uint64_t eviction, const std::string& message) {
    running.reactor.run([&] {
      v1::Event event;
      event.set_kind(kind);
      event.set_eviction_id(eviction);
      event.set_signal("nodefs.available");
      event.set_message(message);
      if (eviction > 0) {
        event.mutable_pod()->set_namespace_("shop");
        event.mutable_pod()->set_name("web");
        event.mutable_pod()->set_uid("u1");
      }
      if (kind == v1::Event::EVICTION_INTENDED)
        event.mutable_eviction_intended()->mutable_threshold()->set_value("10%");
      running.log.append(std::move(event));
    });
  };
  append(v1::Event::EVICTION_INTENDED, 1, "the first");
  append(v1::Event::THRESHOLD_CROSSED, 0, "");
  append(v1::Event::EVICTION_INTENDED, 3, "the second");
  append(v1::Event::CLEANUP_DONE, 1, "late");
  append(v1::Event::EVICTION_FAILED, 3, "the disk is slow");
  const auto address = "unix://" + running.socket;
  for (const auto* pod : {"web", "shop/web", "u1"}) {
    const auto told = run({"--address", address.c_str(), "explain", pod});
    CHECK(told.code == 0);
    CHECK(told.out.starts_with("shop/web was evicted for nodefs.available on "));
    CHECK(lines_of(told.out)[0].ends_with("(event 3)"));
    CHECK(told.out.find("  since ") != std::string::npos);
    CHECK(told.out.find("  failed: the disk is slow\n") != std::string::npos);
  }
  const auto json = lines_of(run({"--address", address.c_str(), "explain", "web", "--json"}).out);
  REQUIRE(json.size() == 2);
  v1::Event event;
  REQUIRE(google::protobuf::util::JsonStringToMessage(json[0], &event).ok());
  CHECK(event.message() == "the second");

  const auto nobody = run({"--address", address.c_str(), "explain", "shop/db"});
  CHECK(nobody.code == 1);
  CHECK(nobody.out.empty());
  CHECK(nobody.err ==
        "evictctl: no eviction of shop/db is remembered (evictctl events shows how far back that goes)\n");
  CHECK(run({"--address", address.c_str(), "explain", "/db"}).code == 2);
  CHECK(run({"--address", address.c_str(), "explain"}).code == 2);
}

TEST_CASE("a number that the agent has not reached is an error in its own words") {
  RunningServer running;
  const auto address = "unix://" + running.socket;
  const auto outcome = run({"--address", address.c_str(), "events", "--since", "7"});
  CHECK(outcome.code == 1);
  CHECK(outcome.out.empty());
  CHECK(outcome.err ==
        "evictctl: event 7 has not happened yet, the newest is 0: numbers begin anew when evictd restarts without its "
        "history\n");
}

TEST_CASE("an output that takes nothing is an error") {
  RunningServer running;
  running.append(1);
  const auto address = "unix://" + running.socket;
  for (const char* command : {"status", "events"}) {
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    std::ostringstream err;
    const std::vector<const char*> arguments{"evictctl", "--address", address.c_str(), command};
    CHECK(ctl::run(static_cast<int>(arguments.size()), arguments.data(), out, err) == 1);
    CHECK(err.str().find("standard output") != std::string::npos);
  }
}

}  // namespace
}  // namespace evictd::ctl::command_line_test
