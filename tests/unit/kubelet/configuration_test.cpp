#include "kubelet/configuration.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/threshold_overlay.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::kubelet::configuration_test {
namespace {

using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;
using BySignal = core::EvictionSettings::BySignal;

std::string document(const std::string& fields) {
  return "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + fields;
}

Process kubelet(std::vector<std::string> arguments) {
  return {.pid = 812, .program = "kubelet", .arguments = std::move(arguments)};
}

fixture::Entry below(std::vector<std::string> directories, std::vector<fixture::Entry> entries) {
  for (auto name = directories.rbegin(); name != directories.rend(); ++name) entries = {dir(*name, std::move(entries))};
  return entries.front();
}

}  // namespace

TEST_CASE("kubeadm's kubelet goes by its file, then its drop-ins in the order of their names, then its flags") {
  const Tree root{
      {dir("lib", {file("config.yaml", document("evictionHard: {memory.available: 200Mi, nodefs.available: 7%}\n"
                                                "maxPods: 99\ncgroupDriver: systemd\n"))}),
       dir("drop-ins", {file("20-b.conf", document("evictionHard: {memory.available: 300Mi}\n")),
                        file("10-a.conf", document("evictionHard: {memory.available: 250Mi,\n"
                                                   "  imagefs.available: 9%}\nmaxPods: 100\n")),
                        file("30-c.yaml", document("maxPods: 1\n"))})}};
  const auto loaded =
      value_of(load(kubelet({"--config=/lib/config.yaml", "--config-dir=/drop-ins", "--max-pods=110"}), root.path()));
  REQUIRE(loaded);
  CHECK(loaded->values.eviction.hard ==
        BySignal{{"memory.available", "300Mi"}, {"nodefs.available", "7%"}, {"imagefs.available", "9%"}});
  CHECK(loaded->values.max_pods == 110);
  CHECK(loaded->values.cgroup_driver == "systemd");
  const auto at = [&](const char* path) { return root.path(path).native(); };
  CHECK(loaded->documents == std::vector<std::string>{at("lib/config.yaml"), at("drop-ins/10-a.conf"),
                                                      at("drop-ins/20-b.conf"), "the flags of kubelet (pid 812)"});
  CHECK(loaded->files ==
        std::vector<std::filesystem::path>{at("lib/config.yaml"), at("drop-ins/10-a.conf"), at("drop-ins/20-b.conf")});
  CHECK(loaded->directories == std::vector<std::filesystem::path>{at("drop-ins")});
  const auto& origins = loaded->origins;
  CHECK(origins.at("evictionHard: memory.available") == at("drop-ins/20-b.conf") + ":3");
  CHECK(origins.at("evictionHard: nodefs.available") == at("lib/config.yaml") + ":3");
  CHECK(origins.at("evictionHard: imagefs.available") == at("drop-ins/10-a.conf") + ":4");
  CHECK(origins.at("maxPods") == "the flags of kubelet (pid 812)");
}

TEST_CASE("a flag's thresholds replace those of the files, all of them") {
  const Tree root{{file("config.yaml", document("evictionHard: {memory.available: 200Mi, nodefs.available: 7%}\n"))}};
  const auto loaded =
      value_of(load(kubelet({"--config=/config.yaml", "--eviction-hard=memory.available<5%"}), root.path()));
  REQUIRE(loaded);
  CHECK(loaded->values.eviction.hard == BySignal{{"memory.available", "5%"}});
  CHECK_FALSE(loaded->origins.contains("evictionHard: nodefs.available"));
}

TEST_CASE("null in a drop-in takes a whole field away, and what is left is what holds where nobody says anything") {
  const Tree root{{file("config.yaml", document("evictionSoft: {memory.available: 1Gi}\nmaxPods: 99\n"
                                                "evictionSoftGracePeriod: {memory.available: 1m}\n")),
                   dir("d", {file("1.conf", document("evictionHard: null\nevictionSoft: null\nmaxPods: null\n"
                                                     "enforceNodeAllocatable: [none]\n")),
                             file("2.conf", document("enforceNodeAllocatable: null\n"))})}};
  const auto loaded = value_of(load(kubelet({"--config=/config.yaml", "--config-dir=/d"}), root.path()));
  REQUIRE(loaded);
  CHECK(loaded->values.eviction.hard == BySignal{});
  CHECK(loaded->values.eviction.soft.empty());
  CHECK(loaded->values.max_pods == 110);
  CHECK(loaded->values.eviction.enforce_node_allocatable == std::vector<std::string>{"pods"});
  CHECK_FALSE(loaded->origins.contains("evictionSoft: memory.available"));
}

