#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "agent/local_storage.hpp"
#include "agent/pod_tracker.hpp"
#include "app/configuration.hpp"
#include "app/pod_sources.hpp"
#include "async/side_thread.hpp"
#include "async/worker.hpp"
#include "config/agent_configuration.hpp"
#include "node/cgroup.hpp"
#include "node/node_disk.hpp"
#include "node/node_memory.hpp"
#include "node/pod_directories.hpp"
#include "node/signal_reader.hpp"
#include "wake/psi_level.hpp"
#include "wake/sampler.hpp"
#include "wake/source.hpp"
#include "wake/turn_watch.hpp"
#include "wake/wakes.hpp"

namespace evictd::app {

class LiveThresholds;

using Sources = std::vector<std::unique_ptr<wake::Source>>;

/// Adds a source, for those who speak to it.
template <class S, class... Args>
S& add(Sources& sources, Args&&... args) {
  auto source = std::make_unique<S>(std::forward<Args>(args)...);
  auto& reference = *source;
  sources.push_back(std::move(source));
  return reference;
}

/// The stalls for memory that begin a pass; empty where PSI is switched off.
[[nodiscard]] std::vector<wake::PsiLevel> psi_levels(const config::NotifierSettings& settings);

/// What is measured of the node; all must outlive its readers.
struct Measured {
  const node::CgroupHierarchy& hierarchy;
  node::NodeMemory& memory;
  node::NodeDisk& disk;
  /// Of all signals that are not of memory, `disk` among them.
  std::vector<node::SignalReader*> readers;
};

/// Puts together what wakes the agent, as configured and as the host has it: one line a source.
struct SourceMaker {
  Sources& sources;
  boost::asio::any_io_executor reactor;
  wake::Wakes& wakes;
  const Configuration& configuration;
  /// Looks for the directories of files that the node's operator writes, and at the places of PlaceWatch.
  std::shared_ptr<async::Worker> files = std::make_shared<async::SideThread>(reactor, "watch files");

  /// What tells that the loop itself hangs, and sees to it that it holds nobody meanwhile.
  [[nodiscard]] const wake::TurnWatch& watch_loop(const Measured& measured) const;
  /// What tells that something runs out. A dry run, which touches nothing, has no fence, tripwire or self-tests.
  /// Those in `approach` that are not null are told that memory may soon be short, in this order.
  void watch_node(const Measured& measured, bool dry_run,
                  std::initializer_list<wake::ApproachListener*> approach) const;
  /// What tells that pods, their files, images or manifests changed.
  void watch_pods(agent::PodTracker& pods, agent::LocalStorage& storage, PodSources& pod_sources,
                  const node::CgroupHierarchy& hierarchy, const node::NodeMemory& memory,
                  const node::PodRoots& roots) const;
  /// What tells `thresholds` that the configuration's files, the kubelet's or the drop-ins changed.
  void watch_configuration(LiveThresholds& thresholds) const;

 private:
  void hold_pods(const Measured& measured) const;
  void watch_drop_ins(LiveThresholds& thresholds) const;
};

}  // namespace evictd::app
