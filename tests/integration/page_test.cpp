#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <string>

#include "browser.hpp"
#include "testbed/agent.hpp"
#include "testbed/wait.hpp"
#include "web/http_client.hpp"

namespace integration::page_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::test::free_port;
using evictd::test::http_get;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;
/// A name that would be markup in a page that lets it.
constexpr auto* name = "<b id=injected>bloat</b>";

Agent::Options with_http(std::uint16_t port, const std::string& more = "") {
  return {.thresholds = "evictionHard: {memory.available: 300Mi}",
          .sections = fmt::format("http: {{port: {}{}}}\n", port, more)};
}

}  // namespace

TEST_CASE("the page shows the node, and a pod that is evicted before its eyes: its signal, stages and ranking") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto port = free_port();
  Agent agent{testbed, with_http(port)};
  const auto chill =
      testbed.cri().run_pod({.name = "chill", .qos = QosClass::Burstable, .containers = {{.args = {"hold", "32Mi"}}}});
  agent.wait_for_pods(1);

  Browser browser{testbed};
  browser.open(fmt::format("http://127.0.0.1:{}/", port));
  browser.wait_until("document.getElementById('connection').textContent === 'live'");
  const std::string card = "document.querySelector('[data-signal=\"memory.available\"]')";
  browser.wait_until(card + " !== null && " + card + ".querySelector('path.curve') !== null");
  CHECK(browser.holds(card + ".textContent.includes('of 1.0 GiB')"));
  CHECK(browser.holds(card + ".textContent.includes('hard, 300 MiB')"));
  CHECK(browser.holds("document.querySelector('[data-condition=MemoryPressure]').dataset.on === 'false'"));
  CHECK(browser.holds("document.querySelector('[data-eviction]') === null"));
  CHECK(browser.holds("document.getElementById('ranking').textContent === 'Nobody was ranked yet.'"));
  // Samples arrive while somebody looks.
  browser.wait_until("state.samples.length >= 3");

  const auto bloat = testbed.cri().run_pod(
      {.name = name, .qos = QosClass::BestEffort, .containers = {{.args = {"grow", "16Mi", "100Mi/s"}}}});
  const auto pod = fmt::format("default/{}", name);
  agent.events().wait_for(Event::CLEANUP_DONE, pod, 60s);

  const std::string eviction = "document.querySelector('[data-eviction]')";
  browser.wait_until(eviction + " !== null && " + eviction + ".querySelector('[data-stage=cleanup]') !== null");
  CHECK(browser.evaluate(eviction + ".dataset.pod") == boost::json::value(pod));
  CHECK(browser.evaluate(eviction + ".querySelector('h3').firstChild.textContent") == boost::json::value(pod));
  CHECK(browser.evaluate(eviction + ".dataset.signal") == "memory.available");
  for (const auto* stage : {"observed", "decided", "killed", "released", "cleanup"}) {
    CAPTURE(stage);
    CHECK(browser.holds(fmt::format("Number({}.querySelector('[data-stage={}]').dataset.us) > 0", eviction, stage)));
  }
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, pod, 60s);
  CHECK(browser.evaluate(eviction + ".querySelector('[data-stage=decided]').dataset.us") ==
        boost::json::value(std::to_string(intended.stages().at("decided"))));
  CHECK(browser.evaluate("document.querySelector('#ranking tr.victim').dataset.pod") == boost::json::value(pod));
  CHECK(browser.holds("document.querySelector('#ranking [data-pod=\"default/chill\"]') !== null"));
  CHECK(browser.holds("document.querySelector('#timeline rect.eviction') !== null"));
  browser.wait_until("document.querySelector('[data-condition=MemoryPressure]').dataset.on === 'true'");
  browser.wait_until("document.querySelector('#latencies td') !== null");
  CHECK(browser.holds("document.querySelector('#sources').textContent.includes('timer')"));

  CHECK(browser.holds("document.getElementById('injected') === null"));
  CHECK(browser.holds("document.getElementById('events').textContent.includes('<b id=injected>')"));
  const auto complaints = browser.complaints();
  INFO((complaints.empty() ? "" : complaints[0]));
  CHECK(complaints.empty());
}

TEST_CASE("a page that loses evictd says so, and comes back by itself once there is one again") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}, .start_containerd = false}};
  const auto port = free_port();
  auto options = with_http(port);
  options.wait_until_ready = false;
  Browser browser{testbed};
  {
    Agent agent{testbed, options};
    testbed::wait_until("the first pass", 30s, [&] { return agent.status().passes() > 0; });
    browser.open(fmt::format("http://127.0.0.1:{}/", port));
    browser.wait_until("document.getElementById('connection').textContent === 'live'");
    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(30s) == 0);
    browser.wait_until("document.getElementById('connection').className.includes('lost')");
  }
  Agent again{testbed, options};
  browser.wait_until("document.getElementById('connection').textContent === 'live'");
}

TEST_CASE("with http.page: false there are metrics and no page") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}, .start_containerd = false}};
  const auto port = free_port();
  auto options = with_http(port, ", page: false");
  options.wait_until_ready = false;
  Agent agent{testbed, options};
  testbed::wait_until("the first pass", 30s, [&] { return agent.status().passes() > 0; });
  CHECK(http_get(port, "/metrics").status == 200);
  CHECK(http_get(port, "/").status == 404);
  CHECK(http_get(port, "/events").status == 404);
}

}  // namespace integration::page_test
