#include "kubelet/k3s.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::kubelet::k3s_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Tree;
using Words = std::vector<std::string>;

const Process k3s{.pid = 7, .program = "k3s", .arguments = {}, .unit = "k3s.service"};

fixture::Entry service(const std::string& arguments) {
  return dir("systemd",
             {dir("system", {file("k3s.service", "[Service]\nExecStart=/usr/local/bin/k3s " + arguments + "\n")})});
}

}  // namespace

TEST_CASE("k3s hands to its kubelet what its configuration and its command line say") {
  const Tree root{
      dir("etc",
          {service("server --kubelet-arg=max-pods=300 --kubelet-arg \"v=2\""),
           dir("rancher", {dir("k3s", {file("config.yaml", "token: secret\nkubelet-arg:\n- max-pods=200\n- gone=1\n"),
                                       dir("config.yaml.d",
                                           {file("50.yaml", "kubelet-arg+: [\"eviction-soft=memory.available<1Gi\"]\n"),
                                            file("40.yml", "kubelet-arg: max-pods=250\n"),
                                            file("60.txt", "kubelet-arg: none=1\n")})})})})};
  const auto found = fixture::value_of(find_k3s(k3s, root.path()));
  CHECK(found.is_whole);
  CHECK(found.arguments == Words{"--max-pods=250", "--eviction-soft=memory.available<1Gi", "--max-pods=300", "--v=2"});
  CHECK(found.drop_ins == root.path("var/lib/rancher/k3s/agent/etc/kubelet.conf.d"));
  CHECK(found.files.size() == 4);
}

TEST_CASE("k3s's data and its configuration may lie elsewhere") {
  const Tree configured{
      dir("etc", {service("agent"), dir("rancher", {dir("k3s", {file("config.yaml", "data-dir: /srv/k3s\n")})})})};
  CHECK(fixture::value_of(find_k3s(k3s, configured.path())).drop_ins ==
        configured.path("srv/k3s/agent/etc/kubelet.conf.d"));
  const Tree told{dir("etc", {service("server -d /data --config /etc/other.yaml"),
                              file("other.yaml", "data-dir: /srv/k3s\nkubelet-arg: [a=b]\n")})};
  const auto found = fixture::value_of(find_k3s(k3s, told.path()));
  CHECK(found.drop_ins == told.path("data/agent/etc/kubelet.conf.d"));
  CHECK(found.arguments == Words{"--a=b"});
}

TEST_CASE(
    "k3s's environment says where its configuration is, and what stands in the service or a file goes before it") {
  const auto in_service = [](const std::string& lines) {
    return dir("systemd", {dir("system", {file("k3s.service", "[Service]\n" + lines + "ExecStart=/k3s server\n"),
                                          file("k3s.service.env",
                                               "# ours\nOTHER='a b\nK3S_CONFIG_FILE=\"/etc/mine.yaml\"\n"
                                               "K3S_DATA_DIR=/env\n")})});
  };
  const std::string by_file =
      "EnvironmentFile=-/etc/default/%N\nEnvironmentFile=-/etc/systemd/system/%N.service.env\n"
      "Environment=K3S_CONFIG_FILE=/etc/wrong.yaml\n";
  const Tree root{dir("etc", {in_service(by_file), file("mine.yaml", "kubelet-arg: [a=b]\n")})};
  const auto found = fixture::value_of(find_k3s(k3s, root.path()));
  CHECK(found.is_whole);
  CHECK(found.arguments == Words{"--a=b"});
  CHECK(found.drop_ins == root.path("env/agent/etc/kubelet.conf.d"));
  CHECK(std::ranges::find(found.files, root.path("etc/systemd/system/k3s.service.env")) != found.files.end());

  const std::string inline_one = "Environment=A=$B \n Environment='K3S_CONFIG_FILE=/etc/mine.yaml' C=d\n";
  const Tree configured{
      dir("etc", {in_service(inline_one), file("mine.yaml", "data-dir: /srv\nkubelet-arg: [a=b]\n")})};
  CHECK(fixture::value_of(find_k3s(k3s, configured.path())).drop_ins ==
        configured.path("srv/agent/etc/kubelet.conf.d"));

  for (const std::string lines : {"Environment=K3S_CONFIG_FILE=/etc/gone.yaml\n", "Environment=K3S_CONFIG_FILE=%h/a\n",
                                  "EnvironmentFile=/etc/%i.env\n"}) {
    CAPTURE(lines);
    CHECK_FALSE(fixture::value_of(find_k3s(k3s, Tree{dir("etc", {in_service(lines)})}.path())).is_whole);
  }
}

TEST_CASE("without a service that says so it is not known what k3s was started with") {
  const Tree root{dir("etc", {service("server $ARGUMENTS")})};
  CHECK_FALSE(fixture::value_of(find_k3s(k3s, root.path())).is_whole);
  CHECK_FALSE(fixture::value_of(find_k3s({.pid = 7, .program = "k3s", .arguments = {}}, root.path())).is_whole);
}

TEST_CASE("a configuration of k3s that cannot be read is an error by its name") {
  const Tree root{
      dir("etc", {service("server"), dir("rancher", {dir("k3s", {file("config.yaml", "kubelet-arg: {a: b}\n")})})})};
  CHECK(fixture::error_of(find_k3s(k3s, root.path())).find("config.yaml:1") != std::string::npos);
}

}  // namespace evictd::kubelet::k3s_test
