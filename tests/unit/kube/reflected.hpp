#pragma once
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kube/api_server.hpp"
#include "kube/reactor.hpp"
#include "kube/reflector.hpp"

namespace evictd::test {

using namespace std::chrono_literals;

inline std::string object(const std::string& name, int version) {
  return fmt::format(R"({{"metadata":{{"name":"{}","resourceVersion":"{}"}}}})", name, version);
}

inline std::string event(const char* type, const std::string& name, int version) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, object(name, version));
}

inline Handler lists(int version, const std::vector<std::string>& objects = {}, const std::string& more = "") {
  return answers(200, fmt::format(R"({{"metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})", version,
                                  more, fmt::join(objects, ",")));
}

inline const std::string list_line = "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn&limit=500&resourceVersion=0";
inline std::string watch_line(int version) {
  return fmt::format(
      "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn&watch=true&allowWatchBookmarks=true&resourceVersion={}&"
      "timeoutSeconds=300",
      version);
}

inline kube::ReflectorOptions quick() { return {.retry = {.first = 1ms, .longest = 4ms}}; }

/// A server, and a reflector of its pods that tells what it hands out.
struct Reflected : kube::ReflectorListener {
  ApiServer server;
  KubeReactor reactor;
  kube::Client client;
  std::vector<std::string> told;  // what the reflector handed out
  std::vector<kube::ReflectorState> states;
  std::optional<kube::Reflector> reflector;
  FeedPtr feed = std::make_shared<Feed>();

  explicit Reflected(kube::ReflectorOptions options = quick(), double random = 0)
      : client{reactor.context.get_executor(), reactor.workers.get_executor(), credentials_for(server.url())} {
    reflector.emplace(reactor.context.get_executor(), reactor.workers.get_executor(), client,
                      kube::Collection{.path = "/api/v1/pods", .query = "fieldSelector=spec.nodeName%3Dn"}, *this,
                      options, [random] { return random; });
  }

  void replaced(std::vector<std::string> objects) override {
    told.push_back(fmt::format("= {}", fmt::join(objects, " ")));
  }
  void upserted(std::string object) override { told.push_back("+ " + object); }
  void deleted(std::string object) override { told.push_back("- " + object); }
  void state_changed(const kube::ReflectorState& state) override { states.push_back(state); }

  void start() { reflector->start(); }
  bool wait_for_told(std::size_t count) {
    return reactor.run_until([&] { return told.size() >= count; });
  }
  bool wait_for_requests(std::size_t count) {
    return reactor.run_until([&] { return server.asked().size() >= count; });
  }
  bool wait_for_watches(std::size_t count) {
    return reactor.run_until([&] { return reflector->state().watches >= count; });
  }
  std::string last_error() const { return reflector->state().last_error.value_or(evictd::Error{"none"}).message; }
  /// "http://127.0.0.1:PORT/api/v1/pods: what"
  std::string line(const std::string& what) const { return server.url() + "/api/v1/pods: " + what; }

  /// A list of one object at version 1, and a watch from there on.
  void begin() {
    server.then(lists(1, {object("a", 1)}));
    server.then(streams(feed));
    start();
    REQUIRE(wait_for_watches(1));
  }
  /// The watch after that.
  FeedPtr expect_watch() {
    auto next = std::make_shared<Feed>();
    server.then(streams(next));
    return next;
  }
};

}  // namespace evictd::test