TEST_CASE("drop-ins behind a symbolic link are not read, for the kubelet does not follow it") {
  const Tree root{{dir("real", {file("1.conf", document("evictionHard: {pid.available: 9}\n"))})}};
  std::filesystem::create_directory_symlink(root.path("real"), root.path("link"));
  CHECK(value_of(load(kubelet({"--config-dir=/link"}), root.path()))->documents.empty());
  CHECK(value_of(load(kubelet({"--config-dir=/link/"}), root.path()))->values.eviction.hard ==
        BySignal{{"pid.available", "9"}});
}

TEST_CASE("a flag's feature gates come on top of those of the files, gate by gate") {
  const Tree root{{file("config.yaml", document("featureGates: {EventedPLEG: true, NodeSwap: true}\n"))}};
  const auto loaded =
      value_of(load(kubelet({"--config=/config.yaml", "--feature-gates=NodeSwap=false,Other=true"}), root.path()));
  REQUIRE(loaded);
  CHECK(loaded->values.feature_gates ==
        std::map<std::string, bool, std::less<>>{{"EventedPLEG", true}, {"NodeSwap", false}, {"Other", true}});
  CHECK(loaded->origins.contains("featureGates: EventedPLEG"));
}

TEST_CASE("without a file of --config there are no default thresholds: a drop-in's are all, and null takes one away") {
  const Tree root{{dir("d", {file("1.conf", document("evictionHard: {nodefs.available: 5%, imagefs.available: 10%}\n")),
                             file("2.conf", document("evictionHard: {imagefs.available: null}\n"))}),
                   dir("e", {file("1.conf", document("maxPods: 50\n"))})}};
  const auto hard = [&](const std::vector<std::string>& arguments) {
    return value_of(load(kubelet(arguments), root.path()))->values.eviction.hard;
  };
  CHECK(hard({"--config-dir=/d"}) == BySignal{{"nodefs.available", "5%"}});
  CHECK(hard({"--config-dir=/e"}) == BySignal{});
  CHECK(hard({"--eviction-soft=memory.available<1Gi", "--eviction-soft-grace-period=memory.available=1m"}) ==
        BySignal{});
  CHECK(value_of(load_files(std::nullopt, root.path("d").native())).values.eviction.hard ==
        BySignal{{"nodefs.available", "5%"}});
  // Of no kubelet.
  CHECK_FALSE(value_of(load_files(std::nullopt, std::nullopt)).values.eviction.hard);
}

TEST_CASE("a kubelet with neither file nor flags has no thresholds, and that is known") {
  const auto loaded = value_of(load(kubelet({"--kubeconfig=/k"}), "/"));
  REQUIRE(loaded);
  CHECK(loaded->values.eviction.hard == BySignal{});
  CHECK(loaded->documents ==
        std::vector<std::string>{"kubelet (pid 812), which has no --config, and so no default thresholds"});
}

TEST_CASE("the kubelet's defaults are filled in behind its file, before drop-ins and flags come on top") {
  const std::string merge = "mergeDefaultEvictionSettings: true\n";
  const Tree root{{file("plain.yaml", document("maxPods: 99\n")),
                   file("one.yaml", document("evictionHard: {pid.available: 9}\n")),
                   file("merged.yaml", document(merge + "evictionHard: {pid.available: 9}\n")),
                   dir("null", {file("1.conf", document("evictionHard: {imagefs.available: null}\n"))}),
                   dir("true", {file("1.conf", document(merge))}),
                   dir("false", {file("1.conf", document("mergeDefaultEvictionSettings: false\n"))})}};
  const auto hard = [&](const std::vector<std::string>& arguments) {
    return core::hard_in_force(value_of(load(kubelet(arguments), root.path()))->values.eviction);
  };
  auto all = core::default_hard_thresholds();
  CHECK(hard({"--config=/plain.yaml"}) == all);
  all.emplace("pid.available", "9");
  CHECK(hard({"--config=/merged.yaml"}) == all);
  CHECK(hard({"--config=/merged.yaml", "--config-dir=/false"}) == all);
  CHECK(hard({"--config=/merged.yaml", "--eviction-hard=memory.available<200Mi"}) ==
        BySignal{{"memory.available", "200Mi"}});
  CHECK(hard({"--config=/one.yaml", "--config-dir=/true"}) == BySignal{{"pid.available", "9"}});
  all.erase("imagefs.available");
  CHECK(hard({"--config=/merged.yaml", "--config-dir=/null"}) == all);
  all.erase("pid.available");
  CHECK(hard({"--config=/plain.yaml", "--config-dir=/null"}) == all);
}

