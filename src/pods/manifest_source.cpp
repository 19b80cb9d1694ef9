#include "pods/manifest_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "async/offload.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace asio = boost::asio;

namespace evictd::pods {
namespace {

/// Nothing tells that a directory appears.
constexpr core::Duration missing_interval = std::chrono::seconds(2);

}  // namespace

ManifestSource::ManifestSource(asio::any_io_executor reactor, asio::any_io_executor pool, ManifestSourceOptions options)
    : SpecSource{SpecOrigin::Manifests},
      reactor_{std::move(reactor)},
      pool_{std::move(pool)},
      options_{std::move(options)},
      timer_{reactor_} {}

void ManifestSource::begin() {
  running_ = true;
  read();
}

void ManifestSource::end() {
  running_ = false;
  timer_.cancel();
}

void ManifestSource::look() {
  if (std::exchange(hurried_, true) || reading_ || !running_) return;
  look_after(options_.settle);
}

void ManifestSource::look_after(core::Duration time) {
  timer_.expires_after(time);
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](boost::system::error_code cancelled) {
    if (!cancelled && !alive.expired() && running_) read();
  });
}

void ManifestSource::read() {
  reading_ = true;
  hurried_ = false;
  auto work = [directory = options_.directory, node_name = options_.node_name, known = files_] {
    return read_manifests(directory, node_name, *known);
  };
  auto done = [this](std::optional<Result<ManifestFiles>> files) {
    if (files) return finish(*std::move(files));
    if (running_)
      lost({fmt::format("{}: could not be read within {} s: its disk does not answer", options_.directory.native(),
                        std::chrono::duration_cast<std::chrono::seconds>(options_.patience).count())});
  };
  async::offload(reactor_, pool_, alive_, std::move(work), options_.patience, std::move(done),
                 [this](Result<ManifestFiles> files) { finish(std::move(files)); });
}

void ManifestSource::finish(Result<ManifestFiles> files) {
  reading_ = false;
  if (!running_) return;
  look_after(hurried_ ? options_.settle : files ? options_.interval : std::min(options_.interval, missing_interval));
  if (!files) return lost(files.error());

  auto pods = std::make_shared<core::PodList>();
  std::vector<Error> errors;
  for (const auto& [name, file] : *files) {
    pods->insert(pods->end(), file.pods.begin(), file.pods.end());
    if (file.error) errors.push_back(*file.error);
  }
  files_ = std::make_shared<const ManifestFiles>(*std::move(files));
  cannot_read(std::move(errors));
  heard(std::move(pods));
}

}  // namespace evictd::pods
