#include "admission/apparmor_handler.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::admission::apparmor_handler_test {
namespace {

using core::AppArmorProfile;

const AppArmorSupport supported{.enabled = true};

Verdict admit(const core::Pod& pod, const AppArmorSupport& support = supported) {
  const NodeSnapshot node{.app_armor = support};
  return AppArmorHandler{}.admit({.pod = pod, .other_pods = {}, .node = node});
}

Verdict rejected(const std::string& error) { return Verdict::reject("AppArmor", "Cannot enforce AppArmor: " + error); }

const auto plain = fixture::pod("a", {fixture::container("main"), fixture::container("side")});

core::Pod with_profile(AppArmorProfile profile) {
  auto pod = plain;
  pod.app_armor_profile = std::move(profile);
  return pod;
}

core::Pod with_container_profile(AppArmorProfile profile) {
  auto pod = plain;
  pod.containers[1].app_armor_profile = std::move(profile);
  return pod;
}

core::Pod annotated(const std::string& container, const std::string& profile) {
  return fixture::with_annotation(plain, "container.apparmor.security.beta.kubernetes.io/" + container, profile);
}

const std::string not_enabled = "AppArmor is not enabled on the host";
const auto nameless =
    rejected(R"(invalid empty AppArmor profile name: "&AppArmorProfile{Type:Localhost,LocalhostProfile:*,}")");

}  // namespace

TEST_CASE("a pod that is not to be confined runs on any host") {
  for (const auto& pod : {plain, with_profile({.type = "Unconfined"}), with_container_profile({.type = "Unconfined"}),
                          annotated("main", "unconfined")})
    CHECK(admit(pod, {}) == Verdict::admit());
}

TEST_CASE("a pod that is to be confined needs a host that can do it") {
  auto init = plain;
  init.init_containers = {fixture::container("setup")};
  init.init_containers[0].app_armor_profile = AppArmorProfile{.type = "RuntimeDefault"};
  for (const auto& pod :
       {with_profile({.type = "RuntimeDefault"}), with_container_profile({.type = "RuntimeDefault"}),
        with_profile({.type = "Localhost", .localhost_profile = "web"}), init, annotated("main", "runtime/default"),
        annotated("side", "localhost/web"), annotated("gone", "runtime/default"), annotated("main", "nonsense"),
        annotated("main", ""), with_profile({})}) {
    CHECK(admit(pod, {}) == rejected(not_enabled));
    CHECK(admit(pod, {.enabled = true, .error = "error finding AppArmor FS: securityfs not found"}) ==
          rejected("error finding AppArmor FS: securityfs not found"));
  }
}

TEST_CASE("well-formed profiles are admitted") {
  for (const auto& pod : {with_profile({.type = "RuntimeDefault"}),
                          with_container_profile({.type = "Localhost", .localhost_profile = "web"}),
                          annotated("main", "runtime/default"), annotated("main", "localhost/web")})
    CHECK(admit(pod) == Verdict::admit());
}

TEST_CASE("a malformed annotation is passed over") {
  for (const auto* annotation : {"nonsense", "Runtime/default", "", "localhost"}) {
    CAPTURE(annotation);
    CHECK(admit(annotated("main", annotation)) == Verdict::admit());
    auto pod = annotated("main", annotation);
    pod.app_armor_profile = AppArmorProfile{.type = "Localhost"};  // what counts in its place
    CHECK(admit(pod) == nameless);
  }
}

TEST_CASE("a field of another type than Localhost is not judged") {
  for (const auto* type : {"RuntimeDefault", "Strict", "localhost", ""}) {
    CAPTURE(type);
    CHECK(admit(with_profile({.type = type, .localhost_profile = " "})) == Verdict::admit());
    CHECK(admit(with_container_profile({.type = type})) == Verdict::admit());
  }
}

TEST_CASE("a profile of the host must have a name") {
  CHECK(admit(with_profile({.type = "Localhost"})) == nameless);
  CHECK(admit(annotated("side", "localhost/")) == nameless);
  CHECK(admit(annotated("gone", "localhost/")) == Verdict::admit());  // of no container
  CHECK(admit(with_container_profile({.type = "Localhost", .localhost_profile = " "})).reason == "AppArmor");
}

TEST_CASE("a container's own profile goes before the annotation, and that before the pod's") {
  auto pod = annotated("main", "localhost/");
  pod.containers[0].app_armor_profile = AppArmorProfile{.type = "RuntimeDefault"};
  CHECK(admit(pod) == Verdict::admit());
  auto annotation = annotated("main", "runtime/default");
  annotation.app_armor_profile = AppArmorProfile{.type = "Localhost"};
  annotation.containers.pop_back();
  CHECK(admit(annotation) == Verdict::admit());
  annotation.annotations.clear();
  CHECK(admit(annotation) == nameless);
}

TEST_CASE("init containers are looked at first") {
  auto pod = with_container_profile({.type = "Localhost", .localhost_profile = " "});
  pod.init_containers = {fixture::container("setup")};
  pod.annotations["container.apparmor.security.beta.kubernetes.io/setup"] = "localhost/";
  CHECK(admit(pod) == nameless);
}

TEST_CASE("only a pod that is pending is looked at") {
  auto pod = annotated("main", "localhost/");
  for (const auto* phase : {"Running", "Succeeded", "Failed"}) {
    pod.phase = phase;
    CHECK(admit(pod, {}) == Verdict::admit());
  }
  pod.phase = "Pending";
  CHECK_FALSE(admit(pod, {}).admitted);
}

}  // namespace evictd::admission::apparmor_handler_test
