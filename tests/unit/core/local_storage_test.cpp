#include "core/local_storage.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::core::local_storage_test {
namespace {

using fixture::container;
using fixture::empty_dir;
using fixture::pod;
using fixture::sidecar;
using fixture::operator""_GiB;
using fixture::operator""_MiB;
using Limit = LocalStorageLimit;

constexpr FilesystemLayout single{};
constexpr FilesystemLayout dedicated{.dedicated_imagefs = true};

Container limited(std::string name, const char* limit) {
  return container(std::move(name), {}, {{"ephemeral-storage", limit}});
}

PodUsage disk(std::string container, std::int64_t rootfs, std::int64_t logs) {
  PodUsage usage;
  usage.containers = {{.name = std::move(container), .rootfs = {.bytes = rootfs}, .logs = {.bytes = logs}}};
  return usage;
}

PodUsage ephemeral(std::int64_t bytes) {
  PodUsage usage;
  usage.ephemeral = bytes;
  return usage;
}

PodUsage volumes(std::map<std::string, DiskUsage, std::less<>> measured) {
  PodUsage usage;
  usage.volumes = std::move(measured);
  return usage;
}

Pod with_volumes(std::vector<Volume> volumes) {
  auto result = pod("a");
  result.volumes = std::move(volumes);
  return result;
}

}  // namespace

TEST_CASE("the limits have the kubelet's metric names") {
  CHECK(name(Limit::EmptyDir) == "emptydirfs.limit");
  CHECK(name(Limit::Pod) == "ephemeralpodfs.limit");
  CHECK(name(Limit::Container) == "ephemeralcontainerfs.limit");
}

TEST_CASE("an emptyDir beyond its size limit is a violation, one at its limit is none") {
  const auto cache = with_volumes({empty_dir("cache", "100Mi")});
  CHECK(first_violation(cache, volumes({{"cache", {.bytes = 100_MiB + 1}}}), single) ==
        LimitViolation{Limit::EmptyDir, "Usage of EmptyDir volume \"cache\" exceeds the limit \"100Mi\". "});
  CHECK_FALSE(first_violation(cache, volumes({{"cache", {.bytes = 100_MiB}}}), single));
}

TEST_CASE("an emptyDir in memory has its limit too") {
  CHECK(first_violation(with_volumes({empty_dir("tmpfs", "1Mi", "Memory")}), volumes({{"tmpfs", {.bytes = 2_MiB}}}),
                        single));
}

TEST_CASE("an emptyDir without a limit, with a limit of zero, or of unknown usage is no violation") {
  const auto used = volumes({{"cache", {.bytes = 1_GiB}}});
  CHECK_FALSE(first_violation(with_volumes({empty_dir("cache")}), used, single));
  CHECK_FALSE(first_violation(with_volumes({empty_dir("cache", "0")}), used, single));
  CHECK_FALSE(first_violation(with_volumes({empty_dir("cache", "1Mi")}), volumes({}), single));
  CHECK_FALSE(first_violation(with_volumes({empty_dir("cache", "1Mi")}), volumes({{"cache", {.inodes = 5}}}), single));
}

TEST_CASE("of several emptyDirs the first of the spec is named") {
  const auto two = with_volumes({empty_dir("z", "1Mi"), empty_dir("a", "1Mi")});
  CHECK(first_violation(two, volumes({{"a", {.bytes = 2_MiB}}, {"z", {.bytes = 2_MiB}}}), single)
            ->message.find("\"z\"") != std::string::npos);
}

TEST_CASE("the containers' limits together bound the pod's ephemeral storage") {
  const auto two = pod("a", {limited("x", "100Mi"), limited("y", "200Mi"), container("z")});
  CHECK_FALSE(first_violation(two, ephemeral(300_MiB), single));
  CHECK(first_violation(two, ephemeral(300_MiB + 1), single) ==
        LimitViolation{Limit::Pod, "Pod ephemeral local storage usage exceeds the total limit of containers 300Mi. "});
  CHECK_FALSE(first_violation(two, {}, single));
}

