#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "kube/retry_delay.hpp"

namespace evictd::kube {

class Client;

/// What is to be mirrored.
struct Collection {
  std::string path{};   ///< "/api/v1/pods"
  std::string query{};  ///< percent-encoded: "fieldSelector=spec.nodeName%3Dworker-1"; may be empty
};

struct ReflectorOptions {
  /// The first list begins at a random time up to here. Ten thousand nodes may start at once, and what the container
  /// runtime tells is enough until then.
  core::Duration longest_start_delay = std::chrono::seconds{0};
  /// Objects asked for at once. Servers may answer a list "from the cache", as ours are, whole; where they keep to it,
  /// an answer is some 10 MiB at most.
  int page_size = 500;
  /// No node has as many pods; what is beyond is an error and not our memory's end.
  std::size_t most_objects = 10'000;
  core::Duration answer_deadline = std::chrono::seconds{30};  ///< of a page, and of a watch's head
  /// How long the server is to keep a watch open: random within, as in client-go, so that the watches of many nodes end
  /// at different times.
  core::Duration shortest_watch = std::chrono::minutes{5};
  core::Duration longest_watch = std::chrono::minutes{10};
  /// Servers send a bookmark every minute or so. After three without one the connection counts as dead.
  core::Duration longest_silence = std::chrono::minutes{3};
  /// A server that comes back meets all its nodes at once. Their first tries are spread over `first`; nobody waits for
  /// them.
  RetryLimits retry{.first = std::chrono::seconds{5}};
};

/// How things stand, for the status.
struct ReflectorState {
  std::optional<core::Instant> synced_since{};  ///< the first list was handed out; absent: not yet
  std::optional<core::Instant> last_contact{};  ///< the last useful answer of the server
  /// What was handed out may be out of date since; absent: a watch is on.
  std::optional<core::Instant> stale_since{};
  std::optional<Error> last_error{};  ///< why the last try failed, also when things go well again
  std::uint64_t lists = 0;            ///< completed
  std::uint64_t watches = 0;          ///< begun
  std::uint64_t events = 0;           ///< of watches, bookmarks included
};

/// Hears what a reflector hands out. Called on the reactor; each function may stop or destroy the reflector. Each
/// object is a JSON text, without metadata.managedFields; objects of a list have neither kind nor apiVersion.
class ReflectorListener {
 public:
  /// The whole collection, anew.
  virtual void replaced(std::vector<std::string> objects) = 0;
  virtual void upserted(std::string object) = 0;
  /// Or it does not match the query any more.
  virtual void deleted(std::string object) = 0;
  /// It is synced, became stale, is so for another reason, or is up to date again.
  virtual void state_changed(const ReflectorState& /*state*/) {}

 protected:
  ~ReflectorListener() = default;
};

/// Mirrors one collection of the API server: a list, then a watch from the list's version on, for ever
/// (Kubernetes API concepts, "Efficient detection of changes").
///
/// A watch that the server ends in its time goes on from the last version at once; one that it ends sooner, as a server
/// does that goes away, within RetryLimits::first; one that breaks, or is silent for too long, after a delay with
/// jitter (RetryDelay). 410 Gone in either form, any other ERROR event and an event that cannot be read lead to a new
/// list, after a delay as well. Every other refusal (401, 403, 404, 429, 5xx) is tried again after a delay, at the
/// earliest when Retry-After says. Lists are from "the cache" (resourceVersion=0): they cost the API server no read of
/// etcd, and may lag a little behind, which the watch makes up for.
///
/// For the reactor's thread. Large texts are parsed on `workers`, whose threads must have ended before the reactor is
/// destroyed.
class Reflector {
 public:
  /// The client must outlive it, and so must the listener, or until stop().
  Reflector(boost::asio::any_io_executor reactor, boost::asio::any_io_executor workers, Client& client,
            Collection collection, ReflectorListener& listener, ReflectorOptions options = {},
            Random random = any_random());
  /// As stop().
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  /// Begins. Call it once.
  void start();
  /// Nothing is handed out any more, and the watch is closed. Another request under way ends by itself, or when the
  /// client is stopped.
  void stop();

  [[nodiscard]] const ReflectorState& state() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace evictd::kube
