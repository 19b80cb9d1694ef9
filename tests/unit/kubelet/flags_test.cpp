#include "kubelet/flags.hpp"

#include <doctest/doctest.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <vector>

namespace evictd::kubelet::flags_test {
namespace {

std::string fields_of(const std::vector<std::string>& arguments) {
  const auto flags = parse_flags(arguments);
  return flags.fields ? boost::json::serialize(*flags.fields) : "none";
}

}  // namespace

TEST_CASE("where a kubelet's files are is told with one word or with two") {
  const auto flags = parse_flags(
      std::vector<std::string>{"--bootstrap-kubeconfig=/etc/b", "--config=/a", "--config-dir", "/b", "-v", "2"});
  CHECK(flags.config == "/a");
  CHECK(flags.drop_ins == "/b");
  CHECK_FALSE(flags.arguments_file);
  CHECK_FALSE(flags.fields);
}

TEST_CASE("thresholds are read as the kubelet's flags have them") {
  CHECK(fields_of({"--eviction-hard=memory.available<500Mi,nodefs.available<10%"}) ==
        R"({"evictionHard":{"memory.available":"500Mi","nodefs.available":"10%"}})");
  CHECK(fields_of({"--eviction-soft", "memory.available<1Gi", "--eviction-soft-grace-period=memory.available=90s",
                   "--eviction-minimum-reclaim", "nodefs.available=5%"}) ==
        R"({"evictionSoft":{"memory.available":"1Gi"},"evictionSoftGracePeriod":{"memory.available":"90s"},)"
        R"("evictionMinimumReclaim":{"nodefs.available":"5%"}})");
  CHECK(fields_of({"--eviction-hard=memory.available<1Mi", "--eviction-hard= nodefs.available < 2% "}) ==
        R"({"evictionHard":{"memory.available":"1Mi","nodefs.available":"2%"}})");
  CHECK(fields_of({"--eviction-hard="}) == R"({"evictionHard":{}})");  // none at all
}

TEST_CASE("numbers, switches and lists have their types") {
  CHECK(fields_of({"--max-pods=250", "--kernel-memcg-notification", "--local-storage-capacity-isolation=false",
                   "--enforce-node-allocatable=pods,kube-reserved", "--cgroup-driver=systemd",
                   "--minimum-image-ttl-duration", "72h"}) ==
        R"({"maxPods":250,"kernelMemcgNotification":true,"localStorageCapacityIsolation":false,)"
        R"("enforceNodeAllocatable":["pods","kube-reserved"],"cgroupDriver":"systemd","imageMinimumGCAge":"72h"})");
}

TEST_CASE(
    "a kubelet that leaves evictions out of what is allocatable copies no threshold to it, whatever it enforces") {
  const std::string enforce = "--enforce-node-allocatable=pods";
  const std::string ignore = "--experimental-allocatable-ignore-eviction";
  CHECK(fields_of({ignore, enforce}) == R"({"enforceNodeAllocatable":[]})");
  CHECK(fields_of({enforce, ignore + "=true"}) == R"({"enforceNodeAllocatable":[]})");
  CHECK(fields_of({ignore, enforce, ignore + "=false"}) == R"({"enforceNodeAllocatable":["pods"]})");
}

TEST_CASE("feature gates are switches by name, and those of several flags add up") {
  CHECK(fields_of({"--feature-gates=EventedPLEG=true,AllAlpha=false", "--feature-gates", "NodeSwap=true"}) ==
        R"({"featureGates":{"EventedPLEG":true,"AllAlpha":false,"NodeSwap":true}})");
}

TEST_CASE("switches are what Go takes for true and false, and names may have underscores") {
  CHECK(fields_of({"--kernel-memcg-notification=False", "--local-storage-capacity-isolation=F"}) ==
        R"({"kernelMemcgNotification":false,"localStorageCapacityIsolation":false})");
  CHECK(fields_of({"--kernel-memcg-notification=T", "--local-storage-capacity-isolation=no"}) ==
        R"({"kernelMemcgNotification":true})");
  CHECK(fields_of({"--feature-gates=EventedPLEG=FALSE,NodeSwap=t,Odd=odd"}) ==
        R"({"featureGates":{"EventedPLEG":false,"NodeSwap":true}})");
  CHECK(fields_of({"--eviction_hard=memory.available<1Gi"}) == R"({"evictionHard":{"memory.available":"1Gi"}})");
  CHECK(parse_flags(std::vector<std::string>{"--config_dir=/d"}).drop_ins == "/d");
}

TEST_CASE("reserved memory and taints have a form of their own") {
  CHECK(fields_of({"--reserved-memory=0:memory=1124Mi,hugepages-2Mi=4Mi;1:memory=2Gi", "--reserved-memory",
                   "2:memory=1Gi", "--reserved-memory=x:memory=1Gi;3"}) ==
        R"({"reservedMemory":[{"numaNode":0,"limits":{"memory":"1124Mi","hugepages-2Mi":"4Mi"}},)"
        R"({"numaNode":1,"limits":{"memory":"2Gi"}},{"numaNode":2,"limits":{"memory":"1Gi"}}]})");
  CHECK(fields_of({"--register-with-taints=old:NoExecute", "--register-with-taints=a=b:NoSchedule,c:NoExecute"}) ==
        R"({"registerWithTaints":[{"key":"a","value":"b","effect":"NoSchedule"},{"key":"c","effect":"NoExecute"}]})");
}

TEST_CASE("what is malformed or none of evictd's business is passed over") {
  CHECK(fields_of({"--max-pods=many", "word", "--", "--node-ip", "10.0.0.1", "--eviction-hard"}) ==
        R"({"evictionHard":{}})");
  CHECK(fields_of({}) == "none");
  CHECK(fields_of({"", "-", "=", "--=x"}) == "none");
}

}  // namespace evictd::kubelet::flags_test
