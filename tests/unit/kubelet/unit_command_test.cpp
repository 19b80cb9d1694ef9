#include "kubelet/unit_command.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "fixture/tree.hpp"

namespace evictd::kubelet::unit_command_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Tree;
using Words = std::vector<std::string>;

/// The arguments in a service with this text.
std::optional<Words> arguments_of(const std::string& text) {
  const Tree root{dir("etc", {dir("systemd", {dir("system", {file("a.service", text)})})})};
  const auto command = command_of("a.service", root.path());
  return command ? std::optional{command->arguments} : std::nullopt;
}

}  // namespace

TEST_CASE("a service's command goes on behind a backslash, and quotes keep words together") {
  CHECK(arguments_of("[Unit]\nDescription=k3s\n[Service]\nExecStart=/usr/local/bin/k3s \\\n    server \\\n"
                     "# a word between\n\t'--kubelet-arg=eviction-hard=memory.available<1Gi' \\\n"
                     "  \"--node-label=a b\"\n\nKillMode=process\n") ==
        Words{"server", "--kubelet-arg=eviction-hard=memory.available<1Gi", "--node-label=a b"});
}

TEST_CASE("percent and dollar signs stand for themselves, twice or where nothing could be meant") {
  CHECK(arguments_of("ExecStart=/k3s a<10%% 'b<5%' c$$ d<5%,e\n") == Words{"a<10%", "b<5%", "c$", "d<5%,e"});
  CHECK(arguments_of("ExecStart=/k3s \"\" a\\\\b c\\sd\n") == Words{"", "a\\b", "c d"});
}

TEST_CASE("what only systemd knows is not guessed") {
  for (const auto* text : {"ExecStart=/k3s $K3S_ARGS\n", "ExecStart=/k3s ${A}\n", "ExecStart=/k3s %i\n",
                           "ExecStart=/k3s \\x20\n", "ExecStart=/k3s 'open\n", "ExecStart=\n", ""}) {
    CAPTURE(text);
    CHECK_FALSE(arguments_of(text));
  }
  CHECK_FALSE(command_of("", Tree{}.path()));
  CHECK_FALSE(command_of("b.service", Tree{}.path()));
}

TEST_CASE("of several files the first in systemd's order counts, and the drop-ins come upon it") {
  const Tree root{
      {dir("etc",
           {dir("systemd",
                {dir("system", {dir("a.service.d", {file("20-b.conf", "[Service]\nExecStart=\nExecStart=/k3s agent\n"),
                                                    file("10-a.conf", "[Service]\nExecStart = /k3s server\n"),
                                                    file("README", "ExecStart=/wrong\n")})})})}),
       dir("usr",
           {dir("lib", {dir("systemd", {dir("system", {file("a.service", "[Service]\nExecStart=/k3s\n")})})})})}};
  const auto command = command_of("a.service", root.path());
  REQUIRE(command);
  CHECK(command->arguments == Words{"agent"});
  CHECK(command->files == std::vector<std::filesystem::path>{root.path("usr/lib/systemd/system/a.service"),
                                                             root.path("etc/systemd/system/a.service.d/10-a.conf"),
                                                             root.path("etc/systemd/system/a.service.d/20-b.conf")});
  root.remove("usr/lib/systemd/system/a.service");
  CHECK_FALSE(command_of("a.service", root.path()));
}

}  // namespace evictd::kubelet::unit_command_test
