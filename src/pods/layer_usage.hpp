#pragma once
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <string>

#include "core/error.hpp"
#include "core/usage.hpp"
#include "cri/client.hpp"

namespace evictd::pods {

/// By container id.
using LayerUsage = std::map<std::string, core::DiskUsage, std::less<>>;

/// Bytes and inodes of every container's writable layer, by one ListContainerStats. A layer that the runtime has not
/// measured yet is absent. containerd measures them every `stats_collect_period`, 10 s by default, so the numbers may
/// be that old.
[[nodiscard]] boost::asio::awaitable<Result<LayerUsage>> layer_usage(cri::Client& client);

}  // namespace evictd::pods
