#include "pods/spec_source.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"
#include "pods/fake_source.hpp"

namespace evictd::pods::spec_source_test {
namespace {

using fixture::pod;
using fixture::with_priority;
using State = SpecSourceStatus::State;

struct Heard : test::HeardSpecs {
  test::FakeSource source{SpecOrigin::Kubelet};

  Heard() { source.start(*this); }
};

}  // namespace

TEST_CASE("a source waits until it is heard of, and is synced then") {
  Heard heard;
  CHECK(heard.source.running);
  CHECK(heard.source.status().state == State::Waiting);
  CHECK_FALSE(heard.source.status().last_contact.has_value());
  CHECK(heard.source.pods()->empty());
  heard.source.say(fixture::pods({pod("a")}));
  const auto status = heard.source.status();
  CHECK(status.state == State::Synced);
  CHECK(status.pods == 1);
  CHECK(status.last_contact.has_value());
  CHECK_FALSE(status.stale_since.has_value());
  CHECK(heard.changes == 1);
}

TEST_CASE("a list that says the same is no change") {
  Heard heard;
  heard.source.say(fixture::pods({pod("a")}));
  const auto first = heard.source.pods();
  heard.source.say(fixture::pods({pod("a")}));
  CHECK(heard.changes == 1);
  CHECK(heard.source.pods() == first);
  heard.source.say(fixture::pods({with_priority(pod("a"), 1)}));
  CHECK(heard.changes == 2);
}

TEST_CASE("a stale source keeps its list and says since when and why, once for each reason") {
  Heard heard;
  heard.source.say(fixture::pods({pod("a")}));
  const auto contact = heard.source.status().last_contact;
  heard.source.fail("refused");
  const auto since = heard.source.status().stale_since;
  heard.source.fail("refused");
  heard.source.fail("timeout");
  const auto status = heard.source.status();
  CHECK(status.state == State::Stale);
  CHECK(status.stale_since == since);
  CHECK(status.last_contact == contact);
  CHECK(status.error == "timeout");
  CHECK(status.pods == 1);
  CHECK(heard.source.pods()->size() == 1);
  CHECK(heard.degraded == std::vector<std::string>{"kubelet: refused", "kubelet: timeout"});
  CHECK(heard.changes == 1);

  heard.source.say(fixture::pods({pod("a")}));
  CHECK(heard.source.status().state == State::Synced);
  CHECK(heard.source.status().error.empty());
  heard.source.fail("refused");  // it was back in between: news again
  CHECK(heard.degraded.size() == 3);
}

TEST_CASE("a source that fails from the start is stale, not waiting") {
  Heard heard;
  heard.source.fail("refused");
  CHECK(heard.source.status().state == State::Stale);
  CHECK_FALSE(heard.source.status().last_contact.has_value());
}

TEST_CASE("what cannot be read is told once, shown while it lasts, and told again when it comes back") {
  Heard heard;
  heard.source.complain({{"a.yaml:3: bad"}});
  heard.source.complain({{"a.yaml:3: bad"}, {"b.yaml:1: bad"}});
  heard.source.say({});
  CHECK(heard.unreadable == std::vector<std::string>{"a.yaml:3: bad", "b.yaml:1: bad"});
  CHECK(heard.source.status().state == State::Synced);
  CHECK(heard.source.status().error == "a.yaml:3: bad");
  heard.source.complain({});
  CHECK(heard.source.status().error.empty());
  heard.source.complain({{"a.yaml:3: bad"}});
  CHECK(heard.unreadable.size() == 3);
}

TEST_CASE("a stopped source calls nobody") {
  Heard heard;
  heard.source.stop();
  CHECK_FALSE(heard.source.running);
  heard.source.say(fixture::pods({pod("a")}));
  heard.source.fail("refused");
  heard.source.complain({{"a"}});
  CHECK(heard.changes == 0);
  CHECK(heard.degraded.empty());
  CHECK(heard.unreadable.empty());
}

}  // namespace evictd::pods::spec_source_test