TEST_CASE("what cannot be found is told, and is no reason for the defaults") {
  const Tree root;
  const auto why = [&](const std::vector<std::string>& arguments) {
    const auto loaded = value_of(load(kubelet(arguments), root.path()));
    return loaded ? "found" : loaded.error().why;
  };
  CHECK(why({"--config=/gone.yaml"}) == "kubelet (pid 812) has its configuration in /gone.yaml, which is not there");
  CHECK(why({"--config=here.yaml"}) == "kubelet (pid 812) has its configuration in here.yaml, which is not there");
  CHECK(why({"--config-dir=/gone"}) == "kubelet (pid 812) has drop-ins in /gone, which is not there");
  const auto k3s = value_of(load({.pid = 7, .program = "k3s", .arguments = {}}, root.path()));
  REQUIRE_FALSE(k3s);
  CHECK(k3s.error().why == "k3s (pid 7) runs a kubelet, and " +
                               root.path("var/lib/rancher/k3s/agent/etc/kubelet.conf.d").native() + " is not there");
  const auto kubelite = value_of(load({.pid = 7, .program = "kubelite", .arguments = {}}, root.path()));
  REQUIRE_FALSE(kubelite);
  CHECK(kubelite.error().why == "kubelite (pid 7) does not say where its kubelet's flags are");
}

TEST_CASE("k3s: its drop-ins, and what it hands to its kubelet") {
  const Tree root{
      {below({"var", "lib", "rancher", "k3s", "agent", "etc", "kubelet.conf.d"},
             {file("00-k3s-defaults.conf", document("evictionHard: {imagefs.available: 5%, nodefs.available: 5%}\n"
                                                    "evictionMinimumReclaim: {nodefs.available: 10%}\n"))}),
       below({"etc", "systemd", "system"},
             {file("k3s.service",
                   "ExecStart=/usr/local/bin/k3s \\\n server \\\n"
                   " '--kubelet-arg=eviction-soft=memory.available<1Gi' \\\n"
                   " '--kubelet-arg=eviction-soft-grace-period=memory.available=1m'\n")})}};
  Process k3s{.pid = 7, .program = "k3s", .arguments = {}, .unit = "k3s.service"};
  const auto loaded = value_of(load(k3s, root.path()));
  REQUIRE(loaded);
  CHECK(loaded->values.eviction.hard == BySignal{{"imagefs.available", "5%"}, {"nodefs.available", "5%"}});
  CHECK(loaded->values.eviction.minimum_reclaim == BySignal{{"nodefs.available", "10%"}});
  CHECK(loaded->values.eviction.soft == BySignal{{"memory.available", "1Gi"}});
  CHECK(loaded->origins.at("evictionSoft: memory.available") == "the flags of k3s (pid 7)");
  CHECK(loaded->directories == std::vector<std::filesystem::path>{*find_rancher_drop_ins(root.path())});
  CHECK_FALSE(find_rancher_drop_ins(Tree{}.path()));

  k3s.unit.clear();
  const auto without = value_of(load(k3s, root.path()));
  REQUIRE_FALSE(without);
  CHECK(without.error().why ==
        "k3s (pid 7) hides its command line, and no service of systemd says what it was started with");
}

TEST_CASE("RKE2 and k0s start a kubelet that says where its configuration is") {
  const Tree root{
      dir("var",
          {dir("lib",
               {below({"rancher", "rke2", "agent", "etc", "kubelet.conf.d"},
                      {file("00-rke2-defaults.conf", document("evictionHard: {imagefs.available: 5%}\n"))}),
                dir("k0s", {file("kubelet-config.yaml", document("evictionHard: {memory.available: 300Mi}\n"))})})})};
  const auto rke2 = value_of(load(kubelet({"--volume-plugin-dir=/var/lib/kubelet/volumeplugins",
                                           "--config-dir=/var/lib/rancher/rke2/agent/etc/kubelet.conf.d",
                                           "--eviction-minimum-reclaim=imagefs.available=10%"}),
                                  root.path()));
  REQUIRE(rke2);
  CHECK(rke2->values.eviction.hard->at("imagefs.available") == "5%");
  CHECK(rke2->values.eviction.minimum_reclaim == BySignal{{"imagefs.available", "10%"}});
  const auto k0s =
      value_of(load(kubelet({"--cert-dir=/var/lib/k0s/kubelet/pki", "--config=/var/lib/k0s/kubelet-config.yaml",
                             "--container-runtime-endpoint=unix:///run/k0s/containerd.sock"}),
                    root.path()));
  REQUIRE(k0s);
  CHECK(k0s->values.eviction.hard == BySignal{{"memory.available", "300Mi"}});
  CHECK(k0s->values.container_runtime_endpoint == "unix:///run/k0s/containerd.sock");
}

