#include "pods/spec_source.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "os/now.hpp"

namespace evictd::pods {
namespace {

using os::now;

bool same(const core::PodList& a, const core::PodList& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return x == y || *x == *y; });
}

}  // namespace

std::string_view name(SpecOrigin origin) {
  static constexpr std::array<std::string_view, 3> names{"apiServer", "kubelet", "manifests"};
  return names[static_cast<std::size_t>(origin)];
}

void SpecSource::start(SpecListener& listener) {
  listener_ = &listener;
  begin();
}

void SpecSource::stop() {
  listener_ = nullptr;
  end();
}

SpecSourceStatus SpecSource::status() const {
  using enum SpecSourceStatus::State;
  SpecSourceStatus status{.origin = origin_,
                          .state = stale_since_    ? Stale
                                   : last_contact_ ? Synced
                                                   : Waiting,
                          .pods = pods_->size(),
                          .last_contact = last_contact(),
                          .stale_since = stale_since_,
                          .error = error_};
  if (status.error.empty() && !cannot_read_.empty()) status.error = cannot_read_.front().message;
  return status;
}

void SpecSource::heard(core::PodListPtr pods) {
  last_contact_ = now();
  stale_since_.reset();
  error_.clear();
  if (pods == pods_ || same(*pods, *pods_)) return;
  pods_ = std::move(pods);
  if (listener_ != nullptr) listener_->specs_changed();
}

void SpecSource::lost(const Error& error, std::optional<core::Instant> since) {
  if (!stale_since_) stale_since_ = since.value_or(now());
  if (error.message == error_) return;
  error_ = error.message;
  if (listener_ != nullptr) listener_->spec_source_degraded(origin_, error);
}

void SpecSource::cannot_read(std::vector<Error> errors) {
  const auto earlier = std::exchange(cannot_read_, std::move(errors));
  if (listener_ == nullptr) return;
  for (const auto& error : cannot_read_)
    if (std::ranges::find(earlier, error) == earlier.end()) listener_->spec_unreadable(origin_, error);
}

}  // namespace evictd::pods
