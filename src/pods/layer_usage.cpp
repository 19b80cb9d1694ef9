#include "pods/layer_usage.hpp"

#include <api.pb.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace evictd::pods {
namespace {

std::int64_t number(const cri::v1::UInt64Value& value) {
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(value.value(), largest));
}

core::DiskUsage usage_of(const cri::v1::FilesystemUsage& layer) {
  core::DiskUsage usage;
  if (layer.has_used_bytes()) usage.bytes = number(layer.used_bytes());
  if (layer.has_inodes_used()) usage.inodes = number(layer.inodes_used());
  return usage;
}

}  // namespace

boost::asio::awaitable<Result<LayerUsage>> layer_usage(cri::Client& client) {
  const auto listed = co_await client.list_container_stats();
  if (!listed) co_return fail(listed.error().error, "cannot measure the writable layers");
  LayerUsage layers;
  for (const auto& stats : listed->stats())
    if (stats.has_writable_layer()) layers.emplace(stats.attributes().id(), usage_of(stats.writable_layer()));
  co_return layers;
}

}  // namespace evictd::pods
