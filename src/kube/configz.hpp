#pragma once
#include <string>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "kube/credentials.hpp"

namespace evictd::kube {

/// What the kubelet itself says it goes by: the body of its /configz. It asks whom it authorizes by the webhook for
/// nodes/configz, or nodes/proxy of a kubelet before 1.33. Error: one line with its address.
///
/// Waits for the kubelet, no longer than `deadline` but for a name service that hangs: beside the reactor.
[[nodiscard]] Result<std::string> ask_configz(const Credentials& kubelet, core::Duration deadline);

}  // namespace evictd::kube
