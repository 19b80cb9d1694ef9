#include "events/event_filter.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "evictd.pb.h"
#include "fixture/result.hpp"

namespace evictd::events::event_filter_test {
namespace {

using fixture::error_of;
using fixture::value_of;

v1::Event event(v1::Event::Kind kind, const std::string& name_space = {}, const std::string& name = {},
                const std::string& signal = {}) {
  v1::Event result;
  result.set_kind(kind);
  result.set_signal(signal);
  if (name.empty()) return result;
  result.mutable_pod()->set_namespace_(name_space);
  result.mutable_pod()->set_name(name);
  result.mutable_pod()->set_uid("uid-of-" + name);
  return result;
}

const v1::Event eviction = event(v1::Event::EVICTION_INTENDED, "shop", "web", "memory.available");
const v1::Event crossing = event(v1::Event::THRESHOLD_CROSSED, "", "", "nodefs.available");

TEST_CASE("a filter without entries lets everything pass") {
  const auto filter = value_of(EventFilter::make({}));
  for (int kind = v1::Event::Kind_MIN + 1; kind <= v1::Event::Kind_MAX; ++kind)
    CHECK(filter.passes(event(static_cast<v1::Event::Kind>(kind))));
  CHECK(EventFilter{}.passes(eviction));
}

TEST_CASE("events pass by their kind") {
  v1::EventFilter wanted;
  wanted.add_kinds(v1::Event::EVICTION_INTENDED);
  wanted.add_kinds(v1::Event::AUDIT);
  const auto filter = value_of(EventFilter::make(wanted));
  CHECK(filter.passes(eviction));
  CHECK(filter.passes(event(v1::Event::AUDIT)));
  CHECK_FALSE(filter.passes(crossing));
}

TEST_CASE("events pass by namespace, and those about no pod do not") {
  v1::EventFilter wanted;
  wanted.add_namespaces("shop");
  const auto filter = value_of(EventFilter::make(wanted));
  CHECK(filter.passes(eviction));
  CHECK_FALSE(filter.passes(event(v1::Event::EVICTION_INTENDED, "mail", "web")));
  CHECK_FALSE(filter.passes(crossing));
}

TEST_CASE("events pass by a pod's uid, its name, or namespace and name") {
  const auto passes = [](const std::string& pod) {
    v1::EventFilter wanted;
    wanted.add_pods("another");
    wanted.add_pods(pod);
    return value_of(EventFilter::make(wanted)).passes(eviction);
  };
  CHECK(passes("uid-of-web"));
  CHECK(passes("web"));
  CHECK(passes("shop/web"));
  CHECK_FALSE(passes("mail/web"));
  CHECK_FALSE(passes("shop/we"));
  CHECK_FALSE(passes("shop"));
  v1::EventFilter wanted;
  wanted.add_pods("web");
  CHECK_FALSE(value_of(EventFilter::make(wanted)).passes(crossing));
}

TEST_CASE("events pass by their signal, and each list has to fit") {
  v1::EventFilter wanted;
  wanted.add_signals("nodefs.available");
  wanted.add_signals("preemption");
  auto filter = value_of(EventFilter::make(wanted));
  CHECK(filter.passes(crossing));
  CHECK(filter.passes(event(v1::Event::EVICTION_INTENDED, "shop", "web", "preemption")));
  CHECK_FALSE(filter.passes(eviction));

  wanted.add_namespaces("shop");
  wanted.add_kinds(v1::Event::EVICTION_INTENDED);
  filter = value_of(EventFilter::make(wanted));
  CHECK(filter.passes(event(v1::Event::EVICTION_INTENDED, "shop", "web", "nodefs.available")));
  CHECK_FALSE(filter.passes(event(v1::Event::CLEANUP_DONE, "shop", "web", "nodefs.available")));
  CHECK_FALSE(filter.passes(event(v1::Event::EVICTION_INTENDED, "mail", "web", "nodefs.available")));
}

TEST_CASE("a gap always passes") {
  v1::EventFilter wanted;
  wanted.add_kinds(v1::Event::AUDIT);
  wanted.add_namespaces("shop");
  wanted.add_pods("web");
  wanted.add_signals("memory.available");
  CHECK(value_of(EventFilter::make(wanted)).passes(event(v1::Event::GAP)));
}

TEST_CASE("what makes no filter is refused and named") {
  const auto refusal = [](const std::function<void(v1::EventFilter&)>& fill) {
    v1::EventFilter wanted;
    fill(wanted);
    return error_of(EventFilter::make(wanted));
  };
  CHECK(refusal([](auto& f) { f.add_kinds(static_cast<v1::Event::Kind>(99)); }) ==
        "filter.kinds: 99 is no kind of event that this evictd knows");
  CHECK(refusal([](auto& f) { f.add_kinds(static_cast<v1::Event::Kind>(-1)); }) ==
        "filter.kinds: -1 is no kind of event that this evictd knows");
  CHECK(refusal([](auto& f) { f.add_kinds(v1::Event::KIND_UNSPECIFIED); }) ==
        "filter.kinds: 0 is no kind of event that this evictd knows");
  CHECK(refusal([](auto& f) { f.add_signals("memory.avail"); }) ==
        "filter.signals: there is no signal \"memory.avail\"");
  CHECK(refusal([](auto& f) { f.add_namespaces(""); }) == "filter.namespaces[0] is empty");
  CHECK(refusal([](auto& f) { f.add_pods(""); }) == "filter.pods[0] is empty");
  CHECK(refusal([](auto& f) { f.add_signals(""); }) == "filter.signals[0] is empty");
  CHECK(refusal([](auto& f) { f.add_pods("/web"); }) == "filter.pods: \"/web\" is no \"namespace/name\"");
  CHECK(refusal([](auto& f) { f.add_pods("shop/"); }) == "filter.pods: \"shop/\" is no \"namespace/name\"");
  CHECK(refusal([](auto& f) { f.add_pods(std::string(512, 'x')); }) == "no error");
  CHECK(refusal([](auto& f) { f.add_pods(std::string(513, 'x')); }) ==
        "filter.pods[0] has 513 bytes, and at most 512 are taken");
  CHECK(refusal([](auto& f) { f.add_namespaces(std::string(513, 'x')); }) ==
        "filter.namespaces[0] has 513 bytes, and at most 512 are taken");
  CHECK(refusal([](auto& f) { f.add_signals(std::string(513, 'x')); }) ==
        "filter.signals[0] has 513 bytes, and at most 512 are taken");
  CHECK(refusal([](auto& f) {
          for (int i = 0; i < 1025; ++i) f.add_pods("web");
        }) == "filter.pods: there are 1025 entries, and at most 1024 are taken");
  CHECK(refusal([](auto& f) {
          for (int i = 0; i < 600; ++i) f.add_pods(fmt::format("{:036}", i));
        }) == "no error");
  CHECK(refusal([](auto& f) {
          for (int i = 0; i < 100; ++i) f.add_pods(fmt::format("{:0400}", i));
          for (int i = 0; i < 100; ++i) f.add_namespaces(fmt::format("{:0200}", i));
        }) == "filter: its entries take 72800 bytes with 64 for each, and at most 65536 are taken");
  CHECK(refusal([](auto& f) {
          for (int i = 0; i < 1025; ++i) f.add_kinds(v1::Event::AUDIT);
        }) == "filter.kinds: there are 1025 entries, and at most 1024 are taken");
}

}  // namespace
}  // namespace evictd::events::event_filter_test
