#pragma once
#include "config/agent_configuration.hpp"
#include "core/error.hpp"
#include "kubelet/configuration.hpp"

// Where the node's kubelet said last that its runtime listens, kept for an evictd that starts while no kubelet runs.
// One that fails again and again is away most of the time, and what only its flags say is away with it: evictd would
// take another runtime for the node's, and end for the right one as often as the kubelet comes.

namespace evictd::app {

/// Keeps what a kubelet says itself, or forgets what an earlier one said where it names no runtime. Whenever evictd is
/// killed, the next one finds what is kept whole. Error: it could not be written, and what was kept before holds.
[[nodiscard]] Result<void> keep_runtime(const kubelet::Configuration& kubelet, const config::AgentConfiguration& agent);

/// Has `kubelet`, by which none is known to go, name the runtime that is kept. False: there is none, or nothing is
/// where its socket was, so that whatever else is there is the better guess.
[[nodiscard]] bool recall_runtime(kubelet::Configuration& kubelet, const config::AgentConfiguration& agent);

}  // namespace evictd::app
