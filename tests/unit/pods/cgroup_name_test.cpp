#include "pods/cgroup_name.hpp"

#include <doctest/doctest.h>

#include <ostream>

namespace evictd::pods::cgroup_name_test {

using namespace evictd::pods;
using evictd::core::QosClass;

namespace {

struct Case {
  std::string_view parent;
  std::string_view uid;
  std::string_view path;
  QosClass qos;
};

}  // namespace

TEST_CASE("a pod's cgroup tells its QoS class, with cgroupfs and with systemd") {
  for (const auto& [parent, uid, path, qos] : std::vector<Case>{
           {"/kubepods/burstable/pod12-34", "12-34", "/kubepods/burstable/pod12-34", QosClass::Burstable},
           {"/kubepods/besteffort/pod12-34", "12-34", "/kubepods/besteffort/pod12-34", QosClass::BestEffort},
           {"/kubepods/pod12-34", "12-34", "/kubepods/pod12-34", QosClass::Guaranteed},
           {"/kubepods/burstable/pod12-34/", "12-34", "/kubepods/burstable/pod12-34", QosClass::Burstable},
           {"/lab/node/kubepods/burstable/pod5", "5", "/lab/node/kubepods/burstable/pod5", QosClass::Burstable},
           {"kubepods-burstable-pod12_34.slice", "12-34",
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice", QosClass::Burstable},
           {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod12_34.slice", "12-34",
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod12_34.slice", QosClass::BestEffort},
           {"kubepods-pod12_34.slice", "12-34", "/kubepods.slice/kubepods-pod12_34.slice", QosClass::Guaranteed},
           {"lab-kubepods-burstable-pod5.slice", "5",
            "/lab.slice/lab-kubepods.slice/lab-kubepods-burstable.slice/lab-kubepods-burstable-pod5.slice",
            QosClass::Burstable},
       }) {
    CAPTURE(parent);
    const auto cgroup = pod_cgroup(parent, uid);
    REQUIRE(cgroup);
    CHECK(cgroup->path == path);
    CHECK(cgroup->qos == qos);
  }
}

TEST_CASE("a cgroup that is not the pod's alone is not the pod's cgroup") {
  for (const auto* parent : {"",
                             "/",
                             "//",
                             "/kubepods",
                             "/kubepods/burstable",
                             "/kubepods/burstable/pod",
                             "/kubepods/burstable/pod99",
                             "/kubepods/burstable/pod12-34x",
                             "/kubepods/burstable/xpod12-34",
                             "kubepods/burstable/pod12-34",
                             "pod12-34",
                             "/kubepods/../pod12-34",
                             "/kubepods//pod12-34",
                             "/./pod12-34",
                             "/kubepods/burstable/pod12-34/..",
                             "system.slice",
                             "kubepods-burstable.slice",
                             "kubepods-burstable-pod99.slice",
                             "kubepods-burstable-pod12-34.slice",
                             "kubepods--pod12_34.slice",
                             "-pod12_34.slice",
                             "pod12_34.slice"}) {
    CAPTURE(parent);
    CHECK_FALSE(pod_cgroup(parent, "12-34"));
  }
  CHECK_FALSE(pod_cgroup("/kubepods/burstable/pod", ""));
  CHECK_FALSE(pod_cgroup("/kubepods/pod12/34", "12/34"));
}

TEST_CASE("a container's cgroup follows from the OCI cgroupsPath") {
  CHECK(container_cgroup("/kubepods/burstable/pod5/abc") == "/kubepods/burstable/pod5/abc");
  CHECK(container_cgroup("/k8s.io/abc") == "/k8s.io/abc");
  CHECK(container_cgroup("kubepods-burstable-pod5.slice:cri-containerd:abc") ==
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5.slice/cri-containerd-abc.scope");
  CHECK(container_cgroup("system.slice::abc") == "/system.slice/abc.scope");
  for (const auto* path : {"", "/", "abc", "../abc", "/kubepods/../../abc", "a.slice:b", ":cri:abc",
                           "a.slice:cri:", "a:cri:abc", "a.slice:cri:x/y", "a.slice:cri:x:y"}) {
    CAPTURE(path);
    CHECK(container_cgroup(path).empty());
  }
}

TEST_CASE("a slice lies in the slices its name begins with") {
  CHECK(expand_slice("a.slice") == "/a.slice");
  CHECK(expand_slice("a-b-c.slice") == "/a.slice/a-b.slice/a-b-c.slice");
  for (const auto* name : {"", ".slice", "-.slice", "-a.slice", "a-.slice", "a--b.slice", "a/b.slice", "a.scope"}) {
    CAPTURE(name);
    CHECK(expand_slice(name).empty());
  }
}

TEST_CASE("names with control bytes in them name no cgroup") {
  using namespace std::string_literals;
  for (const auto& parent : {"/kubepods/burstable\0/pod12-34"s, "/kubepods\n/pod12-34"s, "/kubepods/\0"s,
                             "/kubepods/burstable\0.slice/pod12-34"s, "\0/pod12-34"s}) {
    CAPTURE(parent);
    CHECK_FALSE(pod_cgroup(parent, "12-34"));
    CHECK(container_cgroup(parent).empty());
  }
  CHECK_FALSE(pod_cgroup("/kubepods/pod\0x"s, "\0x"s));
  CHECK_FALSE(pod_cgroup("kubepods\0-pod5.slice"s, "5"));
  CHECK(container_cgroup("kubepods\0.slice:cri:abc"s).empty());
  CHECK(container_cgroup("kubepods.slice:cri\0:abc"s).empty());
  CHECK(container_cgroup("kubepods.slice:cri:abc\0"s).empty());
  CHECK(container_cgroup("kubepods.slice:../..:abc"s).empty());
  CHECK(container_cgroup("kubepods.slice:../..:../abc"s).empty());
  CHECK_FALSE(uid_in_cgroup_name("pod\x1b[2J"));
  CHECK_FALSE(uid_in_cgroup_name("pod\xff"));
  CHECK_FALSE(uid_in_cgroup_name("kubepods-podx\n.slice"));
}

TEST_CASE("a slice's name fits uids with '_' and with '-', a name of cgroupfs only its own") {
  const auto slice = named_uid("kubepods-burstable-poda_b_c.slice");
  REQUIRE(slice);
  CHECK(slice->uid == "a-b-c");
  for (const auto* uid : {"a-b-c", "a_b_c", "a_b-c"}) CHECK(slice->is_of(uid));
  for (const auto* uid : {"a-b", "a-b-c-", "", "a.b.c"}) CHECK_FALSE(slice->is_of(uid));
  CHECK(escaped_uid("a_b-c") == "a_b_c");

  const auto plain = named_uid("poda_b");
  REQUIRE(plain);
  CHECK(plain->is_of("a_b"));
  CHECK_FALSE(plain->is_of("a-b"));
}

TEST_CASE("below a cgroup is what lies in it, by a path that leads nowhere else") {
  CHECK(is_below("/kubepods/pod5", "/kubepods"));
  CHECK(is_below("/kubepods/burstable/pod5/abc", "/kubepods"));
  CHECK(is_below("/lab/kubepods.slice/x.slice", "/lab/kubepods.slice"));
  using namespace std::string_literals;
  for (const auto& cgroup : {""s, "/"s, "/kubepods"s, "/kubepods/"s, "/kubepodsx/pod5"s, "/system.slice/pod5"s,
                             "/kubepods/../system.slice"s, "/kubepods/./pod5"s, "/kubepods//pod5"s, "/kubepods/.."s,
                             "kubepods/pod5"s, "/kubepods/\0/pod5"s, "/kubepods/\0"s, "/kubepods\0/pod5"s}) {
    CAPTURE(cgroup);
    CHECK_FALSE(is_below(cgroup, "/kubepods"));
  }
  for (const auto* parent : {"", "/", "/kubepods/", "kubepods", "/kubepods/.."}) {
    CAPTURE(parent);
    CHECK_FALSE(is_below("/kubepods/../pod5", parent));
    CHECK_FALSE(is_below("/kubepods/pod5", parent));
  }
}

}  // namespace evictd::pods::cgroup_name_test
