#pragma once
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "evictctl/text.hpp"
#include "evictctl/top/keys.hpp"
#include "evictctl/top/screen.hpp"
#include "evictd.pb.h"

namespace evictd::ctl {

/// What `evictctl top` knows, and what the reader chose to see of it.
struct TopState {
  std::optional<v1::NodeStatus> status{};  ///< the last that was heard
  v1::RankPodsResponse ranking{};          ///< of some signal: maybe not yet of the chosen one
  std::string ranking_error{};             ///< why there is none
  std::deque<v1::Event> events{};          ///< the oldest first
  std::string events_error{};              ///< why no more come; empty where they do, or the agent is not heard of
  std::string trouble{};                   ///< why the agent is not heard of; empty while it is
  TimePoint trouble_since{};
  std::string signal = "memory.available";  ///< the chosen one
  bool help = false;
};

/// The whole screen: as many lines as it has rows, none wider than it is.
[[nodiscard]] std::vector<std::string> render(const TopState& state, const Screen& screen, TimePoint now);

/// What a key does to what is shown; quitting and the like are for others.
void press(TopState& state, Key key);

}  // namespace evictd::ctl
