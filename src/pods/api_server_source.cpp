#include "pods/api_server_source.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <cstdint>
#include <utility>

#include "core/pod.hpp"
#include "kube/client.hpp"
#include "kube/url.hpp"
#include "os/now.hpp"
#include "pods/manifest.hpp"

namespace asio = boost::asio;

namespace evictd::pods {
namespace {

enum class Kind : std::uint8_t { Replaced, Upserted, Deleted, Stands };

kube::Collection pods_of(const std::string& node_name) {
  return {.path = "/api/v1/pods", .query = "fieldSelector=spec.nodeName%3D" + kube::percent_encoded(node_name)};
}

}  // namespace

struct ApiServerSource::Change {
  Kind kind = Kind::Stands;
  std::vector<std::string> objects{};
  kube::ReflectorState state{};
};

struct ApiServerSource::Parsed {
  Kind kind = Kind::Stands;
  PodsRead read{};
  kube::ReflectorState state{};
};

ApiServerSource::ApiServerSource(asio::any_io_executor reactor, asio::any_io_executor pool, kube::Client& client,
                                 ApiServerSourceOptions options)
    : SpecSource{SpecOrigin::ApiServer},
      reactor_{reactor},
      in_order_{asio::make_strand(pool)},
      reflector_{reactor, std::move(pool), client, pods_of(options.node_name), *this, options.reflector},
      longest_parse_{options.longest_parse},
      parse_timer_{std::move(reactor)} {}

ApiServerSource::~ApiServerSource() = default;

void ApiServerSource::begin() {
  running_ = true;
  reflector_.start();
}

void ApiServerSource::end() {
  running_ = false;
  reflector_.stop();
  parse_timer_.cancel();
}

std::optional<core::Instant> ApiServerSource::last_contact() const { return reflector_.state().last_contact; }

void ApiServerSource::replaced(std::vector<std::string> objects) {
  parse({.kind = Kind::Replaced, .objects = std::move(objects)});
}

void ApiServerSource::upserted(std::string object) { parse({.kind = Kind::Upserted, .objects = {std::move(object)}}); }

void ApiServerSource::deleted(std::string object) { parse({.kind = Kind::Deleted, .objects = {std::move(object)}}); }

void ApiServerSource::state_changed(const kube::ReflectorState& state) {
  parse({.kind = Kind::Stands, .state = state});
}

/// That nothing comes through would not show otherwise: what the reflector has to tell of itself waits as well.
void ApiServerSource::await_parsed() {
  unparsed_since_ = os::now();
  parse_timer_.expires_at(unparsed_since_ + longest_parse_);
  parse_timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& cancelled) {
    if (cancelled || alive.expired() || !running_ || unparsed_ == 0) return;
    // It may have been too late to cancel this wait.
    if (os::now() >= unparsed_since_ + longest_parse_)
      lost({"what the API server sent could not be read in time"}, unparsed_since_);
  });
}

void ApiServerSource::parse(Change change) {
  if (unparsed_++ == 0) await_parsed();
  asio::post(in_order_, [this, alive = std::weak_ptr(alive_), reactor = reactor_, change = std::move(change)] {
    Parsed parsed{.kind = change.kind, .state = change.state};
    for (const auto& object : change.objects) {
      if (auto pod = parse_pod_json(object, "a pod of the API server's", parsed.read.doubts))
        parsed.read.pods.push_back(*std::move(pod));
      else
        parsed.read.errors.push_back(pod.error());
    }
    asio::post(reactor, [this, alive, parsed = std::move(parsed)]() mutable {
      if (!alive.expired() && running_) apply(std::move(parsed));
    });
  });
}

void ApiServerSource::apply(Parsed parsed) {
  parse_timer_.cancel();
  if (--unparsed_ > 0) await_parsed();
  if (parsed.kind == Kind::Stands) return stands(parsed.state);
  if (parsed.kind == Kind::Replaced) {
    by_uid_.clear();
    unreadable_.clear();
  }
  for (auto& pod : parsed.read.pods) {
    auto uid = pod.uid;
    if (parsed.kind == Kind::Deleted)
      by_uid_.erase(uid);
    else
      by_uid_.insert_or_assign(std::move(uid), std::make_shared<const core::Pod>(std::move(pod)));
  }
  constexpr std::size_t most_errors = 16;
  for (auto* errors : {&parsed.read.errors, &parsed.read.doubts})
    for (auto& error : *errors)  // a pod that changes often says the same as often
      if (unreadable_.size() < most_errors && std::ranges::find(unreadable_, error) == unreadable_.end())
        unreadable_.push_back(std::move(error));

  cannot_read(unreadable_);
  auto pods = std::make_shared<core::PodList>();
  for (const auto& [uid, pod] : by_uid_) pods->push_back(pod);
  heard(std::move(pods));
}

/// Between two watches the list may be out of date, although it was just heard.
void ApiServerSource::stands(const kube::ReflectorState& state) {
  if (state.stale_since && state.last_error)
    lost(*state.last_error, state.stale_since);
  else if (!state.stale_since)
    heard();
}

}  // namespace evictd::pods