TEST_CASE("the pod's limit counts sidecars and the largest init container as requests do, and overhead") {
  auto x = pod("a", {limited("x", "100Mi")});
  x.init_containers = {sidecar("s", {}, {{"ephemeral-storage", "50Mi"}}), limited("i", "80Mi")};
  CHECK_FALSE(first_violation(x, ephemeral(150_MiB), single));
  CHECK(first_violation(x, ephemeral(150_MiB + 1), single));
  x.overhead = fixture::amounts({{"ephemeral-storage", "10Mi"}});
  CHECK_FALSE(first_violation(x, ephemeral(160_MiB), single));
}

TEST_CASE("without any container's limit the pod has none; a limit of zero is one") {
  CHECK_FALSE(first_violation(pod("a"), ephemeral(1_GiB), single));
  const auto zero = pod("a", {limited("x", "0")});
  CHECK(first_violation(zero, ephemeral(1), single)->limit == Limit::Pod);
  CHECK_FALSE(first_violation(zero, ephemeral(0), single));
  CHECK(has_local_storage_limits(zero));
}

TEST_CASE("a container's own limit bounds its logs and, but for a dedicated imagefs, its writable layer") {
  const auto x = pod("a", {limited("x", "100Mi"), limited("y", "1Gi")});
  const auto used = disk("x", 60_MiB, 60_MiB);
  CHECK(first_violation(x, used, single) ==
        LimitViolation{Limit::Container, "Container x exceeded its local ephemeral storage limit \"100Mi\". "});
  CHECK_FALSE(first_violation(x, used, dedicated));
  CHECK(first_violation(x, disk("x", 0, 101_MiB), dedicated));
  CHECK_FALSE(first_violation(x, disk("x", 50_MiB, 50_MiB), single));
  CHECK_FALSE(first_violation(x, disk("unknown", 2_GiB, 2_GiB), single));
}

TEST_CASE("a container without a limit, or with one of zero, has no limit of its own") {
  CHECK_FALSE(first_violation(pod("a", {container("x"), limited("y", "1Gi")}), disk("x", 2_GiB, 2_GiB), single));
  CHECK_FALSE(first_violation(pod("a", {limited("x", "0")}), disk("x", 2_GiB, 2_GiB), single));
}

TEST_CASE("an emptyDir is looked at before the pod, the pod before its containers") {
  auto all = pod("a", {limited("x", "1Mi")});
  all.volumes = {empty_dir("cache", "1Mi")};
  auto used = disk("x", 2_MiB, 0);
  CHECK(first_violation(all, used, single)->limit == Limit::Container);
  used.ephemeral = 2_MiB;
  CHECK(first_violation(all, used, single)->limit == Limit::Pod);
  used.volumes = {{"cache", {.bytes = 2_MiB}}};
  CHECK(first_violation(all, used, single)->limit == Limit::EmptyDir);
}

TEST_CASE("a critical pod is never a violator") {
  const auto critical = fixture::with_priority(pod("a", {limited("x", "1Mi")}), system_critical_priority);
  CHECK_FALSE(first_violation(critical, ephemeral(1_GiB), single));
}

TEST_CASE("pods without limits need not be measured") {
  CHECK_FALSE(
      has_local_storage_limits(pod("a", {container("x", {{"ephemeral-storage", "1Gi"}}, {{"memory", "1Gi"}})})));
  CHECK_FALSE(has_local_storage_limits(with_volumes({empty_dir("cache"), empty_dir("none", "0")})));
  CHECK(has_local_storage_limits(with_volumes({empty_dir("cache", "1Mi")})));
  CHECK(has_local_storage_limits(pod("a", {limited("x", "1Mi")})));
  auto init = pod("a");
  init.init_containers = {limited("i", "1Mi")};
  CHECK(has_local_storage_limits(init));
}

}  // namespace evictd::core::local_storage_test