TEST_CASE("a kubelet that answers says all that it goes by, its defaults among them") {
  const std::string address = "https://127.0.0.1:10250/configz";
  const auto loaded = value_of(parse_configz(
      R"({"kubeletconfig": {"enableServer": true, "evictionHard": {"memory.available": "100Mi"}, "maxPods": 60,
          "evictionPressureTransitionPeriod": "5m0s", "imageMinimumGCAge": "3m0s", "syncFrequency": "1m0s"}})",
      address));
  CHECK(loaded.values.eviction.hard == BySignal{{"memory.available", "100Mi"}});
  CHECK(loaded.values.max_pods == 60);
  CHECK(loaded.values.image_minimum_gc_age == std::chrono::minutes(3));
  CHECK(loaded.origins.at("evictionHard: memory.available") == address);
  CHECK(loaded.documents == std::vector{address});
  CHECK(value_of(parse_configz(R"({"kubeletconfig": {"mergeDefaultEvictionSettings": true}})", address))
            .values.eviction.hard == BySignal{});
  const auto merged = value_of(parse_configz(
      R"({"kubeletconfig": {"mergeDefaultEvictionSettings": true, "evictionHard": {"pid.available": "9"}}})", address));
  CHECK(core::hard_in_force(merged.values.eviction) == BySignal{{"pid.available", "9"}});
  CHECK(error_of(parse_configz("{}", address)) == address + ": has no kubeletconfig");
  CHECK(error_of(parse_configz("<html>", address)).starts_with(address + ": is not JSON"));
  CHECK(error_of(parse_configz("[]", address)).starts_with(address));
  CHECK(error_of(parse_configz(R"({"kubeletconfig": {"evictionHard": {"memory.available": "5x"}}})", address))
            .starts_with(address));
}

TEST_CASE("what would hold evictd up, or is no configuration, is an error by its name") {
  const Tree root{{dir("pipes"), dir("large", {file("1.conf", std::string(std::size_t{2} << 20, '#'))})}};
  const auto pipe = root.path("pipes/1.conf");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  // In a directory it is passed over.
  CHECK(value_of(load(kubelet({"--config-dir=/pipes"}), root.path()))->documents.empty());
  CHECK(error_of(load(kubelet({"--config=/pipes/1.conf"}), root.path())) == pipe.native() + ": is no regular file");
  CHECK(error_of(load(kubelet({"--config-dir=/large"}), root.path()))
            .starts_with(root.path("large/1.conf").native() + ": "));
  const auto process = Process{.pid = 812, .program = "kubelet", .arguments = {}, .unusable = "runs elsewhere"};
  CHECK(value_of(load(process, root.path())).error().why == "kubelet (pid 812) runs elsewhere");
}

TEST_CASE("MicroK8s keeps its kubelet's flags in a file") {
  const Tree root{{below({"var", "snap", "microk8s", "current", "args"},
                         {file("kubelet",
                               "# comment\n--eviction-hard=\"memory.available<100Mi,nodefs.available<1Gi\"\n"
                               "--container-runtime-endpoint=${SNAP_COMMON}/run/containerd.sock\n"
                               "--root-dir=${SNAP_COMMON}/var/lib/kubelet\n")})}};
  const auto loaded = value_of(
      load({.pid = 9,
            .program = "kubelite",
            .arguments = {"--kubelet-args-file=/var/snap/microk8s/current/args/kubelet", "--start-control-plane"}},
           root.path()));
  REQUIRE(loaded);
  CHECK(loaded->values.eviction.hard == BySignal{{"memory.available", "100Mi"}, {"nodefs.available", "1Gi"}});
  CHECK(loaded->values.container_runtime_endpoint == "/var/snap/microk8s/common/run/containerd.sock");
}

TEST_CASE("a document that cannot be right is an error by its name and line, whichever it is") {
  const Tree root{{file("config.yaml", document("evictionHard: {memory.available: 5x}\n")),
                   dir("d", {file("1.conf", document("\nevictionSoft: {memory.available: 1Gi}\n"))}),
                   dir("e", {file("1.conf", "kind: Pod\n")})}};
  CHECK(error_of(load(kubelet({"--config=/config.yaml"}), root.path())).find("config.yaml:3: evictionHard: ") !=
        std::string::npos);
  CHECK(error_of(load(kubelet({"--config-dir=/d"}), root.path())).find("d/1.conf:4: evictionSoft: ") !=
        std::string::npos);
  CHECK(error_of(load(kubelet({"--config-dir=/e"}), root.path())).find("e/1.conf:1") != std::string::npos);
  CHECK(error_of(load(kubelet({"--eviction-hard=memory.available<5x"}), root.path()))
            .starts_with("the flags of kubelet (pid 812): evictionHard: memory.available"));
}

}  // namespace evictd::kubelet::configuration_test
